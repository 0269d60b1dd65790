#include "requests/uploads.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/container.h"
#include "net/loop.h"
#include "proto/hex.h"
#include "render/document.h"
#include "requests/intake.h"
#include "requests/requests.h"
#include "requests/symbols.h"
#include "requests/tokens.h"

#define BUSY_RETRY_MS 200

/* One upload, until it is answered. */
struct upload {
    struct writer_job job;
    struct process_uploads *service;
    struct caller caller;
    uint64_t began; /* ms of loop_now */
    struct conn_body body;
    bool compressed;
    struct ingest_item item;
};

static void upload_prepare(struct writer_job *job)
{
    struct upload *u = container_of(job, struct upload, job);
    const struct process_uploads *s = u->service;
    struct ingest_item *item = &u->item;
    uint8_t *inflated = NULL;

    item->payload = u->body.data;
    item->size = u->body.size;
    if (u->compressed) {
        item->status =
            frame_inflate(u->body.data, u->body.size, LIMIT_FRAME_PAYLOAD, &inflated, &item->size, &item->error);
        item->payload = inflated;
    }
    if (!item->status) {
        ingest_check(s->builds, writer_objects_generation(s->shared->writer), item);
    }
    free(inflated); /* what is stored are copies */
}

/* ingest_batch gets refused uploads, too: it frees what they hold, and finds those that are stored already, which are
 * acknowledged even if nothing more can be stored. */
static void upload_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    struct ingest_item **items = malloc(n * sizeof(struct ingest_item *));
    struct profd_error e;
    const enum profd_status refused = items ? writer_job_check_space(jobs[0], &e) : profd_no_memory(&e);

    for (size_t i = 0; i < n; i++) {
        struct ingest_item *item = &container_of(jobs[i], struct upload, job)->item;

        if (items) {
            items[i] = item;
        }
        if (refused && !item->status) {
            item->status = refused;
            item->error = e;
        }
    }
    if (items) {
        ingest_batch(store,
                     writer_objects_generation(container_of(jobs[0], struct upload, job)->service->shared->writer),
                     items, n);
    }
    free(items);
}

void upload_count(struct upload_counts *counts, const struct ingest_item *item)
{
    counts->duplicate += item->duplicate;
    counts->stored += !item->duplicate;
    counts->relabelled += item->relabelled;
    counts->samples += item->ticks;
    counts->calls += item->calls;
}

/* Answers the upload and frees it. */
static void upload_done(struct writer_job *job)
{
    struct upload *u = container_of(job, struct upload, job);
    struct process_uploads *s = u->service;
    struct upload_counts *counts = &s->counts;
    struct ingest_item *item = &u->item;
    struct conn *c = conn_find(s->shared->conns, u->caller.conn);
    struct message ack = {.type = FRAME_ACK};

    durations_add(&counts->seconds, (double)(loop_now() - u->began) / 1000.0);
    if (job->status) { /* it was not run */
        item->status = job->status;
        item->error = job->error;
    }
    if (item->status) {
        refusals_add(&counts->refused, item->status);
        if (item->status == PROFD_FULL) {
            s->shared->no_space(s->shared->context);
        }
        log_write(LOG_LEVEL_INFO, "upload refused", "an upload of user %u was refused: %s", item->uid,
                  item->error.sentence);
    } else {
        upload_count(counts, item);
        if (c) { /* what is asked for comes before the ACK */
            object_request_missing(s->objects, c, item->missing, item->missing_count);
        }
        ack.as.ack.duplicate = item->duplicate;
    }
    caller_answer(s->shared, &u->caller, &ack, caller_status(item->status), item->error.sentence,
                  item->retry_after_ms ? item->retry_after_ms : BUSY_RETRY_MS);
    ingest_item_done(&u->item);
    conn_body_free(s->shared->conns, &u->body);
    free(u);
}

static const struct writer_job_type upload_type = {
    .prepare = upload_prepare, .run_all = upload_run, .done = upload_done};

enum profd_status upload_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct process_uploads *s = context;
    struct upload *u;

    s->counts.bytes += f->body.size;
    if (writer_check(s->shared->writer, e)) {
        refusals_add(&s->counts.refused, PROFD_IO);
        return PROFD_IO;
    }
    u = calloc(1, sizeof *u);
    TRY(u ? PROFD_OK : profd_no_memory(e));
    u->job.type = &upload_type;
    u->job.item.uid = conn_get_peer(c)->uid;
    /* Double compression hides the weight. */
    u->job.item.weight =
        f->header.flags & FRAME_FLAG_COMPRESSED ? LIMIT_COUNTS_RAW : message_upload_weight(f->body.data, f->body.size);
    u->service = s;
    u->began = loop_now();
    u->compressed = f->header.flags & FRAME_FLAG_COMPRESSED;
    u->item.uid = conn_get_peer(c)->uid;
    u->item.may_claim = conn_get_peer(c)->may_claim;
    u->item.received = loop_clock();
    conn_frame_take_body(f, &u->body); /* before the put, because the writer may start immediately */
    if (!writer_put(s->shared->writer, &u->job)) {
        conn_body_free(s->shared->conns, &u->body);
        free(u);
        refusals_add(&s->counts.refused, PROFD_BUSY);
        return profd_error_set(e, PROFD_BUSY, "the queue of uploads to be stored is full");
    }
    caller_begin(&u->caller, c, f->header.tag);
    return PROFD_OK;
}

/* POST /api/v1/uploads: batches of hosts. */

#define NUMBER_MOST (UINT64_C(1) << 62) /* largest number of a host's database */
#define ANSWER_MOST (16u << 20)
#define OFFERS_MOST 256u /* of a batch: each costs a look at all objects of the host */
#define LOG_MS 60000u    /* at most one line for each status in this time */

/* A request until it is answered. */
struct posting {
    struct writer_job job; /* its admission; its status: why the host is not admitted */
    struct host_batches *service;
    struct http_exchange *exchange;
    struct message_batch batch;      /* owns the uploads */
    char token[STORE_NAME_MOST + 1]; /* its name */
    struct tokens_host host;         /* name "" until it is known */
    struct store_arrival arrival;
    struct store_admission admission;
    struct intake_parcel parcel; /* the admission also sets its centre */
    bool reserved;
    struct buildid send[INTAKE_WANTED]; /* the host shall send symbols of these */
    size_t send_count;
};

static void posting_free(struct posting *p)
{
    if (p->reserved) {
        intake_leave(p->service->intake, &p->parcel);
    }
    message_batch_done(&p->batch);
    free(p->parcel.items);
    free(p);
}

/* A host repeats an error with each batch, so each status is logged at most once in LOG_MS. */
static void log_refusal(struct host_batches *s, const char *token, int http_status, const char *sentence)
{
    const unsigned i = (unsigned)http_status - 400;
    const uint64_t now = loop_now();

    if (i < UPLOADS_LOG_STATUSES && (!s->logged[i] || now - s->logged[i] >= LOG_MS)) {
        s->logged[i] = now;
        log_write(LOG_LEVEL_WARNING, NULL,
                  "uploads with token %s are refused (status %d; at most one such line a minute): %s", token,
                  http_status, sentence);
    }
}

/* Answers with a problem document, and frees the request. */
static void posting_refuse(struct posting *p, int http_status, enum profd_status status, const char *sentence)
{
    struct page page;

    log_refusal(p->service, p->token, http_status, sentence);
    page_problem(&page, http_status, status, sentence);
    reply_tell(p->exchange, &page);
    posting_free(p);
}

/* The entry of an upload in the answer. */
static json_t *item_make(const struct intake_item *x)
{
    static const char *const outcomes[] = {[STORE_SEGMENT_COUNTED] = "counted",
                                           [STORE_SEGMENT_PUT_ASIDE] = "put-aside",
                                           [STORE_SEGMENT_CONFLICT] = "conflict"};
    const struct store_delivery *d = &x->delivery;
    const struct store_receipt *r = &x->receipt;
    char sender[2 * SEGMENT_EPOCH_SIZE + 1];
    const char *outcome = "refused", *detail = "";

    hex_put(sender, d->epoch, sizeof d->epoch);
    if (x->status) {
        detail = x->error.sentence;
    } else {
        outcome = r->outcome == STORE_SEGMENT_COUNTED && r->again ? "known" : outcomes[r->outcome];
        detail = r->outcome == STORE_SEGMENT_PUT_ASIDE  ? d->fault ? d->fault : "a repeat, which cannot be read"
                 : r->outcome == STORE_SEGMENT_CONFLICT ? "another upload with this sender and sequence was counted"
                                                        : "";
    }
    return json_pack("{s:s, s:I, s:s, s:I, s:o}", "sender", d->sequence ? sender : "", "sequence",
                     (json_int_t)d->sequence, "outcome", outcome, "number", (json_int_t)r->number, "detail",
                     document_text(detail));
}

static json_t *hex_make(const uint8_t *bytes, size_t n)
{
    char text[2 * STORE_CENTRE_SIZE + 1];

    hex_put(text, bytes, n);
    return json_string(text);
}

static json_t *builds_make(const struct buildid *ids, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) { /* a build that is left out is asked for later */
        (void)json_array_append_new(list, json_string(ids[i].text));
    }
    return list;
}

/* Answers the request after the host was admitted and its uploads were committed. Frees the request. */
static void posting_answer(struct posting *p)
{
    const struct store_centre *c = &p->parcel.centre;
    const uint32_t wait = intake_get_wait(p->service->intake, p->arrival.host, p->arrival.now, c->series);
    json_t *uploads = json_array();
    struct page page;
    bool cut = false;

    for (size_t i = 0; i < p->parcel.count; i++) {
        cut |= json_array_append_new(uploads, item_make(&p->parcel.items[i])) != 0;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = ANSWER_MOST;
    document_write(
        json_pack("{s:o, s:o, s:I, s:I, s:b, s:I, s:o, s:o, s:o}", "centre", hex_make(c->name, sizeof c->name),
                  "incarnation", hex_make(c->incarnation, sizeof c->incarnation), "backed_up", (json_int_t)c->backup,
                  "wait_ms", (json_int_t)wait, "went_back", p->arrival.held && p->admission.restored, "number",
                  (json_int_t)p->admission.number, "uploads", uploads, "wanted",
                  builds_make(p->parcel.wanted, p->parcel.wanted_count), "send", builds_make(p->send, p->send_count)),
        &page.body);
    if (cut || page.body.failed) { /* the host sends the batch again; its uploads are known then */
        buffer_done(&page.body);
        page_problem(&page, 503, PROFD_NO_MEMORY, "no memory for the answer");
    }
    reply_tell(p->exchange, &page);
    posting_free(p);
}

static void parcel_done(struct intake_parcel *parcel)
{
    struct posting *p = container_of(parcel, struct posting, parcel);

    p->reserved = false;
    if (parcel->status) {
        posting_refuse(p, profd_status_http(parcel->status), parcel->status, parcel->error.sentence);
    } else {
        posting_answer(p);
    }
}

/* Stores the host's offers of symbols in one transaction. p->send gets the builds of the symbols that the host shall
 * send. Offers that cannot be read are skipped. */
static enum profd_status take_offers(struct posting *p, struct store *store, struct profd_error *e)
{
    const size_t most = p->batch.offer_count;
    struct buildid *ids = calloc(most, sizeof *ids);
    struct store_offer *list = calloc(most, sizeof *list);
    struct store_offered *results = calloc(most, sizeof *results);
    size_t n = 0;
    enum profd_status status = ids && list && results ? PROFD_OK : profd_no_memory(e);

    for (size_t i = 0; i < most && !status; i++) {
        const struct message_offer *from = &p->batch.offers[i];
        struct store_offer *o = &list[n];

        if (buildid_parse(from->build_id, strlen(from->build_id), &ids[n], NULL) ||
            (from->hash.size && from->hash.size != sizeof o->hash)) {
            continue;
        }
        *o = (struct store_offer){
            .build_id = ids[n].text, .has = from->hash.size > 0, .size = from->size, .now = p->arrival.now};
        memcpy(o->host, p->arrival.host, sizeof o->host);
        if (o->has) {
            memcpy(o->hash, from->hash.data, sizeof o->hash);
        }
        n++;
    }
    if (!status && n) {
        status = store_offer(store, list, n, results, e);
    }
    for (size_t i = 0; i < n && !status && p->send_count < INTAKE_WANTED; i++) {
        if (results[i].wanted) {
            p->send[p->send_count++] = ids[i];
        }
    }
    free(ids);
    free(list);
    free(results);
    return status;
}

/* Refuses uploads of a tenant that stores as much as it may. */
static enum profd_status check_share(const struct posting *p, struct store *store, struct profd_error *e)
{
    const uint32_t uid = p->arrival.tenant ? p->arrival.tenant : STORE_TENANT;
    struct store_use use = {.most = 1};

    TRY(p->parcel.count ? store_get_use(store, uid, &use, e) : PROFD_OK);
    return use.bytes < use.most ? PROFD_OK : store_share_refuse(store, uid, e);
}

static void admission_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    struct store_arrival *list = calloc(n, sizeof *list);
    struct store_admission *admissions = calloc(n, sizeof *admissions);
    struct store_centre centre = {.number = 0};
    struct profd_error e;
    enum profd_status status = list && admissions ? writer_job_check_space(jobs[0], &e) : profd_no_memory(&e);

    for (size_t i = 0; i < n && !status; i++) {
        list[i] = container_of(jobs[i], struct posting, job)->arrival;
    }
    status = status ? status : store_admit_hosts(store, list, n, admissions, &e);
    status = status ? status : store_get_greeting(store, &centre, &e);
    for (size_t i = 0; i < n; i++) {
        struct posting *p = container_of(jobs[i], struct posting, job);

        p->job.status = status;
        p->parcel.centre = centre;
        if (status) {
            p->job.error = e;
        } else {
            p->admission = admissions[i];
            p->job.status = check_share(p, store, &p->job.error);
            if (!p->job.status && p->batch.offer_count) {
                p->job.status = take_offers(p, store, &p->job.error);
            }
            /* With uploads, the intake finds the wanted builds after their commit. */
            if (!p->job.status && !p->parcel.count) {
                p->job.status = store_wanted(store, p->arrival.host, p->arrival.now, p->parcel.wanted, INTAKE_WANTED,
                                             &p->parcel.wanted_count, &p->job.error);
            }
        }
    }
    free(list);
    free(admissions);
}

static void admission_done(struct writer_job *job)
{
    struct posting *p = container_of(job, struct posting, job);

    intake_arrived(p->service->intake, &(struct intake_arrival){.host = p->arrival.host,
                                                                .name = p->host.name,
                                                                .tenant = p->arrival.tenant,
                                                                .status = p->job.status,
                                                                .restored = p->admission.restored,
                                                                .clock = p->batch.clock,
                                                                .oldest = p->batch.oldest});
    if (p->job.status) {
        posting_refuse(p, profd_status_http(p->job.status), p->job.status, p->job.error.sentence);
    } else if (p->parcel.count) {
        intake_put(p->service->intake, &p->parcel);
    } else {
        posting_answer(p);
    }
}

static const struct writer_job_type admission_type = {.run_all = admission_run, .done = admission_done};

static enum profd_status read_size(const struct message_bytes *bytes, size_t size, const char *what,
                                   struct profd_error *e)
{
    return !bytes->size || bytes->size == size
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED, "%s in the batch has %zu bytes; it must have %zu or be absent",
                                 what, bytes->size, size);
}

static enum profd_status read_head(struct posting *p, const struct store_token *token, struct profd_error *e)
{
    const struct message_batch *b = &p->batch;
    struct store_arrival *a = &p->arrival;
    TRY(read_size(&b->centre, STORE_CENTRE_SIZE, "the name of the centre", e));
    TRY(read_size(&b->incarnation, STORE_INCARNATION_SIZE, "the incarnation of the centre", e));
    FAIL_IF(b->upload_count && !b->centre.size, e, PROFD_MALFORMED,
            "a batch with uploads must name the centre: ask for its name with an empty batch");
    FAIL_IF(b->clock > INT64_MAX || b->number > NUMBER_MOST || b->held > NUMBER_MOST, e, PROFD_MALFORMED,
            "in a batch, clock must be at most 2^63-1, number and held at most 2^62");
    TRY(body_check_text("the machine-id", b->machine, STORE_MACHINE_SIZE, e));
    TRY(body_check_text("the boot-id", b->boot, STORE_MACHINE_SIZE, e));
    TRY(body_check_text("the version", b->version, STORE_MACHINE_SIZE, e));
    TRY(tokens_find_host(token, b->host, &p->host, e));
    a->name = p->host.name;
    a->now = loop_clock();
    a->clock = (int64_t)b->clock - a->now;
    a->number = b->number;
    a->held = b->held;
    a->machine = b->machine;
    a->version = b->version;
    a->boot = b->boot;
    a->tenant = token->uid;
    memcpy(a->host, p->host.identity, sizeof a->host);
    return PROFD_OK;
}

static enum profd_status read_uploads(struct posting *p, struct profd_error *e)
{
    struct intake_parcel *parcel = &p->parcel;

    memcpy(parcel->host, p->arrival.host, sizeof parcel->host);
    parcel->tenant = p->arrival.tenant;
    parcel->name = p->host.name;
    parcel->done = parcel_done;
    parcel->count = p->batch.upload_count;
    parcel->items = calloc(parcel->count ? parcel->count : 1, sizeof *parcel->items);
    if (!parcel->items) {
        parcel->count = 0;
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < parcel->count; i++) {
        struct store_delivery *d = &parcel->items[i].delivery;

        memcpy(d->host, parcel->host, sizeof d->host);
        d->bytes = p->batch.uploads[i].data;
        d->size = p->batch.uploads[i].size;
        d->received = p->arrival.now;
    }
    TRY(intake_reserve(p->service->intake, parcel, e));
    p->reserved = true;
    return PROFD_OK;
}

int batch_judge(void *context, const struct http_body_head *head, struct profd_error *e)
{
    struct host_batches *s = context;
    static const char type[] = "application/x-protobuf";
    const struct store_token *t = tokens_find(s->shared->tokens, head->token);

    if (!t) {
        profd_error_set(e, PROFD_UNAUTHORIZED,
                        "uploads need a token with the right write; make one with profctl token add NAME --write at "
                        "the centre");
        return 401;
    }
    if (tokens_check_write(t, e)) {
        log_refusal(s, t->name, 403, e->sentence);
        return 403;
    }
    if (head->type_size != sizeof type - 1 || memcmp(head->type, type, head->type_size) != 0) {
        profd_error_set(e, PROFD_REFUSED, "uploads must have Content-Type: %s, not '%.*s'", type,
                        (int)(head->type_size < 100 ? head->type_size : 100), head->type);
        log_refusal(s, t->name, 415, e->sentence);
        return 415;
    }
    return 0;
}

/* Reads the request, and submits it to the writer. */
static enum profd_status posting_begin(struct posting *p, const struct http_request *r, const struct store_token *token,
                                       int *http_status, struct profd_error *e)
{
    const struct host_batches *c = p->service;

    if (c->relays) {
        *http_status = 409;
        return profd_error_set(e, PROFD_CONFLICT,
                               "this daemon forwards its uploads (relay is configured), so it cannot be a centre");
    }
    TRY(message_decode_batch(r->bytes, r->size, &p->batch, e));
    FAIL_IF(p->batch.offer_count > OFFERS_MOST, e, PROFD_TOO_LARGE,
            "a batch offers the symbols of %zu builds, at most %u", p->batch.offer_count, OFFERS_MOST);
    TRY(read_head(p, token, e));
    if (p->batch.centre.size && memcmp(p->batch.centre.data, c->centre, sizeof c->centre) != 0) {
        *http_status = 421;
        return profd_error_set(e, PROFD_REFUSED,
                               "the batch is for another centre; to move host %s to this one, use profctl relay move "
                               "there",
                               p->host.name);
    }
    TRY(read_uploads(p, e));
    return writer_submit(c->shared->writer, &p->job, &admission_type, e);
}

void batch_receive(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct host_batches *s = context;
    const struct store_token *token = tokens_find(s->shared->tokens, request->token); /* may be removed by now */
    struct posting *p = calloc(1, sizeof *p);
    struct profd_error e;
    struct page page;
    int http_status = 0;
    enum profd_status status = PROFD_OK;

    if (!p || !token) {
        status = token ? PROFD_NO_MEMORY : PROFD_UNAUTHORIZED;
        page_problem(&page, profd_status_http(status), status,
                     token ? "no memory for uploads" : "the token was removed");
        reply_tell(x, &page);
        free(p);
        return;
    }
    p->service = s;
    p->exchange = x;
    memcpy(p->token, token->name, sizeof p->token);
    status = posting_begin(p, request, token, &http_status, &e);
    if (status) {
        intake_refuse(s->intake, p->arrival.host, p->batch.upload_count);
        posting_refuse(p, http_status ? http_status : profd_status_http(status), status, e.sentence);
        return;
    }
    intake_get_counts(s->intake)->arrived++;
}
