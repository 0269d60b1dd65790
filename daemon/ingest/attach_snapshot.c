#include <stdlib.h>
#include <string.h>

#include "ingest/attach_internal.h"
#include "proto/deflate.h"
#include "proto/varint.h"

/* A snapshot as bytes: strings and numbers as varints, then tables, then two columns. All of it in one checked zstd
 * frame. */

#define FORMAT 1
#define PLACE_MAX (5 + VARINT_MAX) /* bytes of a slot's gap and its count */
#define TABLE_MAX (5 + 5)
#define HEAD_MAX (64 + 33 + 16 * VARINT_MAX + ATTACH_SNAPSHOT_COUNTERS * VARINT_MAX)
#define STRINGS_MAX (BUILDID_TEXT_SIZE + LIMIT_BUILD_NAME + LIMIT_LABEL_BYTES + LIMIT_LABELS * 4 + 16)
#define RAW_MAX ((uint64_t)LIMIT_ATTACH_SLOTS * (PLACE_MAX + TABLE_MAX) + HEAD_MAX + STRINGS_MAX)

static uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

/* With its NUL. */
static uint8_t *put_text(uint8_t *p, const char *text)
{
    size_t n = strlen(text);
    p = varint_put(p, n);
    return put_bytes(p, text, n + 1);
}

static enum profd_status pack(const uint8_t *raw, size_t n, uint8_t **out, size_t *size, struct profd_error *e)
{
    size_t capacity = 1 + VARINT_MAX + deflate_bound(n), packed = 0;
    uint8_t *block = malloc(capacity), *fitted = NULL;
    FAIL_IF(!block, e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", n);
    block[0] = FORMAT;
    uint8_t *p = varint_put(block + 1, n);
    enum profd_status status = deflate_pack(raw, n, false, p, capacity - (size_t)(p - block), &packed, e);
    packed += (size_t)(p - block);
    if (status == PROFD_OK) {
        fitted = malloc(packed); /* it is kept for long */
    }
    if (fitted) {
        memcpy(fitted, block, packed);
        *out = fitted;
        *size = packed;
    } else if (status == PROFD_OK) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", packed);
    }
    free(block);
    return status;
}

enum profd_status attach_snapshot_encode(const struct attach_snapshot *s, uint8_t **out, size_t *size,
                                         struct profd_error *e)
{
    const struct attach_places *places = &s->places;
    FAIL_IF(places->count > LIMIT_ATTACH_SLOTS, e, PROFD_TOO_LARGE, "a snapshot of %u slots; at most %u are kept",
            places->count, LIMIT_ATTACH_SLOTS);
    size_t most = HEAD_MAX + 4 * VARINT_MAX + strlen(s->build_id) + strlen(s->name) + 2;
    for (size_t i = 0; i < s->label_count; i++) {
        most += strlen(s->labels[i].name) + strlen(s->labels[i].value) + 2 * VARINT_MAX + 2;
    }
    most += (size_t)places->table_count * TABLE_MAX + (size_t)places->count * PLACE_MAX;
    uint8_t *raw = malloc(most), *p = raw;
    FAIL_IF(!raw, e, PROFD_NO_MEMORY, "no memory for a snapshot of %u slots", places->count);
    p = put_bytes(p, s->instance, sizeof s->instance);
    p = put_bytes(p, s->origin.boot, sizeof s->origin.boot);
    p = put_bytes(p, s->origin.host, sizeof s->origin.host);
    p = varint_put(p, s->origin.pid);
    p = varint_put(p, s->origin.started);
    p = varint_put(p, varint_zigzag((uint64_t)s->end));
    p = varint_put(p, s->rate);
    p = varint_put(p, ATTACH_SNAPSHOT_COUNTERS);
    for (unsigned i = 0; i < ATTACH_SNAPSHOT_COUNTERS; i++) {
        p = varint_put(p, s->counters[i]);
    }
    p = put_text(p, s->build_id);
    p = put_text(p, s->name);
    p = varint_put(p, s->label_count);
    for (size_t i = 0; i < s->label_count; i++) {
        p = put_text(p, s->labels[i].name);
        p = put_text(p, s->labels[i].value);
    }
    p = varint_put(p, places->table_count);
    p = varint_put(p, places->count);
    for (uint32_t i = 0, page = 0; i < places->table_count; i++) {
        p = varint_put(p, places->tables[i].page - page);
        p = varint_put(p, places->tables[i].used);
        page = places->tables[i].page;
    }
    for (uint32_t i = 0; i < places->table_count; i++) {
        const struct attach_place *t = &places->tables[i];
        uint32_t next = 0;
        for (uint32_t k = t->first; k < t->first + t->used; k++) {
            p = varint_put(p, places->slots[k] - next);
            next = places->slots[k] + 1;
        }
    }
    for (uint32_t i = 0; i < places->count; i++) {
        p = varint_put(p, places->counts[i]);
    }
    enum profd_status status = pack(raw, (size_t)(p - raw), out, size, e);
    free(raw);
    return status;
}

/* --- decoding: a reader that remembers that something was wrong ------------------------------------------------------
 */

struct snapshot_reader {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get(struct snapshot_reader *r, uint64_t most)
{
    uint64_t v = 0;
    if (r->bad || !varint_get(&r->at, r->end, &v) || v > most) {
        r->bad = true;
        return 0;
    }
    return v;
}

static void get_bytes(struct snapshot_reader *r, void *out, size_t n)
{
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return;
    }
    memcpy(out, r->at, n);
    r->at += n;
}

static const char *get_text(struct snapshot_reader *r, size_t most)
{
    uint64_t n = get(r, most);
    const char *text = (const char *)r->at;
    if (r->bad || (uint64_t)(r->end - r->at) < n + 1 || memchr(text, 0, (size_t)n + 1) != text + n) {
        r->bad = true;
        return "";
    }
    r->at += n + 1;
    return text;
}

/* Reads the raw bytes of a snapshot, which s->block owns and texts point into. */
static enum profd_status get_all(size_t raw, struct attach_snapshot *s, struct profd_error *e)
{
    const uint8_t *bytes = s->block;
    struct snapshot_reader r = {bytes, bytes + raw, false};
    get_bytes(&r, s->instance, sizeof s->instance);
    get_bytes(&r, s->origin.boot, sizeof s->origin.boot);
    get_bytes(&r, s->origin.host, sizeof s->origin.host);
    r.bad = r.bad || memchr(s->origin.host, 0, sizeof s->origin.host) == NULL;
    s->origin.pid = (uint32_t)get(&r, UINT32_MAX);
    s->origin.started = get(&r, UINT64_MAX);
    s->end = (int64_t)varint_unzigzag(get(&r, UINT64_MAX));
    s->rate = (uint32_t)get(&r, UINT32_MAX);
    const uint64_t counters = get(&r, ATTACH_SNAPSHOT_COUNTERS);
    for (uint64_t i = 0; i < counters; i++) {
        s->counters[i] = get(&r, INT64_MAX);
    }
    s->build_id = get_text(&r, BUILDID_TEXT_SIZE - 1);
    s->name = get_text(&r, LIMIT_BUILD_NAME);
    r.bad = r.bad || buildid_parse(s->build_id, strlen(s->build_id), &(struct buildid){""}, NULL) != PROFD_OK;
    s->label_count = (size_t)get(&r, LIMIT_LABELS);
    struct store_label *labels = calloc(s->label_count + 1, sizeof *labels);
    FAIL_IF(!labels, e, PROFD_NO_MEMORY, "no memory for a snapshot");
    s->labels = labels;
    for (size_t i = 0; i < s->label_count && !r.bad; i++) {
        labels[i].name = get_text(&r, LIMIT_LABEL_NAME);
        labels[i].value = get_text(&r, LIMIT_LABEL_VALUE);
    }

    struct attach_places *p = &s->places;
    p->table_count = (uint32_t)get(&r, LIMIT_ATTACH_SLOTS);
    p->count = (uint32_t)get(&r, LIMIT_ATTACH_SLOTS);
    size_t left = (size_t)(r.end - r.at); /* each takes two bytes at least: nothing is taken for what can't be there */
    r.bad = r.bad || p->table_count > left / 2 || p->count > left / 2;
    if (!r.bad) {
        p->tables = calloc((size_t)p->table_count + 1, sizeof *p->tables);
        p->slots = calloc((size_t)p->count + 1, sizeof *p->slots);
        p->counts = calloc((size_t)p->count + 1, sizeof *p->counts);
        FAIL_IF(!p->tables || !p->slots || !p->counts, e, PROFD_NO_MEMORY, "no memory for a snapshot of %u slots",
                p->count);
    }
    uint32_t page = 0, total = 0;
    for (uint32_t i = 0; i < p->table_count && !r.bad; i++) {
        const uint32_t step = (uint32_t)get(&r, ATTACH_SIZE_MAX / ATTACH_PAGE);
        const uint32_t used = (uint32_t)get(&r, p->count - total);
        r.bad = r.bad || step == 0 || used == 0 || step > ATTACH_SIZE_MAX / ATTACH_PAGE - page;
        page += step;
        p->tables[i] = (struct attach_place){.page = page, .first = total, .used = used};
        total += used;
    }
    r.bad = r.bad || total != p->count;
    for (uint32_t i = 0; i < p->table_count && !r.bad; i++) {
        uint64_t next = 0;
        for (uint32_t k = p->tables[i].first; k < p->tables[i].first + p->tables[i].used && !r.bad; k++) {
            next += get(&r, UINT32_MAX);
            r.bad = r.bad || next > UINT32_MAX;
            p->slots[k] = (uint32_t)next++;
        }
    }
    for (uint32_t i = 0; i < p->count && !r.bad; i++) {
        p->counts[i] = get(&r, INT64_MAX);
        r.bad = r.bad || p->counts[i] == 0;
    }
    r.bad = r.bad || r.at != r.end;
    return r.bad ? profd_error_set(e, PROFD_DAMAGED,
                                   "a snapshot of shared counts cannot be read: wrong at byte %zu of %zu",
                                   (size_t)(r.at - bytes), raw)
                 : PROFD_OK;
}

enum profd_status attach_snapshot_decode(const uint8_t *in, size_t n, struct attach_snapshot *out,
                                         struct profd_error *e)
{
    const uint8_t *at = in + 1;
    uint64_t raw = 0;
    FAIL_IF(n < 2 || in[0] != FORMAT, e, PROFD_DAMAGED, "a snapshot of shared counts has format %u: only %d is known",
            n ? in[0] : 0u, FORMAT);
    size_t head = varint_get(&at, in + n, &raw) ? (size_t)(at - in) : n;
    FAIL_IF(raw == 0 || raw > RAW_MAX || raw > deflate_content_max(n - head), e, PROFD_DAMAGED,
            "a snapshot of shared counts says that its %zu bytes hold %llu", n, (unsigned long long)raw);
    struct attach_snapshot s = {.block = malloc((size_t)raw)};
    FAIL_IF(!s.block, e, PROFD_NO_MEMORY, "no memory for a snapshot of %llu bytes", (unsigned long long)raw);
    enum profd_status status = deflate_unpack(at, n - head, s.block, (size_t)raw, e);
    if (status == PROFD_MALFORMED) {
        status = profd_error_wrap(e, PROFD_DAMAGED, "a snapshot of shared counts");
    }
    if (status == PROFD_OK) {
        status = get_all((size_t)raw, &s, e);
    }
    if (status == PROFD_OK) {
        *out = s;
    } else {
        attach_snapshot_done(&s);
    }
    return status;
}

void attach_snapshot_done(struct attach_snapshot *s)
{
    free((void *)(uintptr_t)s->labels);
    free(s->places.tables);
    free(s->places.slots);
    free(s->places.counts);
    free(s->block);
    *s = (struct attach_snapshot){.block = NULL};
}
