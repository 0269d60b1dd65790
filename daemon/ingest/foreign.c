#include "ingest/foreign.h"

#include <nettle/sha2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "core/hashmap.h"
#include "core/object.h"
#include "core/row_table.h"
#include "proto/counts_tree.h"
#include "proto/frame.h"
#include "proto/hex.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"
#include "proto/utf8.h"

/* Addresses of a names build are NAMES_LOW plus 36 bits of a hash: LIMIT_HISTOGRAM_BINS addresses are in one histogram,
 * so all symbols are in 64 of them at most. Of 10,000 names, two have the same hash in one of 1,400 cases. */
#define NAMES_BITS 36
#define NAMES_LOW (UINT64_C(1) << NAMES_BITS)
#define NAMES_MASK (NAMES_LOW - 1)
#define NAMES_MEMORY ((size_t)1 << 30) /* of one stored object when it is decoded and grows */

#define MOVED_BYTES (16u << 20)
#define KNOWN_BYTES (64u << 20)
#define SERVICE_BYTES 256u

/* A name and its symbol's address. */
struct foreign_name {
    uint32_t type; /* index into types */
    const char *name, *file;
    uint64_t address;
    uint8_t key[16]; /* of names build, name and file */
};

struct foreign_names_type {
    const char *type;
    struct buildid id;
    uint32_t build;
};

struct foreign_bin {
    uint32_t clock, build;
    uint64_t address, ticks;
};

struct foreign_parts {
    struct foreign_names *names;
    struct arena *arena;
    struct foreign_head head;
    uint8_t sender[UPLOAD_SENDER_SIZE], process[LIMIT_PROCESS], seed[SHA256_DIGEST_SIZE];
    const char *service;
    struct counts_stacks *stacks;
    struct message_build builds[LIMIT_BUILDS];
    uint32_t build_count, program;
    struct message_label labels[LIMIT_LABELS];
    uint32_t label_count;
    size_t label_bytes;
    struct foreign_names_type types[FOREIGN_TYPES_MOST];
    uint32_t type_count;
    struct foreign_name *rows;
    uint32_t row_count, row_capacity;
    struct table row_table;
    struct foreign_clock clocks[LIMIT_STACK_TREES];
    uint32_t clock_count;
    struct foreign_bin *bins;
    uint32_t bin_count, bin_capacity;
    struct table bin_table;
    bool saturated;
    uint8_t *payload; /* of the finished upload */
};

struct foreign_names {
    /* Addresses of names whose hash another name has. Written on the writer's thread, read where profiles are made. */
    pthread_mutex_t mutex;
    atomic_bool any_moved;
    struct hashmap moved; /* key of the name → address */
    struct hashmap known; /* key of the name and its address → a byte: it is stored. On the writer's thread */
};

enum profd_status foreign_names_new(struct foreign_names **out, struct profd_error *e)
{
    struct foreign_names *k = calloc(1, sizeof *k);
    if (!k || pthread_mutex_init(&k->mutex, NULL) != 0) {
        free(k);
        return profd_no_memory(e);
    }
    hashmap_init(&k->moved, MOVED_BYTES);
    hashmap_init(&k->known, KNOWN_BYTES);
    *out = k;
    return PROFD_OK;
}

void foreign_names_free(struct foreign_names *k)
{
    if (k) {
        hashmap_clear(&k->moved);
        hashmap_clear(&k->known);
        pthread_mutex_destroy(&k->mutex);
    }
    free(k);
}

void foreign_hash(struct sha256_ctx *c, struct foreign_text t)
{
    const uint64_t n = t.size;
    sha256_update(c, sizeof n, (const uint8_t *)&n);
    sha256_update(c, t.size, (const uint8_t *)t.text);
}

/* --- A profile --- */

/* Makes a copy without invisible characters, cut to `most` bytes. out: most + 1 bytes. */
static void scrub_text(struct foreign_text t, size_t most, char *out)
{
    size_t n = t.size < most ? t.size : most;
    while (n < t.size && n > 0 && utf8_continues((uint8_t)t.text[n])) {
        n--; /* not inside a character */
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = t.text[i] == '\0' ? '?' : t.text[i];
    }
    out[n] = '\0';
    utf8_scrub(out);
}

static char *copy_text(struct arena *a, struct foreign_text t, size_t most)
{
    char *copy = arena_take(a, (t.size < most ? t.size : most) + 1);
    if (copy) {
        scrub_text(t, most, copy);
    }
    return copy;
}

/* Reports that memory is used up: that of the profile, which will not fit when it is sent again, or the machine's. */
static enum profd_status no_space(const struct foreign_parts *p, struct profd_error *e)
{
    return arena_hit_limit(p->arena)
               ? profd_error_set(e, PROFD_TOO_LARGE, "a profile takes over %zu MiB when it is read",
                                 FOREIGN_MEMORY >> 20)
               : profd_no_memory(e);
}

enum profd_status foreign_new(struct foreign_names *names, const struct foreign_head *head, struct foreign **out,
                              struct profd_error *e)
{
    struct arena *a = arena_new(FOREIGN_MEMORY);
    struct foreign *f = a ? ARENA_NEW(a, struct foreign) : NULL;
    struct foreign_parts *p = f ? ARENA_NEW(a, struct foreign_parts) : NULL;
    if (p) {
        f->parts = p;
        *p = (struct foreign_parts){.names = names, .arena = a, .head = *head, .stacks = counts_stacks_new()};
        p->service = copy_text(a, head->service, SERVICE_BYTES);
    }
    if (!p || !p->stacks || !p->service) {
        counts_stacks_free(p ? p->stacks : NULL);
        arena_free(a);
        return profd_no_memory(e);
    }
    if (head->id) {
        memcpy(p->sender, head->id, sizeof p->sender);
    } else if (getrandom(p->sender, sizeof p->sender, 0) != (ssize_t)sizeof p->sender) {
        foreign_free(f);
        return profd_error_set(e, PROFD_IO, "no random numbers from the kernel");
    }
    if (head->seed) {
        memcpy(p->seed, head->seed, sizeof p->seed);
    }
    if (head->process) {
        memcpy(p->process, head->process, sizeof p->process);
    }
    f->item.uid = head->uid;
    f->item.received = head->received;
    f->item.ids = head->id || head->seed ? STORE_ID_OF_DAY : STORE_ID_NONE;
    *out = f;
    return PROFD_OK;
}

void foreign_free(struct foreign *f)
{
    if (f) {
        struct foreign_parts *p = f->parts;
        ingest_item_done(&f->item);
        counts_stacks_free(p->stacks);
        free(p->payload);
        arena_free(p->arena); /* f is in it */
    }
}

enum profd_status foreign_add_label(struct foreign *f, struct foreign_text name, struct foreign_text value,
                                    struct profd_error *e)
{
    struct foreign_parts *p = f->parts;
    char *key = arena_copy(p->arena, name.text, name.size), *text = copy_text(p->arena, value, LIMIT_LABEL_VALUE + 1);
    if (!key || !text) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < name.size; i++) {
        const char c = key[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
        key[i] = (char)(letter || (digit && i > 0) ? c : '_');
    }
    for (uint32_t i = 0; i < p->label_count; i++) {
        if (strcmp(p->labels[i].name, key) == 0) {
            return PROFD_OK;
        }
    }
    const size_t n = strlen(text), bytes = p->label_bytes + name.size + n;
    if (n == 0) {
        return PROFD_OK;
    }
    if (label_judge(key, name.size, text, n) || p->label_count == LIMIT_LABELS || bytes > LIMIT_LABEL_BYTES) {
        p->head.inexact |= INEXACT_LABEL_LEFT_OUT;
        return PROFD_OK;
    }
    p->labels[p->label_count++] = (struct message_label){key, text};
    p->label_bytes = bytes;
    return PROFD_OK;
}

/* Finds or adds a build whose id is valid. */
static enum profd_status take_build(struct foreign_parts *p, const struct buildid *id, struct foreign_text name,
                                    uint32_t *build, struct profd_error *e)
{
    for (uint32_t i = 0; i < p->build_count; i++) {
        if (strcmp(p->builds[i].build_id, id->text) == 0) {
            *build = i;
            return PROFD_OK;
        }
    }
    FAIL_IF(p->build_count == LIMIT_BUILDS, e, PROFD_TOO_LARGE, "a profile has frames in at most %u builds",
            LIMIT_BUILDS);
    const char *copy = arena_copy(p->arena, id->text, strlen(id->text)),
               *called = copy_text(p->arena, name, FOREIGN_NAME_BYTES);
    if (!copy || !called) {
        return profd_no_memory(e);
    }
    p->builds[p->build_count] = (struct message_build){copy, called};
    *build = p->build_count++;
    return PROFD_OK;
}

enum profd_status foreign_take_build(struct foreign *f, struct foreign_text id, struct foreign_text name,
                                     uint32_t *build, struct profd_error *e)
{
    struct buildid parsed;
    TRY(buildid_parse(id.text, id.size, &parsed, e));
    return take_build(f->parts, &parsed, name, build, e);
}

void foreign_set_program(struct foreign *f, uint32_t build)
{
    f->parts->program = build;
}

/* Finds or adds a type of frames, and with it its names build. */
static enum profd_status take_type(struct foreign_parts *p, struct foreign_text type, uint32_t *out,
                                   struct profd_error *e)
{
    for (uint32_t i = 0; i < p->type_count; i++) {
        if (foreign_text_is(type, p->types[i].type)) {
            *out = i;
            return PROFD_OK;
        }
    }
    FAIL_IF(p->type_count == FOREIGN_TYPES_MOST, e, PROFD_TOO_LARGE, "a profile has frames of at most %u types",
            FOREIGN_TYPES_MOST);
    struct foreign_names_type *t = &p->types[p->type_count];
    const char *copy = copy_text(p->arena, type, SERVICE_BYTES);
    const char *called = copy ? arena_format(p->arena, "%s[%s]", p->service, copy) : NULL;
    if (!called) {
        return profd_no_memory(e);
    }
    const bool tenant = store_is_tenant(p->head.uid);
    struct sha256_ctx c;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char owner[64];
    const int n = snprintf(owner, sizeof owner, "profd names%c%s %lld", 0, tenant ? "tenant" : "user",
                           tenant ? (long long)store_tenant_id(p->head.uid) : (long long)p->head.uid);
    sha256_init(&c);
    sha256_update(&c, (size_t)n + 1, (const uint8_t *)owner); /* with its NUL */
    sha256_update(&c, strlen(p->service) + 1, (const uint8_t *)p->service);
    sha256_update(&c, strlen(copy), (const uint8_t *)copy);
    sha256_digest(&c, sizeof digest, digest);
    buildid_from_sha256(digest, &t->id);
    TRY(take_build(p, &t->id, foreign_text_of(called), &t->build, e));
    t->type = copy;
    *out = p->type_count++;
    return PROFD_OK;
}

static uint64_t row_mix(uint32_t type, const char *name, const char *file)
{
    return table_mix(table_hash_text(name, '\0', type), table_hash_text(file, '\0', 1));
}

static uint64_t row_hash(const void *context, uint32_t index)
{
    const struct foreign_name *r = &((const struct foreign_parts *)context)->rows[index];
    return row_mix(r->type, r->name, r->file);
}

static uint64_t name_hash_address(const struct foreign_name *r)
{
    struct sha256_ctx c;
    uint64_t address = 0;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&c);
    sha256_update(&c, strlen(r->name) + 1, (const uint8_t *)r->name); /* with its NUL */
    sha256_update(&c, strlen(r->file), (const uint8_t *)r->file);
    sha256_digest(&c, sizeof digest, digest);
    for (unsigned i = 0; i < 8; i++) {
        address = address << 8 | digest[i];
    }
    return NAMES_LOW | (address & NAMES_MASK);
}

/* Sets the name's key, and its address unless another name of the names build has it. */
static void name_place(struct foreign_parts *p, struct foreign_name *r)
{
    struct foreign_names *k = p->names;
    struct sha256_ctx c;
    uint8_t digest[SHA256_DIGEST_SIZE];
    r->address = name_hash_address(r);
    sha256_init(&c);
    sha256_update(&c, strlen(p->types[r->type].id.text), (const uint8_t *)p->types[r->type].id.text);
    sha256_update(&c, strlen(r->name) + 1, (const uint8_t *)r->name);
    sha256_update(&c, strlen(r->file), (const uint8_t *)r->file);
    sha256_digest(&c, sizeof digest, digest);
    memcpy(r->key, digest, sizeof r->key);
    if (atomic_load(&k->any_moved)) {
        pthread_mutex_lock(&k->mutex);
        const uint64_t *moved = hashmap_find(&k->moved, r->key, sizeof r->key);
        r->address = moved ? *moved : r->address;
        pthread_mutex_unlock(&k->mutex);
    }
}

enum profd_status foreign_take_name(struct foreign *f, struct foreign_text type, struct foreign_text name,
                                    struct foreign_text file, struct foreign_frame *out, struct profd_error *e)
{
    struct foreign_parts *p = f->parts;
    ARENA_BOUNDARY(p->arena, no_space(p, e));
    char texts[2][FOREIGN_NAME_BYTES + 1]; /* copied where they are new: most frames have been there before */
    struct foreign_name r = {.name = texts[0], .file = texts[1]};
    TRY(take_type(p, type, &r.type, e));
    scrub_text(name.size > 0 ? name : FOREIGN_TEXT("[unnamed]"), FOREIGN_NAME_BYTES, texts[0]);
    scrub_text(file, FOREIGN_NAME_BYTES, texts[1]);
    table_reserve(&p->row_table, p->arena, row_hash, p);
    uint32_t at = table_slot(&p->row_table, row_mix(r.type, r.name, r.file));
    for (; p->row_table.slots[at] != 0; at = (at + 1) & p->row_table.mask) {
        const struct foreign_name *known = &p->rows[p->row_table.slots[at] - 1];
        if (known->type == r.type && strcmp(known->name, r.name) == 0 && strcmp(known->file, r.file) == 0) {
            *out = (struct foreign_frame){p->types[r.type].build, known->address};
            return PROFD_OK;
        }
    }
    name_place(p, &r);
    r.name = arena_copy(p->arena, r.name, strlen(r.name));
    r.file = arena_copy(p->arena, r.file, strlen(r.file));
    p->rows = arena_extend(p->arena, p->rows, p->row_count, &p->row_capacity, sizeof *p->rows);
    p->rows[p->row_count] = r;
    p->row_table.slots[at] = ++p->row_count;
    p->row_table.used++;
    *out = (struct foreign_frame){p->types[r.type].build, r.address};
    return PROFD_OK;
}

static uint64_t bin_mix(const struct foreign_bin *b)
{
    return table_mix((uint64_t)b->clock << 32 | b->build, b->address);
}

static uint64_t bin_hash(const void *context, uint32_t index)
{
    return bin_mix(&((const struct foreign_parts *)context)->bins[index]);
}

enum profd_status foreign_add(struct foreign *f, const struct foreign_clock *clock, const struct foreign_frame *frames,
                              size_t n, uint64_t value, struct profd_error *e)
{
    struct foreign_parts *p = f->parts;
    ARENA_BOUNDARY(p->arena, no_space(p, e));
    /* One frame more than a tree has says that outer frames are missing. */
    struct counts_frame path[LIMIT_STACK_DEPTH + 1];
    const uint32_t depth = (uint32_t)(n < LIMIT_STACK_DEPTH + 1 ? n : LIMIT_STACK_DEPTH + 1);
    uint64_t ticks = value;
    if (n == 0 || value == 0) {
        return PROFD_OK;
    }
    if (__builtin_mul_overflow(value, clock->scale, &ticks) || ticks > SUM_MAX) {
        ticks = SUM_MAX;
        p->saturated = true;
    }
    struct foreign_bin bin = {.build = frames[0].build, .address = frames[0].address, .ticks = ticks};
    /* no histogram can end behind it */
    FAIL_IF(bin.address == UINT64_MAX, e, PROFD_MALFORMED, "a frame's address is 2^64-1");
    /* The scale of a clock is not compared. */
    while (bin.clock < p->clock_count && (p->clocks[bin.clock].rate != clock->rate ||
                                          strcmp(p->clocks[bin.clock].dimension, clock->dimension) != 0)) {
        bin.clock++;
    }
    FAIL_IF(bin.clock == LIMIT_STACK_TREES, e, PROFD_TOO_LARGE, "a profile has at most %u sample types",
            LIMIT_STACK_TREES);
    if (bin.clock == p->clock_count) {
        p->clocks[p->clock_count++] = *clock;
    }
    table_reserve(&p->bin_table, p->arena, bin_hash, p);
    uint32_t at = table_slot(&p->bin_table, bin_mix(&bin));
    struct foreign_bin *known = NULL;
    for (; p->bin_table.slots[at] != 0; at = (at + 1) & p->bin_table.mask) {
        known = &p->bins[p->bin_table.slots[at] - 1];
        if (known->clock == bin.clock && known->build == bin.build && known->address == bin.address) {
            break;
        }
    }
    if (p->bin_table.slots[at] != 0) {
        sum_add(&known->ticks, ticks, &p->saturated);
    } else {
        p->bins = arena_extend(p->arena, p->bins, p->bin_count, &p->bin_capacity, sizeof *p->bins);
        p->bins[p->bin_count] = bin;
        p->bin_table.slots[at] = ++p->bin_count;
        p->bin_table.used++;
    }
    for (uint32_t i = 0; i < depth; i++) {
        path[depth - 1 - i] = (struct counts_frame){.build = frames[i].build,
                                                    .address = frames[i].address + (i > 0),
                                                    .kind = i > 0 ? COUNTS_NODE_RETURN : COUNTS_NODE_PC};
    }
    return counts_stacks_add(p->stacks, clock->rate, clock->dimension, clock->abbreviation, path, depth, ticks, e);
}

/* --- The upload --- */

static int compare_bins(const void *a, const void *b)
{
    const struct foreign_bin *x = a, *y = b;
    return x->clock != y->clock ? compare_u64(x->clock, y->clock)
                                : compare_pairs(x->build, y->build, x->address, y->address);
}

/* A histogram covers LIMIT_HISTOGRAM_BINS addresses of a build, always the same ones: so sums need no more of them. */
static bool begins_histogram(const struct foreign_bin *b, uint32_t i)
{
    return i == 0 || b[i].clock != b[i - 1].clock || b[i].build != b[i - 1].build ||
           b[i].address / LIMIT_HISTOGRAM_BINS != b[i - 1].address / LIMIT_HISTOGRAM_BINS;
}

static enum profd_status make_counts(struct foreign_parts *p, struct counts *out, struct profd_error *e)
{
    struct counts_sizes sizes = {.bins = p->bin_count};
    if (p->bin_count > 0) {
        qsort(p->bins, p->bin_count, sizeof *p->bins, compare_bins);
    }
    for (uint32_t i = 0; i < p->bin_count; i++) {
        sizes.histograms += begins_histogram(p->bins, i);
    }
    TRY(counts_judge_sizes(sizes.histograms, sizes.bins, 0, e));
    TRY(counts_stacks_finish(p->stacks, &sizes, e));
    TRY(counts_init_sizes(out, &sizes, e));
    struct counts_histogram *h = out->histograms - 1;
    for (uint32_t i = 0; i < p->bin_count; i++) {
        const struct foreign_bin *b = &p->bins[i];
        const struct foreign_clock *c = &p->clocks[b->clock];
        if (begins_histogram(p->bins, i)) {
            const uint64_t low = b->address / LIMIT_HISTOGRAM_BINS * LIMIT_HISTOGRAM_BINS, left = UINT64_MAX - low,
                           size = left < LIMIT_HISTOGRAM_BINS ? left : LIMIT_HISTOGRAM_BINS;
            *++h = (struct counts_histogram){.build = b->build,
                                             .bins = (uint32_t)size,
                                             .low = low,
                                             .high = low + size,
                                             .rate = c->rate,
                                             .abbreviation = c->abbreviation,
                                             .first = i};
            memcpy(h->dimension, c->dimension, sizeof h->dimension);
        }
        out->bin_index[i] = (uint32_t)(b->address - h->low);
        out->bin_ticks[i] = b->ticks;
        h->used++;
    }
    counts_stacks_copy(p->stacks, out);
    return PROFD_OK;
}

/* Makes the payload of an UPLOAD frame. */
static enum profd_status make_payload(struct foreign *f, struct profd_error *e)
{
    struct foreign_parts *p = f->parts;
    struct counts counts = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    FAIL_IF(p->bin_count == 0, e, PROFD_REFUSED, "the profile has no samples");
    TRY(make_counts(p, &counts, e));
    enum profd_status status = counts_encode(&counts, &bytes, &size, e);
    counts_done(&counts);
    if (status) {
        return status;
    }
    if (p->head.seed) {
        struct sha256_ctx c;
        sha256_init(&c);
        sha256_update(&c, sizeof p->seed, p->seed);
        for (uint32_t i = 0; i < p->build_count; i++) {
            sha256_update(&c, strlen(p->builds[i].build_id) + 1, (const uint8_t *)p->builds[i].build_id);
        }
        sha256_update(&c, size, bytes);
        sha256_digest(&c, sizeof p->sender, p->sender);
    }
    struct message m = {.type = FRAME_UPLOAD};
    m.as.upload = (struct message_upload){.sender = {p->sender, sizeof p->sender},
                                          .sequence = 1,
                                          .start = p->head.start,
                                          .end = p->head.end,
                                          .program = p->program,
                                          .build_count = p->build_count,
                                          .builds = p->builds,
                                          .label_count = p->label_count,
                                          .labels = p->labels,
                                          .counts = {bytes, size},
                                          .inexact = p->head.inexact | INEXACT_SAMPLED |
                                                     (p->saturated ? (uint32_t)INEXACT_SATURATED : 0),
                                          .process = {p->process, p->head.process ? sizeof p->process : 0},
                                          .host = "",
                                          .boot = ""};
    status = message_encode(&m, 0, 0, &p->payload, &size, e);
    free(bytes);
    if (!status) {
        f->item.payload = p->payload + FRAME_HEADER_SIZE;
        f->item.size = size - FRAME_HEADER_SIZE;
    }
    return status;
}

void foreign_check(struct foreign *f, struct build_cache *cache, uint64_t generation)
{
    struct foreign_parts *p = f->parts;
    f->item.status = make_payload(f, &f->item.error);
    if (!f->item.status) {
        ingest_check(cache, generation, &f->item);
    }
    free(p->payload); /* what is stored are copies */
    p->payload = NULL;
    counts_stacks_free(p->stacks);
    p->stacks = NULL;
}

/* --- Names builds --- */

/* A name of a batch that is not known to be stored. */
struct new_name {
    struct foreign *of;
    const struct foreign_name *row;
};

static const struct foreign_names_type *type_of(const struct new_name *n)
{
    return &n->of->parts->types[n->row->type];
}

static int compare_new(const void *a, const void *b)
{
    const struct new_name *x = a, *y = b;
    const int order = strcmp(type_of(x)->id.text, type_of(y)->id.text);
    return order != 0 ? order : compare_u64(x->row->address, y->row->address);
}

/* A stored object that grows. Its symbols ascend by address. */
struct names_object {
    struct arena *arena;
    struct object *stored; /* NULL: there is none */
    struct object out;
    char *names; /* of out */
};

static int compare_symbols(const void *a, const void *b)
{
    return compare_u64(((const struct object_symbol *)a)->address, ((const struct object_symbol *)b)->address);
}

/* Adds a symbol behind the others, in no order. */
static void object_add(struct names_object *o, const struct foreign_name *r, uint64_t address)
{
    struct object_symbol *s = &o->out.symbols[o->out.symbol_count++];
    const char *const texts[] = {r->name, r->file};
    uint32_t at[2] = {0};
    for (unsigned i = 0; i < 2; i++) {
        const size_t n = strlen(texts[i]);
        if (n > 0) {
            memcpy(o->names + o->out.name_bytes, texts[i], n + 1);
            at[i] = o->out.name_bytes;
            o->out.name_bytes += (uint32_t)n + 1;
        }
    }
    *s = (struct object_symbol){.address = address,
                                .size = 1,
                                .name = at[0],
                                .demangled = at[0],
                                .file = at[1],
                                .bind = OBJECT_BIND_GLOBAL,
                                .type = OBJECT_TYPE_FUNCTION,
                                .flags = OBJECT_SYMBOL_EXECUTABLE};
}

/* Finds a symbol of the stored object, or the number of those before the address. */
static bool stored_find(const struct object *o, uint64_t address, uint32_t *at)
{
    SORT_SEARCH(*at, 0, o->symbol_count, o->symbols[*at].address < address);
    return *at < o->symbol_count && o->symbols[*at].address == address;
}

static bool stored_is(const struct object *o, uint32_t at, const struct foreign_name *r)
{
    return strcmp(object_name(o, o->symbols[at].name), r->name) == 0 &&
           strcmp(object_name(o, o->symbols[at].file), r->file) == 0;
}

/* Records the new address of this name for the profiles that are made later. Refuses this profile, which must be made
 * again. */
static void name_move(struct foreign_names *k, const struct new_name *n, uint64_t address)
{
    pthread_mutex_lock(&k->mutex);
    uint64_t *moved = hashmap_find(&k->moved, n->row->key, sizeof n->row->key);
    if (moved) {
        *moved = address;
    } else {
        (void)hashmap_put(&k->moved, n->row->key, sizeof n->row->key, &address, sizeof address);
    }
    pthread_mutex_unlock(&k->mutex);
    atomic_store(&k->any_moved, true);
    n->of->item.status = profd_error_set(&n->of->item.error, PROFD_BUSY,
                                         "the name %.100s got another address; send the profile again", n->row->name);
}

/* Adds the new ones of n names of one names build to its object. *added: it has grown. */
static void object_grow(struct foreign_names *k, struct names_object *o, const struct new_name *list, size_t n,
                        bool *added)
{
    static const struct foreign_name other = {.name = FOREIGN_OTHER_NAMES, .file = ""};
    const struct foreign_name *last = NULL;
    const uint64_t others = name_hash_address(&other);
    for (size_t i = 0; i < n; i++) {
        const struct foreign_name *r = list[i].row;
        uint32_t at = 0;
        const bool taken = o->stored && stored_find(o->stored, r->address, &at), is_other = r->address == others;
        const size_t bytes = o->out.name_bytes + strlen(r->name) + strlen(r->file) + 2;
        if (taken && (is_other || stored_is(o->stored, at, r))) {
            continue;
        }
        if (last && last->address == r->address && strcmp(last->name, r->name) == 0 &&
            strcmp(last->file, r->file) == 0) {
            continue;
        }
        if (is_other && !taken && (!last || last->address != r->address)) {
            object_add(o, &other, others);
        } else if (o->out.symbol_count >= FOREIGN_NAMES_MOST || bytes > FOREIGN_NAMES_BYTES) {
            name_move(k, &list[i], others);
            continue;
        } else if (taken || (last && last->address == r->address)) {
            uint64_t address = r->address; /* the next one that is free, or that this name has already */
            do {
                address = NAMES_LOW | ((address + 1) & NAMES_MASK);
            } while (o->stored && stored_find(o->stored, address, &at) && !stored_is(o->stored, at, r));
            name_move(k, &list[i], address);
            continue;
        } else {
            object_add(o, r, r->address);
        }
        last = r;
        *added = true;
    }
}

/* Reads the stored object of a names build, and makes space for n names more. */
static enum profd_status object_open(struct names_object *o, struct store *s, const struct new_name *list, size_t n,
                                     struct profd_error *e)
{
    ARENA_BOUNDARY(o->arena, profd_no_memory(e));
    const uint32_t uid = list[0].of->item.uid;
    const struct store_senders of = {.uids = &uid, .uid_count = 1};
    struct store_naming naming;
    uint8_t *bytes = NULL;
    size_t size = 0, more = sizeof FOREIGN_OTHER_NAMES;
    enum profd_status status = store_get_object(s, &of, type_of(list)->id.text, &bytes, &size, &naming, e);
    if (status && status != PROFD_NOT_FOUND) {
        return status;
    }
    if (!status) {
        struct arena_deferred deferred;
        arena_defer(o->arena, &deferred, free, bytes);
        status = object_decode(o->arena, bytes, size, &o->stored, e);
        arena_undefer(o->arena, &deferred);
        TRY(status);
    }
    const struct object *stored = o->stored;
    const uint32_t count = stored ? stored->symbol_count : 0, text = stored ? stored->name_bytes : 1;
    for (size_t i = 0; i < n; i++) {
        more += strlen(list[i].row->name) + strlen(list[i].row->file) + 2;
    }
    o->names = arena_take(o->arena, text + more);
    o->out.symbols = ARENA_ARRAY(o->arena, count + n + 1, struct object_symbol);
    if (stored) {
        memcpy(o->names, stored->names, text);
        memcpy(o->out.symbols, stored->symbols, count * sizeof *stored->symbols);
    }
    o->out.symbol_count = count;
    o->out.name_bytes = text;
    return PROFD_OK;
}

/* Replaces the stored object. */
static enum profd_status object_save(struct names_object *o, struct store *s, const struct new_name *of,
                                     struct profd_error *e)
{
    struct object_range range = {NAMES_LOW, 2 * NAMES_LOW, OBJECT_RANGE_TEXT};
    struct object *out = &o->out;
    uint8_t *bytes = NULL, digest[SHA256_DIGEST_SIZE];
    size_t size = 0;
    struct sha256_ctx c;
    struct store_object stored = {.id = type_of(of)->id,
                                  .uid = of->of->item.uid,
                                  .grows = true,
                                  .has_names = true,
                                  .name = of->of->parts->builds[type_of(of)->build].name,
                                  .note = "",
                                  .received = of->of->item.received};
    qsort(out->symbols, out->symbol_count, sizeof *out->symbols, compare_symbols);
    out->id = stored.id;
    out->bits = 64;
    out->position_independent = out->has_names = true;
    out->ranges = &range;
    out->range_count = 1;
    out->names = o->names;
    out->note = "";
    sha256_init(&c);
    sha256_update(&c, out->name_bytes, (const uint8_t *)o->names);
    sha256_digest(&c, sizeof digest, digest);
    hex_put(out->variant, digest, sizeof digest);
    memcpy(stored.variant, out->variant, sizeof stored.variant);
    TRY(bounds_encode(out, o->arena, &stored.bounds, &stored.bounds_size, e));
    TRY(object_encode(out, &bytes, &size, e));
    stored.encoded = bytes;
    stored.encoded_size = size;
    enum profd_status status = store_put_object(s, &stored, e);
    free(bytes);
    return status;
}

/* Key of a stored name: that of the name, and its address. */
static void known_key(const struct foreign_name *r, uint8_t out[24])
{
    memcpy(out, r->key, sizeof r->key);
    memcpy(out + sizeof r->key, &r->address, sizeof r->address);
}

/* Stores the names of one names build. Profiles whose names cannot be stored get the reason. */
static void store_names(struct foreign_names *k, struct store *s, const struct new_name *list, size_t n)
{
    struct names_object o = {.arena = arena_new(NAMES_MEMORY)};
    struct profd_error e;
    bool added = false;
    enum profd_status status = o.arena ? object_open(&o, s, list, n, &e) : profd_no_memory(&e);
    if (!status) {
        if (!o.stored) { /* an earlier object with names that are known may have been deleted */
            hashmap_clear(&k->known);
        }
        object_grow(k, &o, list, n, &added);
        status = added ? object_save(&o, s, list, &e) : PROFD_OK;
    }
    for (size_t i = 0; i < n; i++) {
        struct ingest_item *item = &list[i].of->item;
        uint8_t key[24];
        known_key(list[i].row, key);
        if (status && !item->status) {
            item->status = status;
            item->error = e;
        } else if (!item->status && !hashmap_find(&k->known, key, sizeof key)) {
            (void)hashmap_put(&k->known, key, sizeof key, "", 1); /* a name that is missing here is looked for again */
        }
    }
    arena_free(o.arena);
}

/* Lists the names of a profile that are not known to be stored. */
static size_t list_new(struct foreign_names *k, struct store *s, struct foreign *f, struct new_name *out)
{
    const struct foreign_parts *p = f->parts;
    bool stored[FOREIGN_TYPES_MOST] = {false}; /* its object may have been deleted since */
    size_t n = 0;
    for (uint32_t i = 0; i < p->type_count; i++) {
        if (store_has_object(s, f->item.uid, p->types[i].id.text, &stored[i], NULL)) {
            stored[i] = false;
        }
    }
    for (uint32_t i = 0; i < p->row_count; i++) {
        uint8_t key[24];
        known_key(&p->rows[i], key);
        if (!stored[p->rows[i].type] || !hashmap_find(&k->known, key, sizeof key)) {
            out[n++] = (struct new_name){f, &p->rows[i]};
        }
    }
    return n;
}

void foreign_batch(struct foreign_names *k, struct store *s, uint64_t generation, const struct profd_error *full,
                   struct foreign *const *list, size_t n)
{
    size_t rows = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        rows += list[i]->item.status ? 0 : list[i]->parts->row_count;
    }
    struct ingest_item **items = malloc((n + 1) * sizeof(struct ingest_item *));
    struct new_name *names = malloc((rows + 1) * sizeof *names);
    struct profd_error e;
    enum profd_status refused = full ? PROFD_FULL : PROFD_OK;
    if (!items || !names) {
        refused = profd_no_memory(&e);
        full = &e;
    }
    for (size_t i = 0; i < n; i++) {
        struct ingest_item *item = &list[i]->item;
        if (refused && !item->status) {
            item->status = refused;
            item->error = *full;
        } else if (!item->status) {
            count += list_new(k, s, list[i], names + count);
        }
    }
    if (names && count > 0) {
        qsort(names, count, sizeof *names, compare_new);
    }
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && strcmp(type_of(&names[to])->id.text, type_of(&names[from])->id.text) == 0;) {
            to++;
        }
        store_names(k, s, names + from, to - from);
    }
    for (size_t i = 0; items && i < n; i++) {
        items[i] = &list[i]->item;
    }
    if (items) {
        ingest_batch(s, generation, items, n);
    }
    free(items);
    free(names);
}
