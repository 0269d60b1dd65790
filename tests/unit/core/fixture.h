/* Objects and profiles made by hand, for the tests of core. Nothing is checked here but capacity. */
#ifndef PROFD_TESTS_CORE_FIXTURE_H
#define PROFD_TESTS_CORE_FIXTURE_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/object.h"
#include "core/profile.h"
#include "core/report.h"
#include "tests/profile_sum.h"

#define FIXTURE_MOST 512
#define FIXTURE_NAMES 16384
#define FIXTURE_STACKS 4096

struct fixture {
    struct object object;
    struct object_symbol symbols[FIXTURE_MOST];
    struct object_range ranges[16];
    struct object_arc arcs[FIXTURE_MOST];
    struct object_plt plt[64];
    char names[FIXTURE_NAMES];
};

static inline void fixture_init(struct fixture *f, const char *id)
{
    memset(f, 0, sizeof *f);
    memset(f->object.variant, 'a', 64);
    memcpy(f->object.id.text, id, strlen(id));
    f->object.bits = 64;
    f->object.machine = 62;
    f->object.has_names = true;
    f->object.symbols = f->symbols;
    f->object.ranges = f->ranges;
    f->object.arcs = f->arcs;
    f->object.plt = f->plt;
    f->object.names = f->names;
    f->object.name_bytes = 1;
    f->object.note = "";
}

static inline uint32_t fixture_name(struct fixture *f, const char *name)
{
    uint32_t at = f->object.name_bytes;
    size_t n = strlen(name) + 1;
    cr_assert_lt(at + n, FIXTURE_NAMES);
    memcpy(f->names + at, name, n);
    f->object.name_bytes += (uint32_t)n;
    return at;
}

static inline struct object_symbol *fixture_symbol(struct fixture *f, const char *name, uint64_t address, uint64_t size,
                                                   enum object_bind bind, enum object_type type)
{
    cr_assert_lt(f->object.symbol_count, FIXTURE_MOST);
    struct object_symbol *s = &f->symbols[f->object.symbol_count++];
    s->name = s->demangled = fixture_name(f, name);
    s->address = address;
    s->size = size;
    s->bind = (uint8_t)bind;
    s->type = (uint8_t)type;
    s->flags = OBJECT_SYMBOL_EXECUTABLE;
    return s;
}

static inline void fixture_function(struct fixture *f, const char *name, uint64_t address, uint64_t size)
{
    fixture_symbol(f, name, address, size, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
}

static inline void fixture_range(struct fixture *f, enum object_range_kind kind, uint64_t low, uint64_t high)
{
    f->ranges[f->object.range_count++] = (struct object_range){low, high, (uint8_t)kind};
}

static inline void fixture_arc(struct fixture *f, uint64_t from, uint64_t to, const char *import)
{
    f->arcs[f->object.arc_count++] =
        (struct object_arc){from, to, import == NULL ? 0 : fixture_name(f, import), OBJECT_ARC_CALL};
}

static inline void fixture_plt(struct fixture *f, uint64_t address, uint32_t size, const char *import)
{
    f->plt[f->object.plt_count++] = (struct object_plt){address, size, fixture_name(f, import)};
}

/* One upload in the making. */
struct upload {
    struct counts counts;
    struct counts_histogram histograms[16];
    uint32_t bin_index[FIXTURE_MOST];
    uint64_t bin_ticks[FIXTURE_MOST];
    uint32_t from_build[FIXTURE_MOST], to_build[FIXTURE_MOST];
    uint64_t from[FIXTURE_MOST], to[FIXTURE_MOST], calls[FIXTURE_MOST];
};

static inline void upload_init(struct upload *u)
{
    memset(u, 0, sizeof *u);
    u->counts = (struct counts){.histograms = u->histograms,
                                .bin_index = u->bin_index,
                                .bin_ticks = u->bin_ticks,
                                .from_build = u->from_build,
                                .to_build = u->to_build,
                                .from = u->from,
                                .to = u->to,
                                .calls = u->calls};
}

static inline void upload_histogram(struct upload *u, uint32_t build, uint64_t low, uint64_t high, uint32_t bins,
                                    uint32_t rate)
{
    struct counts_histogram *h = &u->histograms[u->counts.histogram_count++];
    *h = (struct counts_histogram){.build = build,
                                   .bins = bins,
                                   .low = low,
                                   .high = high,
                                   .rate = rate,
                                   .dimension = "seconds",
                                   .abbreviation = 's',
                                   .first = u->counts.bin_count};
}

/* Into the histogram begun last, by ascending bin. */
static inline void upload_bin(struct upload *u, uint32_t bin, uint64_t ticks)
{
    cr_assert_lt(u->counts.bin_count, FIXTURE_MOST);
    u->bin_index[u->counts.bin_count] = bin;
    u->bin_ticks[u->counts.bin_count++] = ticks;
    u->histograms[u->counts.histogram_count - 1].used++;
}

static inline void upload_arc(struct upload *u, uint32_t from_build, uint64_t from, uint32_t to_build, uint64_t to,
                              uint64_t calls)
{
    uint32_t i = u->counts.arc_count++;
    cr_assert_lt(i, FIXTURE_MOST);
    u->from_build[i] = from_build;
    u->from[i] = from;
    u->to_build[i] = to_build;
    u->to[i] = to;
    u->calls[i] = calls;
}

/* The profile of one upload that speaks of n builds. */
static inline struct profile *upload_profile(struct upload *u, struct arena *a, const char *const *builds, uint32_t n)
{
    struct profile_sum *s = profile_sum_new(a);
    struct profile *p = NULL;
    uint32_t map[16];
    for (uint32_t i = 0; i < n; i++) {
        map[i] = profile_sum_build(s, builds[i]);
    }
    profile_sum_load_order(s, map, n, 1);
    profile_sum_add(s, &u->counts, map, 1);
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    return p;
}

/* Stacks by hand, in preorder. Shares go to one group unless another is given. */
struct fixture_stacks {
    struct counts_tree trees[8];
    uint32_t tree_count, count;
    uint8_t depth[FIXTURE_STACKS], kind[FIXTURE_STACKS];
    uint32_t build[FIXTURE_STACKS];
    uint64_t address[FIXTURE_STACKS], ticks[FIXTURE_STACKS], shares[FIXTURE_STACKS * 16];
};

static inline void stacks_tree(struct fixture_stacks *s, uint32_t rate, const char *dimension)
{
    struct counts_tree *t = &s->trees[s->tree_count++];
    *t = (struct counts_tree){.rate = rate, .abbreviation = 's', .first = s->count};
    memcpy(t->dimension, dimension, strlen(dimension));
}

/* Into the tree begun last. Returns its place. */
static inline uint32_t stacks_node(struct fixture_stacks *s, uint32_t depth, uint8_t kind, uint32_t build,
                                   uint64_t address, uint64_t ticks)
{
    uint32_t i = s->count++;
    cr_assert_lt(i, FIXTURE_STACKS);
    s->trees[s->tree_count - 1].used++;
    s->depth[i] = (uint8_t)depth;
    s->kind[i] = kind;
    s->build[i] = build;
    s->address[i] = address;
    s->ticks[i] = ticks;
    return i;
}

static inline void stacks_attach(struct fixture_stacks *s, struct profile *p, bool shares)
{
    p->counts.tree_count = s->tree_count;
    p->counts.node_count = s->count;
    p->counts.trees = s->trees;
    p->counts.node_depth = s->depth;
    p->counts.node_kind = s->kind;
    p->counts.node_build = s->build;
    p->counts.node_address = s->address;
    p->counts.node_ticks = s->ticks;
    p->shares.nodes = shares ? s->shares : NULL;
}

static inline const struct report_function *report_named(const struct report *r, const char *name)
{
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (strcmp(r->functions[i].name, name) == 0) {
            return &r->functions[i];
        }
    }
    return NULL;
}

/* Row whose other end has that name, NULL if there is none. */
static inline const struct report_arc *report_row(const struct report *r, const struct report_arc *rows, uint32_t n,
                                                  const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(r->functions[rows[i].other].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

#endif
