#include "relay/round.h"

#include <ctype.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "proto/deflate.h"
#include "proto/frame.h"
#include "proto/otlp_answer.h"
#include "proto/whole.h"
#include "relay/batch.h"
#include "relay/https.h"
#include "relay/talk.h"

#define IDENTITY_SIZE 64

/* Writes the boot-id of the running kernel to out: 32 hexadecimal digits, "" if it cannot be read. */
static void identity_boot(char out[IDENTITY_SIZE])
{
    const char *given = getenv("PROFD_BOOT_ID"); /* of the unit: its sandbox hides the file */
    char *to = out;

    (void)whole_read_text("/proc/sys/kernel/random/boot_id", out, IDENTITY_SIZE);
    if (!*out && given) {
        (void)snprintf(out, IDENTITY_SIZE, "%s", given);
    }
    for (const char *from = out; *from; from++) {
        if (strchr("0123456789abcdef", *from)) {
            *to++ = *from;
        }
    }
    *to = 0;
}

#define DAY_MS UINT64_C(86400000)
#define FIRST_MS UINT64_C(10000)
#define LEAST_MS UINT64_C(100) /* even if the centre says 0 */
#define BACK_OFF_MS UINT64_C(1000)
#define BACK_OFF_MOST_MS UINT64_C(300000)

uint64_t wait_first(int64_t interval_ns, uint32_t random)
{
    const uint64_t interval = (uint64_t)interval_ns / 1000000;

    return (interval < FIRST_MS ? interval : FIRST_MS) * random >> 32;
}

uint64_t wait_round(const struct round_pause *p, uint32_t random)
{
    const uint64_t grown = BACK_OFF_MS << (p->failures < 9 ? p->failures : 9);
    uint64_t longest = p->kind == ROUND_FAILED && grown < BACK_OFF_MOST_MS ? grown : BACK_OFF_MOST_MS;

    if (p->kind == ROUND_DONE) {
        longest = p->said_ms < DAY_MS ? p->said_ms : DAY_MS;
        return longest > LEAST_MS ? longest : LEAST_MS;
    }
    if (p->kind == ROUND_SAID) {
        return p->said_ms + (p->said_ms / 4 * random >> 32);
    }
    return longest / 2 + (longest / 2 * random >> 32);
}

#define UPLOADS_PATH "/api/v1/uploads"
#define UPLOADS_TYPE "application/x-protobuf"
#define SYMBOLS_TYPE "application/vnd.profd.symbols"
#define LARGE_MOST 64u   /* remembered uploads that are too large for a proxy */
#define LARGE_MS 3600000 /* until they are tried again */
#define OTHER_CENTRE "another centre answers at the URL of relay; profctl relay move moves the host to it"

/* An upload that was alone in a batch and refused as too large. */
struct large_upload {
    uint64_t id;
    int64_t again; /* ms of stream_now */
};

struct round {
    struct https *https;
    bool asked;          /* the centre has answered this process: centre and incarnation are known */
    unsigned failures;   /* failed rounds in a row */
    uint64_t through;    /* of the failed round: no more is sealed until a batch has arrived */
    size_t request_size; /* of the exchange's request to a receiver of OTLP; 0: there was none */
    size_t most_bytes;   /* of a batch; a proxy may take less than LIMIT_BATCH_BYTES */
    size_t large_count;
    struct large_upload large[LARGE_MOST];

    /* state of this round: */
    const struct config *config;
    struct round_report *report;
    struct stream profd;
    struct message_fetch fetch; /* the next FETCH; its bytes are those of batch.centre and batch.incarnation */
    uint64_t moves;
    bool end;                  /* profd has no more uploads */
    enum profd_status refused; /* TOO_LARGE if an upload was left out; the others are sent */
    struct profd_error refusal;
    size_t offered_count, sent_count;
    struct buildid offered[BATCH_BUILDS], sent[BATCH_BUILDS]; /* builds of offered and of sent symbols */
    uint64_t sent_bytes;
    struct batch batch; /* centre and incarnation as profd knows them */
    struct batch_answer answer;
};

enum profd_status round_new(struct round **out, struct profd_error *e)
{
    struct round *r = calloc(1, sizeof *r);

    TRY(r ? PROFD_OK : profd_no_memory(e));
    const enum profd_status status = https_new(&r->https, e);
    if (status) {
        free(r);
        return status;
    }
    r->most_bytes = LIMIT_BATCH_BYTES;
    *out = r;
    return PROFD_OK;
}

void round_free(struct round *r)
{
    if (r) {
        https_free(r->https);
        batch_keep(&r->batch, 0);
    }
    free(r);
}

/* Copies the name or the incarnation of a centre; false if from is empty. */
static bool round_copy(const struct message_bytes *from, uint8_t to[BATCH_CENTRE_SIZE])
{
    if (from->size == BATCH_CENTRE_SIZE) {
        memcpy(to, from->data, BATCH_CENTRE_SIZE);
    }
    return from->size == BATCH_CENTRE_SIZE;
}

static enum profd_status round_fetch(struct round *r, const struct message_fetch *fetch, struct message *segment,
                                     struct profd_error *e)
{
    const struct message request = {.type = FRAME_FETCH, .as.fetch = *fetch};
    TRY(talk_ask(&r->profd, &request, FRAME_SEGMENT, segment, e));

    r->batch.number = segment->as.segment.number;
    r->batch.held = segment->as.segment.held;
    if (!fetch->through) { /* otherwise profd does not compute it */
        r->batch.oldest = segment->as.segment.oldest;
    }
    return PROFD_OK;
}

/* Tells profd an error. profd's answer states its centre, and the number of its database. */
static enum profd_status round_tell(struct round *r, const char *error, struct profd_error *e)
{
    struct message segment;
    TRY(round_fetch(r, &(struct message_fetch){.error = error}, &segment, e));

    r->batch.has_centre = round_copy(&segment.as.segment.centre, r->batch.centre);
    r->batch.has_incarnation = r->batch.has_centre && round_copy(&segment.as.segment.incarnation, r->batch.incarnation);
    r->moves = segment.as.segment.moves;
    message_done(&segment);
    return PROFD_OK;
}

/* Sets the fields of the next FETCH about the centre. */
static void round_set_fetch(struct round *r)
{
    r->fetch.incarnation = (struct message_bytes){r->batch.incarnation, sizeof r->batch.incarnation};
    r->fetch.centre = (struct message_bytes){r->batch.centre, sizeof r->batch.centre};
    r->fetch.moves = r->moves;
    r->fetch.error = "";
}

/* Turns an answer with a status other than 200 into an error. */
static enum profd_status round_judge(struct round *r, const struct https_answer *a, struct profd_error *e)
{
    struct round_pause *pause = &r->report->pause;
    enum profd_status status = PROFD_UNAVAILABLE;
    char detail[300] = "";

    if (!strcmp(a->type, "application/problem+json")) {
        batch_read_problem(a->body ? a->body : "", a->size, detail, sizeof detail);
    }
    if (a->status == 421 && *detail) {
        pause->kind = ROUND_LONG;
        return profd_error_set(e, PROFD_REFUSED, OTHER_CENTRE);
    }
    if (a->status == 401 || a->status == 403) {
        status = a->status == 401 ? PROFD_UNAUTHORIZED : PROFD_FORBIDDEN;
        pause->kind = ROUND_LONG;
    } else if (a->status == 413) {
        status = PROFD_TOO_LARGE;
    } else if (a->status == 429 || a->status == 503) {
        status = PROFD_BUSY;
        pause->kind = a->has_retry ? ROUND_SAID : pause->kind;
        pause->said_ms = a->retry_ms;
    } else if (*detail) {
        status = PROFD_PROTOCOL;
    }
    FAIL_IF(*detail, e, status, "the centre answers %ld: %s", a->status, detail);
    return profd_error_set(e, status, "%s answers %ld (%s): this is not the answer of a centre", r->config->relay,
                           a->status, *a->type ? a->type : "without a body");
}

/* Posts the batch. OK only if the answer acknowledges it. */
static enum profd_status round_post(struct round *r, struct profd_error *e)
{
    char machine[IDENTITY_SIZE], boot[IDENTITY_SIZE];
    struct https_request request = {.method = "POST", .path = UPLOADS_PATH, .type = UPLOADS_TYPE};
    struct https_answer answer;
    struct timespec now;
    uint8_t *body = NULL;

    clock_gettime(CLOCK_REALTIME, &now);
    r->batch.clock = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    (void)whole_read_text("/etc/machine-id", machine, sizeof machine);
    machine[strspn(machine, "0123456789abcdef")] = 0; /* "" if there is none */
    identity_boot(boot);
    r->batch.machine = machine;
    r->batch.boot = boot;
    r->batch.host = r->config->relay_host ? r->config->relay_host : "";
    r->batch.version = PROFD_VERSION;
    TRY(batch_encode(&r->batch, &body, &request.size, e));
    request.body = body;
    enum profd_status status = https_send(r->https, r->config, &request, &answer, e);
    free(body);
    if (status) {
        return status;
    }
    if (answer.status != 200) {
        status = round_judge(r, &answer, e);
    } else if (strcmp(answer.type, "application/json") != 0) {
        status = profd_error_set(e, PROFD_PROTOCOL, "%s answers 200 (%s), which acknowledges nothing", r->config->relay,
                                 *answer.type ? answer.type : "without a body");
    } else {
        status = batch_read_answer(&r->batch, answer.body ? answer.body : "", answer.size, &r->answer, e);
    }
    https_answer_done(&answer);
    if (!status && r->batch.has_centre && memcmp(r->batch.centre, r->answer.centre, sizeof r->batch.centre) != 0) {
        r->report->pause.kind = ROUND_LONG;
        status = profd_error_set(e, PROFD_REFUSED, OTHER_CENTRE);
    }
    return status;
}

/* Writes "host=" and a name at `to`, encoded as part of a query; a name that does not fit before `end` is cut. */
static void round_write_host(char *to, const char *end, const char *host)
{
    to = stpcpy(to, "host=");
    for (const char *c = host; *c && to + 3 < end; c++) {
        to += snprintf(to, 4, isalnum((unsigned char)*c) ? "%c" : "%%%02X", (unsigned char)*c);
    }
}

/* Sends the sums of the batch's one upload, if it has any, to a receiver of OTLP. Makes the answer that a centre would
 * give: the URL names it, and a backup has all uploads, so that none are kept. */
static enum profd_status round_export(struct round *r, struct profd_error *e)
{
    const struct config *c = r->config;
    struct batch_answer *a = &r->answer;
    struct https_request request = {
        .method = "POST", .path = OTLP_PATH, .type = UPLOADS_TYPE, .coding = "gzip", .body = NULL};
    char target[64 + 3 * LIMIT_LABEL_VALUE], *to, host[256] = "", warning[300];
    uint8_t digest[SHA256_DIGEST_SIZE], *sums = NULL, *body = NULL;
    struct https_answer answer;
    struct sha256_ctx sha;
    size_t size = 0;
    long http_status = 0;
    enum profd_status status;

    *a = (struct batch_answer){.backed_up = INT64_MAX, .wait_ms = (uint64_t)c->relay_interval / 1000000};
    sha256_init(&sha);
    sha256_update(&sha, https_measure_base(c->relay), (const uint8_t *)c->relay);
    sha256_digest(&sha, sizeof digest, digest);
    memcpy(a->centre, digest, sizeof a->centre);
    memcpy(a->incarnation, digest, sizeof a->incarnation);
    if (r->batch.has_centre && memcmp(r->batch.centre, a->centre, sizeof a->centre) != 0) {
        r->report->pause.kind = ROUND_LONG;
        return profd_error_set(e, PROFD_REFUSED,
                               "relay=%s is not the receiver that has the earlier uploads of this host; profctl relay "
                               "move sends all further ones to it",
                               c->relay);
    }
    if (!r->batch.upload_count) {
        return PROFD_OK;
    }
    const struct batch_upload *u = r->batch.uploads;

    if (!c->relay_host) {
        (void)gethostname(host, sizeof host - 1);
    }
    to = target + snprintf(target, sizeof target, "/outgoing?id=%llu&", (unsigned long long)u->id);
    round_write_host(to, target + sizeof target, c->relay_host ? c->relay_host : host);
    TRY(talk_query(&r->profd, target, LIMIT_REPORT_BYTES, &http_status, &sums, &size, e));
    if (http_status != 200) {
        batch_read_problem((const char *)sums, size, warning, sizeof warning);
        free(sums);
        /* 503: later it can be; 404: it is gone. Another status is that of this upload, and others may follow. */
        return profd_error_set(e, http_status == 503 || http_status == 404 ? PROFD_INTERNAL : PROFD_TOO_LARGE,
                               "upload %llu cannot be shown as OTLP: %s", (unsigned long long)u->sequence, warning);
    }
    status = size ? deflate_gzip(sums, size, &body, &request.size, e) : PROFD_OK;
    free(sums);
    request.body = body;
    if (status || !body) {
        return status;
    }
    r->request_size = request.size;
    status = https_send(r->https, c, &request, &answer, e);
    free(body);
    TRY(status);
    status = otlp_judge(c->relay, answer.status, (const uint8_t *)answer.body, answer.size, warning, sizeof warning, e);
    if (status == PROFD_REFUSED && (answer.status < 300 || answer.status == 400 || answer.status == 422)) {
        a->results[0].outcome = BATCH_REFUSED;
        (void)snprintf(a->results[0].detail, sizeof a->results[0].detail, "%.190s", e->sentence);
        status = PROFD_OK;
    } else if (status) { /* another status of 4xx is that of a wrong URL or token, which an operator can mend */
        struct round_pause *pause = &r->report->pause;
        const bool forever = status == PROFD_FORBIDDEN || status == PROFD_REFUSED;

        pause->kind = forever ? ROUND_LONG : otlp_is_busy(answer.status) && answer.has_retry ? ROUND_SAID : pause->kind;
        pause->said_ms = answer.retry_ms;
    } else if (*warning) {
        log_write(LOG_LEVEL_WARNING, "warning", "%s accepted an upload, with a warning: %s", c->relay, warning);
    }
    https_answer_done(&answer);
    return status;
}

/* Stores the answer's fields about the centre, which the next FETCH passes to profd. If the centre was restored, profd
 * then seals again what the centre may lack. */
static enum profd_status round_meet(struct round *r, struct profd_error *e)
{
    const bool same =
        r->batch.has_incarnation && !memcmp(r->batch.incarnation, r->answer.incarnation, sizeof r->batch.incarnation);
    struct message segment;

    memcpy(r->batch.centre, r->answer.centre, sizeof r->batch.centre);
    memcpy(r->batch.incarnation, r->answer.incarnation, sizeof r->batch.incarnation);
    r->batch.has_centre = r->batch.has_incarnation = true;
    round_set_fetch(r);
    r->fetch.backup = r->answer.backed_up;
    r->fetch.went_back = r->answer.went_back;
    r->fetch.number = r->answer.number;
    r->asked = true;
    r->report->batches++;
    r->report->pause.said_ms = r->answer.wait_ms;
    if (same) {
        return PROFD_OK;
    }
    struct message_fetch nothing = r->fetch;
    nothing.after = INT64_MAX;
    TRY(round_fetch(r, &nothing, &segment, e));
    message_done(&segment);
    r->fetch.after = 0;
    return PROFD_OK;
}

/* Fetches until the batch is full or profd has no more. An upload that does not fit belongs into the next batch. */
static enum profd_status round_fill(struct round *r, struct profd_error *e)
{
    struct batch *b = &r->batch;
    const size_t most = r->config->relay_otlp ? 1 : LIMIT_BATCH_UPLOADS; /* round_export sends one */
    enum profd_status status = PROFD_OK;
    bool more = true;

    while (!status && more && b->upload_count < most && b->bytes < r->most_bytes) {
        struct batch_upload *u = &b->uploads[b->upload_count];
        struct message segment;
        const struct message_segment *m = &segment.as.segment;
        size_t large = 0;

        TRY(round_fetch(r, &r->fetch, &segment, e));
        r->fetch.through = r->through = m->through;
        r->end = !m->id;
        more = !r->end;
        if (more && m->epoch.size != sizeof u->sender) {
            status = profd_error_set(e, PROFD_PROTOCOL, "profd: the sender of an upload has %zu bytes, not %zu",
                                     m->epoch.size, sizeof u->sender);
        } else if (more && b->upload_count && b->bytes + m->segment.size > r->most_bytes) {
            more = false;
        } else if (more) {
            r->fetch.after = m->id;
            while (large < r->large_count && r->large[large].id != m->id) {
                large++;
            }
            /* An upload that was too large for a proxy is tried again only after a while. */
            if (large == r->large_count || stream_now() >= r->large[large].again) {
                *u = (struct batch_upload){.id = m->id, .sequence = m->sequence, .size = m->segment.size};
                u->bytes = malloc(u->size + 1);
                if (u->bytes) {
                    memcpy(u->bytes, m->segment.data, u->size);
                    memcpy(u->sender, m->epoch.data, sizeof u->sender);
                    b->bytes += u->size;
                    b->upload_count++;
                } else {
                    status = profd_no_memory(e);
                }
            }
        }
        message_done(&segment);
    }
    return status;
}

/* Fetches one piece of the parsed object of a build. */
static enum profd_status round_fetch_object(struct round *r, const char *build, uint64_t offset, struct message *piece,
                                            struct profd_error *e)
{
    const struct message request = {.type = FRAME_FETCH_OBJECT, .as.fetch_object = {build, offset}};

    return talk_ask(&r->profd, &request, FRAME_PARSED, piece, e);
}

/* Adds a build to a list. False: the build is in the list already, or the list is full. */
static bool round_list(struct buildid *list, size_t *count, const struct buildid *build)
{
    for (size_t i = 0; i < *count; i++) {
        if (!strcmp(list[i].text, build->text)) {
            return false;
        }
    }
    if (*count < BATCH_BUILDS) {
        list[(*count)++] = *build;
        return true;
    }
    return false;
}

/* Adds offers of the symbols that the latest answer wants, each build once in a round. */
static enum profd_status round_offer(struct round *r, struct profd_error *e)
{
    r->batch.offer_count = 0;
    for (size_t i = 0; i < r->answer.wanted_count; i++) {
        const struct buildid *build = &r->answer.wanted[i];
        struct message piece;

        if (!round_list(r->offered, &r->offered_count, build)) {
            continue;
        }
        TRY(round_fetch_object(r, build->text, 0, &piece, e));
        struct batch_offer *o = &r->batch.offers[r->batch.offer_count++];
        *o = (struct batch_offer){.build = *build, .size = piece.as.parsed.size};
        o->has_hash = piece.as.parsed.hash.size == sizeof o->hash;
        if (o->has_hash) {
            memcpy(o->hash, piece.as.parsed.hash.data, sizeof o->hash);
        }
        message_done(&piece);
    }
    r->answer.wanted_count = 0;
    return PROFD_OK;
}

/* Reads the whole parsed object of a build, which the caller frees. NULL: there is none, or it has changed meanwhile.
 */
static enum profd_status round_read_object(struct round *r, const char *build, uint8_t **bytes, size_t *size,
                                           struct profd_error *e)
{
    uint8_t *whole = NULL, hash[BATCH_HASH_SIZE];
    struct message piece;
    enum profd_status status = PROFD_OK;
    size_t got = 0;
    bool more = true;

    *size = 0;
    while (more && !(status = round_fetch_object(r, build, got, &piece, e))) {
        const struct message_parsed *p = &piece.as.parsed;

        if (!whole && p->hash.size == sizeof hash && p->size && p->size <= LIMIT_PARSED_OBJECT) {
            *size = (size_t)p->size;
            memcpy(hash, p->hash.data, sizeof hash);
            whole = malloc(*size);
            status = whole ? PROFD_OK : profd_no_memory(e);
        }
        more = whole && p->hash.size == sizeof hash && !memcmp(hash, p->hash.data, sizeof hash) && p->piece.size &&
               p->piece.size <= *size - got;
        if (more) {
            memcpy(whole + got, p->piece.data, p->piece.size);
            got += p->piece.size;
        }
        message_done(&piece);
        more = more && got < *size;
        if (status) {
            break;
        }
    }
    if (status || got < *size) {
        free(whole);
        whole = NULL;
    }
    *bytes = whole;
    return status;
}

/* Puts the symbols of one build. If the centre refuses them, *refused says why, and other builds may follow. */
static enum profd_status round_put(struct round *r, const struct buildid *build, struct profd_error *refused,
                                   struct profd_error *e)
{
    char path[sizeof "/api/v1/builds//symbols?host=" + BUILDID_TEXT_SIZE + 3 * LIMIT_LABEL_VALUE], *to;
    struct https_request request = {.method = "PUT", .path = path, .type = SYMBOLS_TYPE};
    const struct round_pause before = r->report->pause;
    struct https_answer answer;
    uint8_t *bytes = NULL;

    to = path + snprintf(path, sizeof path, "/api/v1/builds/%s/symbols", build->text);
    if (*r->batch.host) { /* the same name as in the batch */
        round_write_host(stpcpy(to, "?"), path + sizeof path, r->batch.host);
    }
    TRY(round_read_object(r, build->text, &bytes, &request.size, e));
    if (!bytes) {
        return PROFD_OK;
    }
    request.body = bytes;
    enum profd_status status = https_send(r->https, r->config, &request, &answer, e);
    free(bytes);
    if (status) {
        return status;
    }
    r->sent_bytes += request.size;
    if (answer.status < 200 || answer.status > 299) {
        (void)round_judge(r, &answer, refused);
        r->report->pause = before; /* the centre asks again after later uploads */
    }
    https_answer_done(&answer);
    return PROFD_OK;
}

/* Sends the outcomes of all uploads before it reads an answer, so that profd commits few times. */
static enum profd_status round_acknowledge(struct round *r, struct profd_error *e)
{
    static const uint32_t outcomes[BATCH_OUTCOMES] = {
        [BATCH_COUNTED] = 0, [BATCH_KNOWN] = 0, [BATCH_PUT_ASIDE] = 1, [BATCH_REFUSED] = 1, [BATCH_CONFLICT] = 2};
    const size_t n = r->batch.upload_count;
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < n && !status; i++) {
        const struct batch_upload *u = &r->batch.uploads[i];
        const struct batch_result *result = &r->answer.results[i];
        const struct message m = {.type = FRAME_ACKNOWLEDGE,
                                  .as.acknowledge = {.epoch = {u->sender, sizeof u->sender},
                                                     .sequence = u->sequence,
                                                     .incarnation = r->fetch.incarnation,
                                                     .number = result->number ? result->number : 1,
                                                     .outcome = outcomes[result->outcome]}};

        if (m.as.acknowledge.outcome) {
            log_write(LOG_LEVEL_WARNING, "outcome", "the %s did not count upload %llu: %s",
                      r->config->relay_otlp ? "receiver" : "centre", (unsigned long long)u->sequence, result->detail);
        }
        r->report->counted += !m.as.acknowledge.outcome;
        status = talk_send(&r->profd, &m, (uint32_t)i + 1, e);
    }
    for (size_t i = 0; i < n && !status; i++) {
        struct message ack;
        uint16_t flags;

        status = talk_take(&r->profd, 60000, &ack, &flags, e);
        if (!status && ack.type == FRAME_NACK) {
            status = talk_explain_nack(&ack, e);
        }
        if (!status || ack.type == FRAME_NACK) {
            message_done(&ack);
        }
    }
    r->report->delivered += n;
    return status;
}

/* Posts the batch, and halves it while a proxy refuses it as too large. Then acknowledges its uploads, and puts
 * symbols. A single upload that is too large, or that profd cannot show as OTLP, is left out. */
static enum profd_status round_exchange(struct round *r, struct profd_error *e)
{
    enum profd_status status;

    r->request_size = 0;
    while ((status = r->config->relay_otlp ? round_export(r, e) : round_post(r, e)) == PROFD_TOO_LARGE &&
           r->batch.upload_count > 1) {
        r->most_bytes = r->batch.bytes / 2;
        batch_keep(&r->batch, (r->batch.upload_count + 1) / 2);
        r->fetch.after = r->batch.uploads[r->batch.upload_count - 1].id;
        r->end = false;
    }
    if (status == PROFD_TOO_LARGE && r->batch.upload_count) {
        const struct batch_upload *u = &r->batch.uploads[0];

        size_t i = 0;

        /* If the table is full, its oldest entry is removed, and that upload is tried again sooner. */
        while (i < r->large_count && r->large[i].id != u->id) {
            i++;
        }
        if (i == LARGE_MOST) {
            memmove(r->large, r->large + 1, sizeof *r->large * --i);
        }
        r->large_count = i < r->large_count ? r->large_count : i + 1;
        r->large[i] = (struct large_upload){u->id, stream_now() + LARGE_MS};
        r->refused = status;
        profd_error_wrap(e, status, "upload %llu of %zu bytes is too large to be sent", (unsigned long long)u->sequence,
                         r->request_size ? r->request_size : u->size);
        r->refusal = *e;
        r->most_bytes = LIMIT_BATCH_BYTES;
        batch_keep(&r->batch, 0);
        return PROFD_OK;
    }
    status = status ? status : round_meet(r, e);
    status = status ? status : round_acknowledge(r, e);
    batch_keep(&r->batch, 0);
    if (status) {
        return status;
    }
    r->fetch.through = r->through = 0;
    /* Put the symbols that the answer asks for, each build once in a round. */
    for (size_t i = 0; i < r->answer.send_count && !status && r->sent_bytes < ROUND_SYMBOL_BYTES; i++) {
        if (round_list(r->sent, &r->sent_count, &r->answer.send[i])) {
            status = round_put(r, &r->answer.send[i], &r->report->symbols, e);
        }
    }
    r->answer.send_count = 0;
    return status;
}

enum profd_status round_run(struct round *r, const struct config *c, const char *last_error, struct round_report *out,
                            struct profd_error *e)
{
    struct profd_error ignored;
    bool last = false;

    *out = (struct round_report){.pause = {.kind = ROUND_FAILED, .failures = r->failures}};
    r->config = c;
    r->report = out;
    r->profd = (struct stream){.fd = -1};
    r->fetch = (struct message_fetch){.error = ""};
    r->refused = PROFD_OK;
    r->offered_count = r->sent_count = 0;
    r->sent_bytes = 0;
    r->batch.offer_count = 0;
    r->answer.wanted_count = r->answer.send_count = 0;
    r->most_bytes = r->most_bytes < LIMIT_BATCH_BYTES / 2 ? 2 * r->most_bytes : LIMIT_BATCH_BYTES;
    enum profd_status status = stream_open_unix(c->socket, &r->profd, e);
    status = status ? status : talk_greet(&r->profd, e);
    status = status ? status : round_tell(r, last_error, e);
    bool reached = !status;

    /* Send all uploads. If there are none, an empty batch tells the centre that the host is alive. */
    r->fetch.through = r->through;
    if (reached && (!r->asked || r->batch.held || !r->batch.has_incarnation)) {
        status = round_exchange(r, e);
    } else if (reached) {
        round_set_fetch(r);
    }
    while (!status && !last) {
        status = round_fill(r, e);
        status = status ? status : round_offer(r, e);
        last = !r->batch.upload_count && !r->batch.offer_count;
        if (!status && (!last || !out->batches)) {
            status = round_exchange(r, e);
        }
    }
    batch_keep(&r->batch, 0);
    if (!status) {
        out->pause.kind = ROUND_DONE;
        status = r->refused;
        *e = r->refused ? r->refusal : *e;
        r->failures = 0;
    } else {
        r->failures++;
        r->asked = r->asked && out->pause.kind != ROUND_LONG;
    }
    if (status && reached) {
        (void)round_tell(r, e->sentence, &ignored); /* fails if profd has ended */
    }
    stream_close(&r->profd);
    return status;
}
