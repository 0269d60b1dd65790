#include "requests/requests.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/container.h"
#include "live/live.h"
#include "render/render.h"

#define ASKED_MAX 4096

/* Jobs between two SYNCs. The last era is the current one and has no SYNC yet. */
struct session_era {
    size_t jobs; /* begun in it and not ended */
    bool synced, failed;
    uint32_t tag;
};

struct session {
    struct session_era *eras;
    size_t first, count, capacity; /* eras[first … first + count) */
    uint64_t number;               /* of eras[first] */
    void *asked;                   /* a tree of strings */
    size_t asked_count;
    struct live_process *process;
};

/* Ensures capacity for one more era. */
static bool session_grow(struct session *s)
{
    struct session_era *eras;
    size_t capacity;

    if (s->first + s->count < s->capacity) {
        return true;
    }
    if (s->first) {
        memmove(s->eras, s->eras + s->first, s->count * sizeof *s->eras);
        s->first = 0;
        return true;
    }
    capacity = s->capacity ? 2 * s->capacity : 2;
    eras = realloc(s->eras, capacity * sizeof *eras);
    if (!eras) {
        return false;
    }
    s->eras = eras;
    s->capacity = capacity;
    return true;
}

struct session *session_new(void)
{
    struct session *s = calloc(1, sizeof *s);

    if (!s || !session_grow(s)) {
        free(s);
        return NULL;
    }
    s->eras[0] = (struct session_era){0};
    s->count = 1;
    return s;
}

void session_free(struct session *s)
{
    if (!s) {
        return;
    }
    tdestroy(s->asked, free);
    free(s->eras);
    free(s);
}

uint64_t session_begin(struct session *s)
{
    s->eras[s->first + s->count - 1].jobs++;
    return s->number + s->count - 1;
}

void session_end(struct session *s, uint64_t job)
{
    s->eras[s->first + (job - s->number)].jobs--;
}

void session_fail(struct session *s, uint64_t job)
{
    s->eras[s->first + (job - s->number)].failed = true;
    session_end(s, job);
}

struct live_process **session_get_process(struct session *s)
{
    return &s->process;
}

bool session_sync(struct session *s, uint32_t tag)
{
    if (!session_grow(s)) {
        return false;
    }
    s->eras[s->first + s->count - 1].synced = true;
    s->eras[s->first + s->count - 1].tag = tag;
    s->eras[s->first + s->count] = (struct session_era){0};
    s->count++;
    return true;
}

bool session_take_granted(struct session *s, uint32_t *tag, bool *failed)
{
    struct session_era *era = &s->eras[s->first];

    if (era->jobs || !era->synced) {
        return false;
    }
    *tag = era->tag;
    *failed = era->failed;
    s->first++;
    s->count--;
    s->number++;
    return true;
}

static int session_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool session_ask(struct session *s, const struct buildid *id)
{
    if (s->asked_count >= ASKED_MAX || tfind(id->text, &s->asked, session_compare)) {
        return false;
    }
    char *copy = strdup(id->text);
    if (!copy) {
        return false;
    }
    void *at = tsearch(copy, &s->asked, session_compare);
    if (!at) {
        free(copy);
        return false;
    }
    s->asked_count++;
    return true;
}

void session_answered(struct session *s, const struct buildid *id)
{
    char *const *at = tfind(id->text, &s->asked, session_compare);
    char *copy = at ? *at : NULL;

    if (!copy) {
        return;
    }
    tdelete(id->text, &s->asked, session_compare);
    free(copy);
    s->asked_count--;
}

/* One that waits for live processes. */
struct sync_wait {
    struct live_sync sync;
    const struct shared *shared;
    conn_id conn;
    uint64_t job; /* of the connection's session */
};

/* Answers the SYNCs that have no unfinished jobs. */
static void sync_answer_granted(const struct shared *shared, struct conn *c)
{
    struct message ack = {.type = FRAME_ACK};
    struct session *session = conn_get_user(c);
    uint32_t tag;
    bool failed;

    while (session_take_granted(session, &tag, &failed)) {
        if (failed) {
            conn_nack(c, tag, PROFD_IO, "what a live process counted could not be stored", 1000);
        } else {
            live_tell(shared->live, conn_get_peer(c)->uid, &ack.as.ack.run, &ack.as.ack.refused);
            conn_answer(c, &ack, 0, tag);
        }
    }
}

void sync_end_job(const struct shared *shared, struct conn *c, uint64_t job)
{
    session_end(conn_get_user(c), job);
    sync_answer_granted(shared, c);
}

void caller_begin(struct caller *r, struct conn *c, uint32_t tag)
{
    *r = (struct caller){.conn = conn_get_id(c), .tag = tag, .job = session_begin(conn_get_user(c))};
}

void caller_answer(const struct shared *shared, const struct caller *r, const struct message *m,
                   enum profd_status status, const char *sentence, uint32_t retry_after_ms)
{
    struct conn *c = conn_find(shared->conns, r->conn);

    if (!c) {
        return;
    }
    if (status) {
        conn_nack(c, r->tag, status, sentence, retry_after_ms);
    } else {
        conn_answer(c, m, 0, r->tag);
    }
    sync_end_job(shared, c, r->job);
}

enum profd_status caller_status(enum profd_status status)
{
    return status == PROFD_DAMAGED ? PROFD_IO : status;
}

/* Fails a job of the session, and refuses the SYNCs that waited for it. */
static void fail_job(const struct shared *shared, struct conn *c, uint64_t job)
{
    session_fail(conn_get_user(c), job);
    sync_answer_granted(shared, c);
}

static void sync_granted(struct live_sync *sync, enum profd_status status)
{
    struct sync_wait *w = container_of(sync, struct sync_wait, sync);
    struct conn *c = status == PROFD_STOPPING ? NULL : conn_find(w->shared->conns, w->conn);

    if (c && status) {
        fail_job(w->shared, c, w->job);
    } else if (c) {
        sync_end_job(w->shared, c, w->job);
    }
    free(w);
}

enum profd_status sync_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    const struct shared *shared = context;
    struct session *session = conn_get_user(c);
    struct profd_error why;

    FAIL_IF(f->body.size, e, PROFD_MALFORMED, "a SYNC has no body, this one has %zu bytes", f->body.size);
    uint64_t job = session_begin(session);
    if (!session_sync(session, f->header.tag)) {
        session_end(session, job);
        return profd_no_memory(e);
    }
    /* The job ends when everything that ended live processes of the user counted is stored. */
    struct sync_wait *w = calloc(1, sizeof *w);
    enum profd_status status = PROFD_NO_MEMORY;

    if (!w) {
        profd_error_set(&why, PROFD_NO_MEMORY, "no memory for a SYNC");
    } else {
        *w = (struct sync_wait){.sync = {.uid = conn_get_peer(c)->uid, .granted = sync_granted},
                                .shared = shared,
                                .conn = conn_get_id(c),
                                .job = job};
        status = live_sync(shared->live, &w->sync, &why);
    }
    if (status) {
        free(w);
        log_write(LOG_LEVEL_WARNING, "sync", "a SYNC of user %u was refused: %s", conn_get_peer(c)->uid, why.sentence);
        fail_job(shared, c, job);
    }
    return PROFD_OK;
}

enum profd_status sync_receive_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct message m;
    enum profd_status status = body_decode(f, &m, e);

    (void)context;
    if (status) {
        return status;
    }
    log_write(LOG_LEVEL_INFO, "client complaint", "the client of user %u reports: %s", conn_get_peer(c)->uid,
              m.as.nack.sentence);
    message_done(&m);
    return PROFD_OK;
}

#define PIECE_BYTES (256u << 10)

struct reply_source {
    struct conn_source source;
    struct shared *shared;
    uint32_t tag;
    struct page page;
    char etag[80], content_type[96];
    size_t sent, counted;
    bool begun, ended;
};

static bool reply_source_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct reply_source *s = container_of(source, struct reply_source, source);
    struct message m = {.type = FRAME_REPLY};
    size_t n = s->page.body.size - s->sent;
    uint16_t flags = 0;

    if (s->ended) {
        *size = 0;
        return true;
    }
    if (n > PIECE_BYTES) {
        n = PIECE_BYTES;
    }
    m.as.reply.content_type = m.as.reply.etag = "";
    if (!s->begun) {
        m.as.reply.http_status = (uint32_t)s->page.status;
        m.as.reply.content_type = s->content_type;
        m.as.reply.etag = s->etag;
    }
    m.as.reply.body.data = (const uint8_t *)s->page.body.data + (s->page.body.data ? s->sent : 0);
    m.as.reply.body.size = n;
    if (s->sent + n == s->page.body.size) {
        flags = FRAME_FLAG_LAST;
    }
    if (message_encode(&m, flags, s->tag, block, size, NULL)) {
        return false;
    }
    s->begun = true;
    s->sent += n;
    s->ended = flags;
    return true;
}

static void reply_source_free(struct conn_source *source)
{
    struct reply_source *s = container_of(source, struct reply_source, source);

    s->shared->reply_bytes -= s->counted;
    buffer_done(&s->page.body);
    free(s);
}

static void reply_copy_text(char *out, size_t size, const char *text)
{
    const size_t n = text ? strlen(text) : 0;

    if (n && n < size) {
        memcpy(out, text, n);
    }
    out[n < size ? n : 0] = 0;
}

void reply_tell(struct http_exchange *x, struct page *page)
{
    struct http_answer answer = {.status = page->status, .content_type = page->content_type};

    answer.cache_control = page->cache_control;
    answer.etag = page->etag ? page->etag : "";
    answer.csp = page->csp;
    answer.exact = page->exact;
    answer.coding = page->coding;
    answer.negotiated = page->negotiated;
    answer.retry_after_ms = page->retry_after_ms;
    answer.body = &page->body;
    http_answer(x, &answer);
    buffer_done(&page->body);
}

void reply_send(struct shared *shared, struct conn *c, uint32_t tag, const struct page *page)
{
    struct reply_source *source = page->body.failed ? NULL : calloc(1, sizeof *source);

    if (!source) {
        struct buffer body = page->body;

        buffer_done(&body);
        conn_nack(c, tag, PROFD_NO_MEMORY, "no memory for the answer", 1000);
        return;
    }
    source->source.make = reply_source_make;
    source->source.free = reply_source_free;
    source->shared = shared;
    source->tag = tag;
    source->page = *page;
    reply_copy_text(source->etag, sizeof source->etag, page->etag);
    reply_copy_text(source->content_type, sizeof source->content_type, page->content_type);
    source->counted = page->body.size;
    source->source.size = sizeof *source + page->body.size;
    shared->reply_bytes += source->counted;
    conn_stream(c, &source->source);
}

enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e)
{
    uint8_t *inflated;
    size_t size;

    if (!(f->header.flags & FRAME_FLAG_COMPRESSED)) {
        return message_decode(f->header.type, f->body.data, f->body.size, m, e);
    }
    TRY(frame_inflate(f->body.data, f->body.size, LIMIT_FRAME_SMALL, &inflated, &size, e));
    enum profd_status status = message_decode(f->header.type, inflated, size, m, e); /* copies into its own block */
    free(inflated);
    return status;
}

enum profd_status body_check_text(const char *what, const char *text, size_t most, struct profd_error *e)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i < n; i++) {
        FAIL_IF(text[i] <= ' ' || text[i] > '~', e, PROFD_MALFORMED, "%s has characters other than printable ASCII",
                what);
    }
    return n < most ? PROFD_OK
                    : profd_error_set(e, PROFD_MALFORMED, "%s has %zu bytes, at most %zu", what, n, most - 1);
}

#define PAGE_MAX (1u << 20)

void page_init(struct page *page, int status, const char *content_type)
{
    *page = (struct page){.status = status, .content_type = content_type, .cache_control = "no-store", .etag = ""};
    buffer_init(&page->body, PAGE_MAX);
}

void page_problem(struct page *page, int http_status, enum profd_status code, const char *detail)
{
    page_init(page, http_status, "application/problem+json");
    if (http_status == 503) {
        page->retry_after_ms = 1000;
    }
    render_problem(code, http_status, detail, &page->body);
}
