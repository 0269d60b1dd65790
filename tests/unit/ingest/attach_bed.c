/* Makes the memory of live processes, and a ledger in the store's place that counts each harvest exactly once. */
#include "tests/unit/ingest/attach_bed.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/ingest/bed.h"

struct build_cache *checker;
struct attach_origin origin;

void live_seal(struct live *l)
{
    cr_assert_eq(fcntl(l->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
}

void live_open(struct live *l, uint64_t size, unsigned n)
{
    *l = (struct live){.fd = memfd_create("live", MFD_CLOEXEC | MFD_ALLOW_SEALING), .size = size};
    cr_assert(l->fd >= 0 && ftruncate(l->fd, (off_t)size) == 0);
    l->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
    cr_assert_neq(l->bytes, MAP_FAILED);
    l->h = (struct attach_header *)(void *)l->bytes;
    *l->h = (struct attach_header){.magic = ATTACH_MAGIC,
                                   .layout = ATTACH_LAYOUT,
                                   .machine = 62,
                                   .size = size,
                                   .used = ATTACH_PAGE,
                                   .pid = 7,
                                   .rate = 100,
                                   .mode = ATTACH_MODE_CPU,
                                   .start = (uint64_t)START};
    memset(l->h->instance, 0x11, sizeof l->h->instance);
    memcpy(l->h->instance, &n, sizeof n);
}

void live_close(struct live *l)
{
    munmap(l->bytes, l->size);
    close(l->fd);
}

struct attach_chunk *live_chunk(struct live *l, uint64_t bytes)
{
    struct attach_chunk *c = (struct attach_chunk *)(void *)(l->bytes + l->h->used);
    bytes = (bytes + ATTACH_PAGE - 1) / ATTACH_PAGE * ATTACH_PAGE;
    cr_assert(bytes <= l->size - l->h->used);
    l->h->used += bytes;
    c->size = bytes;
    return c;
}

void live_publish(struct attach_chunk *c, uint32_t kind)
{
    c->kind = kind;
    c->magic = ATTACH_CHUNK_MAGIC;
}

static struct attach_module_row *row_take(struct live *l)
{
    uint32_t index = l->h->modules;
    if (index % ATTACH_MODULES_PER_CHUNK == 0) {
        struct attach_chunk *c = live_chunk(l, 64 + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row));
        c->primary = index + 1;
        live_publish(c, ATTACH_KIND_MODULES);
    }
    uint64_t at = ATTACH_PAGE;
    for (struct attach_chunk *c;; at += c->size) {
        c = (struct attach_chunk *)(void *)(l->bytes + at);
        if (c->magic == ATTACH_CHUNK_MAGIC && c->kind == ATTACH_KIND_MODULES && c->primary <= index + 1 &&
            index + 1 < c->primary + ATTACH_MODULES_PER_CHUNK) {
            return (struct attach_module_row *)(void *)(c + 1) + (index + 1 - c->primary);
        }
    }
}

uint32_t live_module(struct live *l, int id, unsigned id_size, uint64_t low, uint64_t high, const char *name)
{
    struct attach_module_row *row = row_take(l);
    row->low = low;
    row->high = high;
    row->id_size = (uint16_t)id_size;
    memset(row->id, id, id_size < sizeof row->id ? id_size : sizeof row->id);
    row->name_size = (uint16_t)strlen(name);
    memcpy(row->name, name, strlen(name) < sizeof row->name ? strlen(name) : sizeof row->name);
    row->loaded = 1;
    row->state = 1;
    return ++l->h->modules;
}

void live_labels(struct live *l, const char *text, size_t n)
{
    struct attach_chunk *c = live_chunk(l, sizeof *c + n);
    memcpy(c + 1, text, n);
    c->primary = (uint32_t)n;
    live_publish(c, ATTACH_KIND_LABELS);
}

struct attach_chunk *live_table(struct live *l, uint32_t kind, uint32_t slots)
{
    struct attach_chunk *t = live_chunk(l, sizeof *t + (uint64_t)slots * 28);
    t->primary = slots / 2;
    t->hash = slots - slots / 2;
    live_publish(t, kind);
    return t;
}

struct attach_slot *live_slot(struct attach_chunk *t, uint32_t slot)
{
    return (struct attach_slot *)(void *)(t + 1) + slot;
}

struct attach_identity *live_identity(struct attach_chunk *t, uint32_t slot)
{
    return (struct attach_identity *)(void *)live_slot(t, t->primary + t->hash) + slot;
}

void live_count(struct attach_chunk *t, uint32_t slot, uint32_t from_module, uint32_t from, uint32_t self_module,
                uint32_t self, uint64_t n)
{
    *live_identity(t, slot) = (struct attach_identity){from, self, (uint16_t)from_module, (uint16_t)self_module};
    live_slot(t, slot)->key = 1 + slot;
    live_slot(t, slot)->count += n;
}

void live_usual(struct live *l)
{
    live_module(l, 0xaa, 20, 0x400000, 0x500000, "/bin/program");
    live_module(l, 0xbb, 20, 0, 0x2000, "/lib/libx.so");
}

/* --- the ledger ------------------------------------------------------------------------------------------------------
 */

static void row_add(struct ledger *l, char kind, const char *from_id, uint64_t from, const char *to_id, uint64_t to,
                    uint64_t n)
{
    for (size_t i = 0; i < l->count; i++) {
        struct ledger_row *r = &l->rows[i];
        if (r->kind == kind && r->from == from && r->to == to && strcmp(r->from_id, from_id) == 0 &&
            strcmp(r->to_id, to_id) == 0) {
            r->n += n;
            return;
        }
    }
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 64;
        l->rows = realloc(l->rows, l->capacity * sizeof *l->rows);
        cr_assert(l->rows);
    }
    struct ledger_row *r = &l->rows[l->count++];
    *r = (struct ledger_row){.kind = kind, .from = from, .to = to, .n = n};
    strncpy(r->from_id, from_id, sizeof r->from_id - 1);
    strncpy(r->to_id, to_id, sizeof r->to_id - 1);
}

static const char *id_of(const struct store_upload *u, uint32_t build)
{
    return build == COUNTS_NOWHERE ? "" : u->builds[build].id.text;
}

static void counts_add(struct ledger *l, const struct store_upload *u)
{
    struct counts c;
    cr_assert_eq(counts_decode(u->counts, u->counts_size, (uint32_t)u->build_count, &c, &sentence), PROFD_OK, "%s",
                 sentence.sentence);
    for (uint32_t i = 0; i < c.histogram_count; i++) {
        const struct counts_histogram *h = &c.histograms[i];
        bool is_collector = collector_is_dimension(h->dimension);
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            if (is_collector) {
                l->counters[c.bin_index[k]] += c.bin_ticks[k];
            } else {
                row_add(l, h->abbreviation, "", 0, id_of(u, h->build), h->low + c.bin_index[k], c.bin_ticks[k]);
            }
        }
        cr_assert(is_collector || h->high - h->low == h->bins, "bins are of width 1");
    }
    for (uint32_t i = 0; i < c.arc_count; i++) {
        row_add(l, 'a', id_of(u, c.from_build[i]), c.from[i], id_of(u, c.to_build[i]), c.to[i], c.calls[i]);
    }
    counts_done(&c);
}

bool ledger_put(struct ledger *l, const struct store_upload *put)
{
    if (put->base != l->generation) {
        return false;
    }
    if (put->counts_size > 0) {
        counts_add(l, put);
    }
    free(l->snapshot);
    l->snapshot = malloc(put->snapshot_size);
    memcpy(l->snapshot, put->snapshot, put->snapshot_size);
    l->size = put->snapshot_size;
    l->generation++;
    l->uploads++;
    l->ticks += put->ticks;
    l->calls += put->calls;
    l->processes += put->processes_started;
    l->inexact |= put->inexact;
    l->labels = put->label_count;
    l->ended = put->ended;
    l->start = put->start;
    l->end = put->end;
    return true;
}

static void id_spell(char *out, const char *byte)
{
    out[0] = 0;
    for (int i = 0; i < 20 && byte[0]; i++) {
        memcpy(out + 2 * i, byte, 3);
    }
}

static uint64_t row_find(const struct ledger *l, bool arc, const char *from_id, uint64_t from, const char *to_id,
                         uint64_t to)
{
    char f[64], t[64];
    id_spell(f, from_id);
    id_spell(t, to_id);
    for (size_t i = 0; i < l->count; i++) {
        const struct ledger_row *r = &l->rows[i];
        if ((r->kind == 'a') == arc && r->from == from && r->to == to && strcmp(r->from_id, f) == 0 &&
            strcmp(r->to_id, t) == 0) {
            return r->n;
        }
    }
    return 0;
}

uint64_t ledger_arc(const struct ledger *l, const char *from_id, uint64_t from, const char *to_id, uint64_t to)
{
    return row_find(l, true, from_id, from, to_id, to);
}

uint64_t ledger_ticks(const struct ledger *l, const char *id, uint64_t address)
{
    return row_find(l, false, "", 0, id, address);
}

void ledger_done(struct ledger *l)
{
    free(l->snapshot);
    free(l->rows);
    *l = (struct ledger){0};
}

/* --- the daemon's side
 * ------------------------------------------------------------------------------------------------- */

void attach_bed_open(void)
{
    bed_open();
    cr_assert_eq(build_cache_new(store, &checker, &sentence), PROFD_OK);
    origin = (struct attach_origin){.pid = 4711, .started = 99, .boot = {1, 2, 3}, .host = HOST};
}

void attach_bed_close(void)
{
    build_cache_free(checker);
    bed_close();
}

struct attach_process *live_attach(struct live *l, const struct ledger *from)
{
    struct attach_process *p;
    int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
    cr_assert_eq(attach_open(fd, 1000, &origin, &p, &sentence), PROFD_OK, "%s", sentence.sentence);
    if (from && from->generation > 0) {
        cr_assert_eq(attach_resume(p, from->generation, from->snapshot, from->size, &sentence), PROFD_OK, "%s",
                     sentence.sentence);
    }
    return p;
}

enum profd_status live_harvest(struct attach_process *p, struct ledger *l, int64_t received, enum attach_end end)
{
    struct attach_harvest h = {.any = false};
    bool more = true;
    while (more) {
        enum profd_status status = attach_harvest(p, checker, 0, received, end, &h, &sentence);
        if (status != PROFD_OK) {
            return status;
        }
        more = h.more;
        if (h.any) {
            cr_assert(ledger_put(l, &h.put));
            attach_settle(p, &h);
        }
        attach_harvest_done(&h);
    }
    return PROFD_OK;
}
