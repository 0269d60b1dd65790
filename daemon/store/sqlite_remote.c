/* Segments on a server: each is stored there before the transaction commits that makes it count. So the server may have
 * segments that do not count (yet), which are told from the others by their arrivals, but never lacks one that does. */
#include "store/sqlite_remote.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup_segment.h"
#include "proto/hex.h"

#define READ_BYTES (32 << 20) /* of segments that are asked for at once, about */
#define READ_HOURS 500u

enum profd_status store_sqlite_attach(struct store *s, const struct remote_maker *m, struct profd_error *e)
{
    return m ? m->make(m, &sqlite_self(s)->remote, e) : PROFD_OK;
}

uint32_t remote_sent_hour(const struct segment *s)
{
    const int64_t most = UINT32_MAX / 3600;
    return (uint32_t)(s->hour < 0 ? 0 : s->hour > most ? most : s->hour);
}

static void hash_text(struct sha256_ctx *c, const char *text)
{
    sha256_update(c, strlen(text) + 1, (const uint8_t *)text);
}

/* What names a series in every database: its user, program, builds and labels. */
static void hash_series(const struct store_upload *u, uint8_t out[REMOTE_SERIES_SIZE])
{
    struct sha256_ctx c;
    const uint8_t uid[] = {(uint8_t)u->uid, (uint8_t)(u->uid >> 8), (uint8_t)(u->uid >> 16), (uint8_t)(u->uid >> 24)};
    sha256_init(&c);
    sha256_update(&c, sizeof uid, uid);
    hash_text(&c, u->builds[u->program].id.text);
    for (size_t i = 0; i < u->build_count; i++) {
        hash_text(&c, u->builds[i].id.text);
    }
    hash_text(&c, "");
    for (size_t i = 0; i < u->label_count; i++) {
        hash_text(&c, u->labels[i].name);
        hash_text(&c, u->labels[i].value);
    }
    sha256_digest(&c, REMOTE_SERIES_SIZE, out);
}

static int64_t digest_head(const uint8_t *digest)
{
    int64_t head;
    memcpy(&head, digest, sizeof head);
    return head;
}

enum profd_status sqlite_remote_add(struct sqlite_store *s, struct arena *a, const struct store_delivery *d,
                                    const struct incoming *in, int64_t series, uint64_t number, struct remote_row *row,
                                    struct profd_error *e)
{
    const struct store_upload *u = &in->upload;
    const char *program = u->builds[u->program].id.text;
    *row = (struct remote_row){.sequence = d->sequence,
                               .number = number,
                               .program = arena_copy(a, program, strlen(program)),
                               .sent = remote_sent_hour(d->segment),
                               .hour = (uint32_t)in->hour,
                               .uid = u->uid,
                               .first = u->start,
                               .last = u->end,
                               .inexact = u->inexact,
                               .uploads = in->uploads,
                               .ticks = u->ticks,
                               .calls = u->calls,
                               .bytes = d->bytes,
                               .size = d->size};
    memcpy(row->epoch, d->epoch, sizeof row->epoch);
    memcpy(row->host, d->host, sizeof row->host);
    hash_series(u, row->series);
    s->state.version++;
    return row->program ? sqlite_run(s, SQL_REMOTE_ADD,
                                     VALUES(INTEGER(series), INTEGER(in->hour), BLOB(row->series, sizeof row->series),
                                            INTEGER(in->order.commit), INTEGER(s->state.version),
                                            INTEGER(digest_head(d->digest)), INTEGER(d->size), INTEGER(number),
                                            INTEGER(row->sent)),
                                     e)
                        : profd_no_memory(e);
}

/* What a failing server means for storing and reading. */
static enum profd_status refuse(enum profd_status status, struct profd_error *e)
{
    return status == PROFD_OK || status == PROFD_FULL || status == PROFD_NO_MEMORY
               ? status
               : profd_error_wrap(e, PROFD_BUSY, "store");
}

enum profd_status sqlite_remote_put(struct sqlite_store *s, const struct remote_row *rows, size_t n,
                                    struct profd_error *e)
{
    return n > 0 ? refuse(s->remote->ops->put(s->remote, rows, n, e), e) : PROFD_OK;
}

/* An hour of a series that is read. */
struct item {
    struct remote_hour hour;
    char program[BUILDID_TEXT_SIZE];
    uint64_t segments, since;
    int64_t digests, bytes;
    struct sqlite_remote_sum sum;
    uint64_t found; /* segments that were read */
    int64_t found_digests;
};

struct remote_reading {
    struct sqlite_store *s;
    struct arena *arena, *numbers; /* of one sum; of one segment */
    struct sqlite_folding folding;
    sqlite_remote_sink *each;
    void *context;
    bool *differs;
};

static enum profd_status load_item(struct sqlite_store *s, int64_t id, struct item *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t n;
    enum profd_status status = sqlite_start(s, SQL_REMOTE_GET, VALUES(INTEGER(id)), &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, &row, e);
    }
    if (!row) {
        return status == PROFD_OK
                   ? profd_error_set(e, PROFD_DAMAGED, "database %s: row %lld of table remote has no series", s->path,
                                     (long long)id)
                   : status;
    }
    const uint8_t *hash = sqlite_blob(q, 1, &n);
    const char *program = sqlite_text(q, 9);
    *out = (struct item){.sum = {.id = id, .version = (uint64_t)sqlite3_column_int64(q, 2)},
                         .segments = (uint64_t)sqlite3_column_int64(q, 3),
                         .digests = sqlite3_column_int64(q, 4),
                         .bytes = sqlite3_column_int64(q, 5),
                         .since = (uint64_t)sqlite3_column_int64(q, 6)};
    out->sum.hour = sqlite3_column_int64(q, 0);
    out->hour.hour = (uint32_t)out->sum.hour;
    out->hour.sent_from = (uint32_t)sqlite3_column_int64(q, 7);
    out->hour.sent_to = (uint32_t)sqlite3_column_int64(q, 8);
    const bool fine = n == sizeof out->hour.series && strlen(program) < sizeof out->program;
    if (fine) {
        memcpy(out->hour.series, hash, n);
        memcpy(out->program, program, strlen(program) + 1);
    }
    sqlite_finish(q);
    return fine ? PROFD_OK
                : profd_error_set(e, PROFD_DAMAGED, "database %s: row %lld of table remote breaks its rules", s->path,
                                  (long long)id);
}

static int compare_items(const void *a, const void *b)
{
    const struct remote_hour *x = &((const struct item *)a)->hour, *y = &((const struct item *)b)->hour;
    return x->hour != y->hour ? (x->hour > y->hour) - (x->hour < y->hour)
                              : memcmp(x->series, y->series, sizeof x->series);
}

/* Did the transaction of this segment's arrival commit, as this snapshot has it? */
static enum profd_status is_counted(struct sqlite_store *s, const struct remote_row *row, bool *counted,
                                    struct profd_error *e)
{
    int64_t value = 0;
    bool found = false;
    const enum profd_status status = sqlite_find(
        s, SQL_REMOTE_COUNTED, VALUES(BLOB(row->epoch, sizeof row->epoch), INTEGER(row->sequence)), &value, &found, e);
    *counted = found && value != 0;
    return status;
}

static enum profd_status differ(struct remote_reading *r, const struct item *x, const char *why, struct profd_error *e)
{
    *r->differs = true;
    return profd_error_set(
        e, PROFD_BUSY, "store: the server has %llu of the %llu segments that count in hour %lld of program %s%s%s",
        (unsigned long long)x->found, (unsigned long long)x->segments, (long long)x->sum.hour, x->program,
        why[0]                    ? ": "
        : x->found == x->segments ? ", but others"
                                  : "",
        why);
}

/* Adds a segment to the sum. */
static enum profd_status fold_segment(struct remote_reading *r, const struct item *x, const struct remote_row *row,
                                      const struct segment *segment, struct profd_error *e)
{
    const struct profile_order order = incoming_order(x->sum.hour, row->epoch, row->sequence);
    struct sqlite_rolled one = {.number = (int64_t)order.commit,
                                .uploads = segment->uploads,
                                .first = row->first,
                                .last = row->last,
                                .inexact = row->inexact,
                                .host_count = 1};
    char text[2 * STORE_HOST_SIZE + 1];
    int64_t host = 0;
    bool found, stopped = false;
    incoming_count_processes(segment, &one.groups, &one.processes, &stopped);
    hex_put(text, row->host, STORE_HOST_SIZE);
    enum profd_status status = sqlite_find(r->s, SQL_HOST_FIND, VALUES(TEXT(text)), &host, &found, e);
    if (status == PROFD_OK && !found) {
        return differ(r, x, "a segment is of a host that is not known", e);
    }
    one.hosts = &host;
    arena_reset(r->numbers);
    if (status == PROFD_OK) {
        status = rollup_from_segment(segment, &order, r->numbers, &one.counts, &one.spread, e);
    }
    return status == PROFD_OK ? sqlite_folding_add(&r->folding, &one, e) : status;
}

/* Adds what counts of a row. checked: rows that count are told by their arrivals. */
static enum profd_status take_row(struct remote_reading *r, struct item *x, const struct remote_row *row, bool checked,
                                  struct profd_error *e)
{
    struct segment segment;
    bool counted = row->number >= x->since;
    enum profd_status status = counted && checked ? is_counted(r->s, row, &counted, e) : PROFD_OK;
    if (status != PROFD_OK || !counted) {
        return status;
    }
    status = segment_decode(row->bytes, row->size, &segment, e);
    if (status != PROFD_OK) {
        const struct profd_error why = *e;
        return status == PROFD_NO_MEMORY ? status : differ(r, x, why.sentence, e);
    }
    x->found++;
    x->found_digests ^= digest_head(row->bytes + SEGMENT_DIGEST_AT);
    status = fold_segment(r, x, row, &segment, e);
    segment_done(&segment);
    return status;
}

static bool is_of(const struct item *x, const struct remote_row *row)
{
    return row->hour == x->hour.hour && memcmp(row->series, x->hour.series, sizeof row->series) == 0;
}

static bool is_same_key(const struct remote_row *a, const struct remote_row *b)
{
    return a->sequence == b->sequence && memcmp(a->epoch, b->epoch, sizeof a->epoch) == 0;
}

/* Adds the rows of an item, of which each key counts once. */
static enum profd_status take_rows(struct remote_reading *r, struct item *x, const struct remote_row *rows, size_t n,
                                   bool checked, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        if (i == 0 || !is_same_key(&rows[i], &rows[i - 1])) {
            status = take_row(r, x, &rows[i], checked, e);
        }
    }
    return status;
}

static enum profd_status begin_item(struct remote_reading *r, struct item *x, struct profd_error *e)
{
    x->found = 0;
    x->found_digests = 0;
    arena_reset(r->arena);
    return sqlite_folding_begin(&r->folding, r->arena, e);
}

static bool is_complete(const struct item *x)
{
    return x->found == x->segments && x->found_digests == x->digests;
}

static enum profd_status give_item(struct remote_reading *r, struct item *x, struct profd_error *e)
{
    if (!is_complete(x)) {
        return differ(r, x, "", e);
    }
    const enum profd_status status = sqlite_folding_finish(&r->folding, e);
    if (status != PROFD_OK) {
        return status;
    }
    x->sum.row = r->folding.out;
    return r->each(r->context, &x->sum, e);
}

static enum profd_status ask(struct remote_reading *r, const struct item *items, size_t n, unsigned part,
                             unsigned parts, const struct remote_row **rows, size_t *count, struct profd_error *e)
{
    struct remote_hour hours[READ_HOURS];
    for (size_t i = 0; i < n; i++) {
        hours[i] = items[i].hour;
        hours[i].program = items[i].program;
    }
    return refuse(r->s->remote->ops->read(r->s->remote, hours, n, part, parts, rows, count, e), e);
}

/* Sums that are read at once. */
static enum profd_status read_items(struct remote_reading *r, struct item *items, size_t n, struct profd_error *e)
{
    const struct remote_row *rows = NULL;
    size_t count = 0, at = 0;
    enum profd_status status = ask(r, items, n, 0, 1, &rows, &count, e);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        size_t size = 0;
        while (at + size < count && is_of(&items[i], &rows[at + size])) {
            size++;
        }
        for (int checked = 0; status == PROFD_OK && checked < 2; checked++) {
            status = begin_item(r, &items[i], e);
            if (status == PROFD_OK) {
                status = take_rows(r, &items[i], rows + at, size, checked != 0, e);
            }
            if (is_complete(&items[i])) {
                break;
            }
        }
        if (status == PROFD_OK) {
            status = give_item(r, &items[i], e);
        }
        at += size;
    }
    return status;
}

/* One sum that is read in parts. */
static enum profd_status read_large(struct remote_reading *r, struct item *x, struct profd_error *e)
{
    const unsigned parts = (unsigned)(x->bytes / READ_BYTES) + 1;
    enum profd_status status = PROFD_OK;
    for (int checked = 0; status == PROFD_OK && checked < 2; checked++) {
        status = begin_item(r, x, e);
        for (unsigned part = 0; status == PROFD_OK && part < parts; part++) {
            const struct remote_row *rows = NULL;
            size_t count = 0;
            status = ask(r, x, 1, part, parts, &rows, &count, e);
            if (status == PROFD_OK) {
                status = take_rows(r, x, rows, count, checked != 0, e);
            }
        }
        if (is_complete(x)) {
            break;
        }
    }
    return status == PROFD_OK ? give_item(r, x, e) : status;
}

enum profd_status sqlite_remote_read(struct sqlite_store *s, const int64_t *ids, size_t n, sqlite_remote_sink *each,
                                     void *context, size_t *taken, bool *differs, struct profd_error *e)
{
    struct remote_reading r = {.s = s, .each = each, .context = context, .differs = differs};
    enum profd_status status = PROFD_OK;
    size_t count = 0;
    int64_t bytes = 0;
    *differs = false;
    if (!s->remote) {
        return profd_error_set(e, PROFD_BUSY,
                               "the segments of some hours are on a database server: name it with the key store");
    }
    struct item *items = calloc(n < READ_HOURS ? n : READ_HOURS, sizeof *items);
    r.arena = arena_new(0);
    r.numbers = arena_new(0);
    status = items && r.arena && r.numbers ? PROFD_OK : profd_no_memory(e);
    while (status == PROFD_OK && count < n && count < READ_HOURS) {
        status = load_item(s, ids[count], &items[count], e);
        bytes += status == PROFD_OK ? items[count].bytes : 0;
        if (status == PROFD_OK && bytes > READ_BYTES && count > 0) {
            break;
        }
        count++;
    }
    if (status == PROFD_OK && count == 1 && bytes > READ_BYTES) {
        status = read_large(&r, &items[0], e);
    } else if (status == PROFD_OK) {
        qsort(items, count, sizeof *items, compare_items);
        status = read_items(&r, items, count, e);
    }
    *taken = count;
    arena_free(r.numbers);
    arena_free(r.arena);
    free(items);
    return status;
}
