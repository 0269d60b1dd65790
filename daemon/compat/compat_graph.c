#include "compat/compat_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "proto/sort.h"

/* Records of one range. */
struct range_group {
    uint64_t low, high;
    uint32_t records; /* how many */
    uint32_t last;    /* latest record of the group; its other records are found by its range */
    uint32_t size;    /* bins of the first record */
    uint64_t bins;    /* non-zero bins of all its records */
};

/* Checks the record by gprof's rules, and adds it to the group of its range. CONFLICT: it differs from the first record
 * in a way that gprof refuses, or overlaps another range. */
static enum profd_status group_add(struct range_group *groups, uint32_t *count, const struct counts *c, uint32_t record,
                                   struct profd_error *e)
{
    const struct counts_histogram *first = &c->histograms[0], *h = &c->histograms[record];
    FAIL_IF(strncmp(first->dimension, h->dimension, 15) != 0, e, PROFD_CONFLICT,
            "dimension unit changed between histogram records: %.15s, then %.15s", first->dimension, h->dimension);
    FAIL_IF(first->abbreviation != h->abbreviation, e, PROFD_CONFLICT,
            "dimension abbreviation changed between histogram records: %c, then %c", first->abbreviation,
            h->abbreviation);
    FAIL_IF(fabs(compat_hist_scale(first) - compat_hist_scale(h)) > 0.000001, e, PROFD_CONFLICT,
            "different scales in histogram records: %.9g, then %.9g bytes a bin", 2 * compat_hist_scale(first),
            2 * compat_hist_scale(h));
    const struct range_group *met = NULL;
    for (uint32_t i = 0; i < *count; i++) {
        struct range_group *g = &groups[i];
        if (g->low == h->low && g->high == h->high) {
            g->records++;
            g->last = record;
            g->bins += h->used;
            return PROFD_OK;
        }
        if (h->low < g->high && g->low < h->high && h->low < h->high && g->low < g->high && met == NULL) {
            met = g;
        }
    }
    FAIL_IF(met != NULL, e, PROFD_CONFLICT,
            "overlapping histogram records: 0x%" PRIx64 " to 0x%" PRIx64 ", then 0x%" PRIx64 " to 0x%" PRIx64, met->low,
            met->high, h->low, h->high);
    groups[(*count)++] = (struct range_group){h->low, h->high, 1, record, h->bins, h->used};
    return PROFD_OK;
}

/* Divides the ticks of a range among the symbols. gprof gives the last symbol no end, so it gets no ticks. */
static void bins_apportion(const struct compat_hist_range *b, const struct compat_symbols *s,
                           const struct compat_filter *f, struct compat_hist *h)
{
    uint64_t low = b->low / 2;
    uint32_t first = 0; /* symbols before it end before the current bin */
    for (uint64_t i = 0; i < b->used; i++) {
        if (b->ticks[i] == 0) {
            continue;
        }
        double ticks = (double)b->ticks[i];
        h->total += ticks;
        if (isnan(h->scale)) { /* the first record is empty and has no bins: gprof's bins then are behind all symbols */
            continue;
        }
        uint64_t bin_low = low + (uint64_t)(h->scale * (double)b->index[i]);
        uint64_t bin_high = low + (uint64_t)(h->scale * (double)((uint64_t)b->index[i] + 1));
        for (uint32_t j = first; j + 1 < s->count && s->address[j] / 2 <= bin_high; j++) {
            uint64_t start = s->address[j] / 2, stop = s->address[j + 1] / 2;
            if (bin_low >= stop) {
                first = j + 1;
                continue;
            }
            uint64_t overlap = (bin_high < stop ? bin_high : stop) - (bin_low > start ? bin_low : start);
            if (overlap == 0) {
                continue;
            }
            double credit = (double)overlap * ticks / h->scale;
            if (compat_filter_on(f, COMPAT_FLAT, j)) {
                h->time[j] += credit;
            } else {
                h->total -= credit;
            }
        }
    }
}

enum profd_status compat_hist_assign(const struct counts *c, const struct compat_symbols *s,
                                     const struct compat_filter *f, struct arena *a, struct compat_hist *out,
                                     struct profd_error *e)
{
    struct compat_hist h = {.time = ARENA_ARRAY(a, s->count, double)};
    struct range_group *groups = ARENA_ARRAY(a, (size_t)c->histogram_count + 1, struct range_group);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        TRY(group_add(groups, &count, c, i, e));
    }
    h.ranges = ARENA_ARRAY(a, (size_t)count + 1, struct compat_hist_range);
    if (count > 0) {
        const struct counts_histogram *first = &c->histograms[0];
        h.scale = compat_hist_scale(first);
        h.rate = first->rate;
        memcpy(h.dimension, first->dimension, 15);
        h.abbreviation = first->abbreviation;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct range_group *g = &groups[i];
        const struct counts_histogram *only = &c->histograms[g->last];
        struct compat_hist_range *r = &h.ranges[h.range_count++];
        *r = (struct compat_hist_range){
            g->low, g->high, g->size, only->used, c->bin_index + only->first, c->bin_ticks + only->first};
        if (g->records > 1) {
            /* The bins of all records of the range, each added up once. */
            struct sort_item *items = ARENA_ARRAY(a, 2 * g->bins + 1, struct sort_item);
            uint32_t *index = ARENA_ARRAY(a, g->bins + 1, uint32_t);
            uint64_t *ticks = ARENA_ARRAY(a, g->bins + 1, uint64_t), n = 0, kept = 0;
            for (uint32_t k = 0; k < c->histogram_count; k++) {
                const struct counts_histogram *one = &c->histograms[k];
                const uint32_t used = one->low == g->low && one->high == g->high ? one->used : 0;
                for (uint32_t j = one->first; j < one->first + used; j++) {
                    items[n++] = (struct sort_item){c->bin_index[j], j};
                }
            }
            sort_radix(items, items + n, n);
            for (uint64_t k = 0; k < n; k++) {
                const uint64_t here = c->bin_ticks[items[k].value];
                if (kept > 0 && index[kept - 1] == items[k].key) {
                    ticks[kept - 1] = ticks[kept - 1] > UINT64_MAX - here ? UINT64_MAX : ticks[kept - 1] + here;
                } else {
                    index[kept] = (uint32_t)items[k].key;
                    ticks[kept++] = here;
                }
            }
            r->used = kept;
            r->index = index;
            r->ticks = ticks;
        }
        bins_apportion(r, s, f, &h);
    }
    *out = h;
    return PROFD_OK;
}

/* e_machine; <elf.h> belongs to elf/. */
enum { EM_386 = 3, EM_X86_64 = 62, EM_AARCH64 = 183 };

struct code_scan {
    const struct object *object;
    const struct compat_symbols *symbols;
    const struct compat_hist *hist;
    struct arena *arena;
    struct compat_calls calls;
    uint32_t capacity;
};

bool compat_calls_possible(const struct object *o)
{
    return o->machine == EM_386 || o->machine == EM_X86_64 || o->machine == EM_AARCH64;
}

/* Adds a call to the symbol that begins at the address, if a histogram covers it. gprof looks up only the low 32 bits
 * of the address in the histograms. */
static void call_judge(struct code_scan *c, uint32_t parent, uint64_t to)
{
    bool covered = false;
    for (uint32_t i = 0; i < c->hist->range_count && !covered; i++) {
        covered = c->hist->ranges[i].low <= (uint32_t)to && (uint32_t)to < c->hist->ranges[i].high;
    }
    const uint32_t child = covered ? compat_symbols_find(c->symbols, to) : COMPAT_NONE;
    if (child == COMPAT_NONE || c->symbols->address[child] != to) {
        return;
    }
    uint32_t capacity = c->capacity; /* of both arrays */
    c->calls.parent = arena_extend(c->arena, c->calls.parent, c->calls.count, &capacity, sizeof *c->calls.parent);
    c->calls.child = arena_extend(c->arena, c->calls.child, c->calls.count, &c->capacity, sizeof *c->calls.child);
    c->calls.parent[c->calls.count] = parent;
    c->calls.child[c->calls.count++] = child;
}

static uint32_t word_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Scans the symbol's code inside .text. If several histograms cover parts of it, the first one is used. */
static void symbol_scan(struct code_scan *c, uint32_t v)
{
    const struct compat_hist_range *in = NULL;
    uint64_t low = c->symbols->address[v], high = c->symbols->address[v + 1];
    for (uint32_t i = 0; i < c->hist->range_count && in == NULL; i++) {
        const struct compat_hist_range *r = &c->hist->ranges[i];
        if ((r->low > low ? r->low : low) < (r->high < high ? r->high : high)) {
            in = r;
        }
    }
    if (in == NULL) {
        return;
    }
    const struct object *o = c->object;
    const uint64_t end = o->text_address + o->text_size;
    low = in->low > low ? in->low : low;
    high = in->high < high ? in->high : high;
    low = low < o->text_address ? o->text_address : low;
    high = high > end ? end : high;
    /* On AArch64 the scan begins at the symbol, even if it is not aligned to words. */
    const unsigned step = o->machine == EM_AARCH64 ? 4 : 1;
    for (uint64_t pc = low; pc < high; pc += step) {
        const uint8_t *p = o->text + (pc - o->text_address);
        if (step == 1) {
            if (*p == 0xe8 && end - pc >= 5) {
                call_judge(c, v, pc + 5 + word_get(p + 1));
            }
        } else if (end - pc < 4) {
            return;
        } else if ((word_get(p) & 0x7c000000) == 0x14000000) {
            uint64_t offset = (((uint64_t)(word_get(p) & 0x3ffffff) ^ 0x2000000) - 0x2000000) << 2;
            call_judge(c, v, pc + offset);
        }
    }
}

struct compat_calls compat_calls_find(const struct object *o, const struct compat_symbols *s,
                                      const struct compat_hist *h, struct arena *a)
{
    struct code_scan c = {.object = o, .symbols = s, .hist = h, .arena = a};
    const bool readable = compat_calls_possible(o) && o->text != NULL && o->text_size <= UINT64_MAX - o->text_address;
    for (uint32_t v = 0; readable && v + 1 < s->count; v++) {
        symbol_scan(&c, v);
    }
    return c.calls;
}

/* One record, or one call in the machine code, between two symbols. */
struct arc_met {
    uint32_t child;
    uint32_t number; /* in order of arrival */
    uint64_t calls;
};

/* State of all steps. from and to are the ends of all records in order of arrival; COMPAT_NONE: dropped. */
struct arc_tally {
    const struct counts *counts;
    const struct compat_symbols *symbols;
    const struct compat_filter *filter;
    const struct compat_calls *code; /* may be NULL */
    struct compat_arcs *r;
    uint32_t *from, *to;
    uint32_t met;         /* how many */
    uint32_t *arc_of;     /* arc that each record created */
    bool by_parent;       /* parents ascend, as in the file of one process */
    uint32_t *symbol;     /* a number for each symbol */
    struct arc_met *list; /* dealt out by parent */
};

/* Finds both ends of every record, and sums up the calls to each symbol. */
static void ends_find(struct arc_tally *t)
{
    const struct counts *c = t->counts;
    const struct compat_symbols *s = t->symbols;
    const uint32_t *callee = t->symbol;
    uint32_t from = COMPAT_NONE, last = 0;
    t->by_parent = t->met == c->arc_count;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        t->from[i] = COMPAT_NONE;
        if (c->from_build[i] == COUNTS_NOWHERE || c->to_build[i] == COUNTS_NOWHERE) {
            continue;
        }
        /* Records come sorted by caller, so that most have the owner of the one before. */
        const uint64_t address = c->from[i];
        if (from == COMPAT_NONE || from + 1 >= s->count || address < s->address[from] || address > s->end[from] ||
            address >= s->address[from + 1]) {
            from = compat_symbols_find(s, address);
        }
        uint32_t to = compat_symbols_find(s, c->to[i]);
        if (to != COMPAT_NONE) {
            to = callee[to];
        }
        if (from == COMPAT_NONE || to == COMPAT_NONE ||
            (t->filter != NULL && !compat_filter_arc(t->filter, s, from, to))) {
            continue;
        }
        t->r->total[to] += c->calls[i];
        t->by_parent = t->by_parent && from >= last;
        last = from;
        t->from[i] = from;
        t->to[i] = to;
    }
    for (uint32_t i = c->arc_count; i < t->met; i++) {
        t->from[i] = t->code->parent[i - c->arc_count];
        t->to[i] = t->code->child[i - c->arc_count];
    }
}

/* Makes one arc of all records of a pair. list then holds each arc's first record, at the arc's place. */
static void pairs_join(struct arc_tally *t)
{
    struct compat_arcs *r = t->r;
    const uint32_t symbols = t->symbols->count;
    uint32_t *first = r->child_first, *at = t->symbol;

    /* The records of each parent, in order of arrival, are list[first[v] … first[v + 1]). */
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->from[i] != COMPAT_NONE) {
            first[t->from[i]]++;
        }
    }
    for (uint32_t v = 0, sum = 0; v <= symbols; v++) {
        uint32_t n = first[v];
        first[v] = sum;
        sum += n;
    }
    for (uint32_t v = 0; v < symbols; v++) {
        at[v] = first[v];
    }
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->from[i] != COMPAT_NONE) {
            t->list[at[t->from[i]]++] =
                (struct arc_met){t->to[i], i, i < t->counts->arc_count ? t->counts->calls[i] : 0};
        }
    }

    uint32_t *arc = t->symbol; /* by child: the latest arc to it */
    for (uint32_t v = 0; v < symbols; v++) {
        arc[v] = COMPAT_NONE;
    }
    for (uint32_t v = 0, i = 0; v < symbols; v++) {
        uint32_t begin = r->count, end = first[v + 1];
        for (; i < end; i++) {
            struct arc_met m = t->list[i];
            uint32_t known = arc[m.child];
            if (known != COMPAT_NONE && known >= begin) {
                r->calls[known] += m.calls;
                continue;
            }
            arc[m.child] = r->count;
            r->child[r->count] = m.child;
            r->calls[r->count] = m.calls;
            t->list[r->count++].number = m.number;
        }
        first[v] = begin;
        end = r->count;
        while (end > begin && t->list[end - 1].number >= t->counts->arc_count) {
            end--;
        }
        r->recorded[v] = end;
    }
    first[symbols] = r->count;
}

static void parent_add(struct arc_tally *t, uint32_t arc, uint32_t parent, uint32_t child)
{
    uint32_t to = t->symbol[child]++;
    t->r->parent[to] = parent;
    t->r->parent_calls[to] = t->r->calls[arc];
}

/* Lists the arcs of each child in order of arrival. */
static void parents_deal(struct arc_tally *t)
{
    struct compat_arcs *r = t->r;
    uint32_t *first = r->parent_first, *at = t->symbol, symbols = t->symbols->count;
    for (uint32_t i = 0; i < r->count; i++) {
        first[r->child[i]]++;
    }
    for (uint32_t v = 0, sum = 0; v <= symbols; v++) {
        uint32_t n = first[v];
        first[v] = sum;
        if (v < symbols) {
            at[v] = sum;
        }
        sum += n;
    }
    if (t->by_parent) {
        for (uint32_t v = 0; v < symbols; v++) {
            for (uint32_t i = r->child_first[v]; i < r->child_first[v + 1]; i++) {
                parent_add(t, i, v, r->child[i]);
            }
        }
        return;
    }
    /* Uses for each record the arc that it created. */
    for (uint32_t i = 0; i < t->met; i++) {
        t->arc_of[i] = COMPAT_NONE;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        t->arc_of[t->list[i].number] = i;
    }
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->arc_of[i] != COMPAT_NONE) {
            parent_add(t, t->arc_of[i], t->from[i], t->to[i]);
        }
    }
}

enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e)
{
    struct compat_arcs r = {0};
    uint64_t most = (uint64_t)c->arc_count + (calls != NULL ? calls->count : 0);
    FAIL_IF(most >= UINT32_MAX, e, PROFD_LIMIT, "there may be at most 4294967294 arcs, not %llu",
            (unsigned long long)most);
    size_t n = (size_t)most + 1;
    struct arc_tally t = {.counts = c, .symbols = s, .filter = f, .code = calls, .r = &r, .met = (uint32_t)most};
    t.from = ARENA_ARRAY(a, n, uint32_t);
    t.to = ARENA_ARRAY(a, n, uint32_t);
    t.arc_of = ARENA_ARRAY(a, n, uint32_t);
    t.symbol = ARENA_ARRAY(a, s->count, uint32_t);
    t.list = ARENA_ARRAY(a, n, struct arc_met);
    r.child = ARENA_ARRAY(a, n, uint32_t);
    r.calls = ARENA_ARRAY(a, n, uint64_t);
    r.parent = ARENA_ARRAY(a, n, uint32_t);
    r.parent_calls = ARENA_ARRAY(a, n, uint64_t);
    r.total = ARENA_ARRAY(a, s->count, uint64_t);
    r.recorded = ARENA_ARRAY(a, s->count, uint32_t);
    r.child_first = ARENA_ARRAY(a, (size_t)s->count + 1, uint32_t);
    r.parent_first = ARENA_ARRAY(a, (size_t)s->count + 1, uint32_t);
    /* By symbol: the function that counts the calls to it, which is the symbol itself or the nearest function before
     * it. */
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if ((s->flags[i] & COMPAT_SYMBOL_FUNCTION) != 0) {
            last = i;
        }
        t.symbol[i] = last;
    }
    ends_find(&t);
    pairs_join(&t);
    parents_deal(&t);
    *out = r;
    return PROFD_OK;
}

/* Follows the newest arc of a symbol first. stack is the path of the walk. heads are the symbols on the path that are
 * not part of a cycle's list yet, in the same order. Each head starts a list of members, linked by next. */
struct cycle_walk {
    const struct compat_arcs *arcs;
    uint32_t *entered; /* rank of the visit; 0: not visited */
    uint32_t *cursor;  /* place after the next arc */
    uint32_t *next, *tail;
    uint32_t *top;  /* rank of the component, callees first; 0: not finished */
    uint32_t *lead; /* head of the finished component */
    uint32_t *stack, *heads;
    uint32_t depth, head_count, visits, components;
};

static void walk_enter(struct cycle_walk *w, uint32_t v)
{
    w->entered[v] = ++w->visits;
    w->cursor[v] = w->arcs->child_first[v + 1];
    w->next[v] = COMPAT_NONE;
    w->tail[v] = v;
    w->stack[w->depth++] = v;
    w->heads[w->head_count++] = v;
}

static void walk_from(struct cycle_walk *w, uint32_t root)
{
    walk_enter(w, root);
    while (w->depth > 0) {
        const uint32_t v = w->stack[w->depth - 1];
        if (w->cursor[v] > w->arcs->child_first[v]) {
            const uint32_t child = w->arcs->child[--w->cursor[v]];
            if (w->entered[child] == 0) {
                walk_enter(w, child);
            } else if (w->top[child] == 0) {
                /* The arc leads back: all heads above the child's head join its list, in the order of the path. */
                uint32_t keep = w->head_count - 1;
                while (w->entered[w->heads[keep]] > w->entered[child]) {
                    keep--;
                }
                const uint32_t head = w->heads[keep];
                for (uint32_t i = keep + 1; i < w->head_count; i++) {
                    w->next[w->tail[head]] = w->heads[i];
                    w->tail[head] = w->tail[w->heads[i]];
                }
                w->head_count = keep + 1;
            }
            continue;
        }
        w->depth--;
        if (w->heads[w->head_count - 1] == v) {
            w->head_count--;
            w->components++;
            for (uint32_t m = v; m != COMPAT_NONE; m = w->next[m]) {
                w->top[m] = w->components;
                w->lead[m] = v;
            }
        }
    }
}

struct compat_cycles compat_cycles_find(const struct compat_arcs *arcs, uint32_t symbols, struct arena *a)
{
    struct cycle_walk w = {.arcs = arcs};
    struct compat_cycles r = {0};
    size_t n = (size_t)symbols + 1;
    uint32_t **const arrays[] = {&w.entered, &w.cursor, &w.next,   &w.tail,         &w.top,     &w.lead,
                                 &w.stack,   &w.heads,  &r.number, &r.member_first, &r.members, &r.order};
    for (unsigned i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = ARENA_ARRAY(a, n, uint32_t);
    }
    for (uint32_t v = 0; v < symbols; v++) {
        if (w.entered[v] == 0) {
            walk_from(&w, v);
        }
    }
    /* Numbers the cycles in the table order of their heads, and lists their members. */
    uint32_t at = 0;
    for (uint32_t v = 0; v < symbols; v++) {
        if (w.lead[v] != v || w.next[v] == COMPAT_NONE) {
            continue;
        }
        r.member_first[r.count++] = at;
        for (uint32_t m = v; m != COMPAT_NONE; m = w.next[m]) {
            r.members[at++] = m;
            r.number[m] = r.count;
        }
    }
    r.member_first[r.count] = at;

    /* The order of the symbols: by component, inside a component in table order. The stack has room for a place of each
     * component. */
    uint32_t *place = w.stack;
    for (uint32_t i = 0; i <= w.components; i++) {
        place[i] = 0;
    }
    for (uint32_t v = 0; v < symbols; v++) {
        place[w.top[v]]++;
    }
    for (uint32_t i = 1; i <= w.components; i++) {
        place[i] += place[i - 1];
    }
    for (uint32_t v = symbols; v-- > 0;) {
        r.order[--place[w.top[v]]] = v;
    }
    return r;
}

#define SMALL 24u /* up to this number, names are sorted by insertion */

/* The names at [begin, end) of the order are equal in their first depth bytes, and none ends there. */
struct stretch {
    uint32_t begin, end;
    size_t depth;
};

static void insert(const char *const *names, struct sort_item *items, size_t n, size_t depth)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_item item = items[i];
        const char *name = names[item.value] + depth;
        size_t j = i;
        for (; j > 0 && strcmp(names[items[j - 1].value] + depth, name) > 0; j--) {
            items[j] = items[j - 1];
        }
        items[j] = item;
    }
}

uint32_t *compat_names_order(const char *const *names, uint32_t n, struct arena *a)
{
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t), height = 0;
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    /* Ranges on the stack do not overlap. */
    struct stretch *stack = ARENA_ARRAY(a, (size_t)n / SMALL + 2, struct stretch);
    for (uint32_t i = 0; i < n; i++) {
        items[i].value = i;
    }
    stack[height++] = (struct stretch){0, n, 0};
    while (height > 0) {
        const struct stretch s = stack[--height];
        /* Sorts by the next eight bytes as a big-endian number, with zeros after the end of the name. */
        for (uint32_t i = s.begin; i < s.end; i++) {
            const char *name = names[items[i].value] + s.depth;
            uint64_t key = 0;
            for (unsigned k = 0, ended = 0; k < 8; k++) {
                ended = ended || name[k] == '\0';
                key = key << 8 | (ended ? 0 : (unsigned char)name[k]);
            }
            items[i].key = key;
        }
        sort_radix(items + s.begin, scratch, s.end - s.begin);
        for (uint32_t begin = s.begin, i = s.begin + 1; i <= s.end; i++) {
            if (i < s.end && items[i].key == items[begin].key) {
                continue;
            }
            /* If the key contains a zero, these names end here and are equal. */
            const bool unsorted = i - begin > 1 && (items[begin].key & 255) != 0;
            if (unsorted && i - begin <= SMALL) {
                insert(names, items + begin, i - begin, s.depth + 8);
            } else if (unsorted) {
                stack[height++] = (struct stretch){begin, i, s.depth + 8};
            }
            begin = i;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = items[i].value;
    }
    return order;
}

/* Context of the comparisons. */
struct view {
    const struct compat_graph *g;
    const struct compat_symbols *symbols;
};

static double total_of(const struct compat_node *n)
{
    return compat_node_share(n) + n->child_share;
}

static int name_compare(const struct view *w, uint32_t x, uint32_t y)
{
    return strcmp(w->symbols->raw[x], w->symbols->raw[y]);
}

/* gprof's comparisons, unchanged: if times are NaN they contradict each other, and the result depends on which pairs
 * are compared. */
static int node_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct view *w = context;
    const struct compat_node *a = &w->g->node[x], *b = &w->g->node[y];
    double difference = total_of(a) - total_of(b);
    if (difference < 0.0 || difference > 0.0) {
        return difference < 0.0 ? 1 : -1;
    }
    bool x_cycle = x >= w->g->symbols, y_cycle = y >= w->g->symbols;
    if (x_cycle || y_cycle) {
        return x_cycle && y_cycle ? 0 : x_cycle ? -1 : 1;
    }
    bool x_low = w->symbols->raw[x][0] == '_', y_low = w->symbols->raw[y][0] == '_';
    if (x_low != y_low) {
        return x_low ? 1 : -1;
    }
    if (a->calls != b->calls) {
        return a->calls > b->calls ? -1 : 1;
    }
    return name_compare(w, x, y);
}

static int flat_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct view *w = context;
    const struct compat_node *a = &w->g->node[x], *b = &w->g->node[y];
    if (a->time < b->time || a->time > b->time) {
        return a->time > b->time ? -1 : 1;
    }
    if (a->calls != b->calls) {
        return a->calls > b->calls ? -1 : 1;
    }
    return name_compare(w, x, y);
}

/* Descending; −0 is 0. */
static uint64_t time_key(double time)
{
    return ~sort_key_double(time + 0.0);
}

void compat_order_nodes(struct compat_graph *g, const struct compat_symbols *s, struct arena *a)
{
    uint32_t n = g->nodes, cycles = g->nodes - g->symbols;
    struct view w = {g, s};
    if (!g->orderly) {
        for (uint32_t i = 0; i < n; i++) {
            g->listing[i] = i;
        }
        compat_sort(g->listing, ARENA_ARRAY(a, n, uint32_t), n, node_compare, &w);
        return;
    }
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    /* Sorts by the least significant key first. */
    for (uint32_t i = 0; i < g->symbols; i++) {
        items[i] = (struct sort_item){~g->node[g->by_name[i]].calls, g->by_name[i]};
    }
    sort_radix(items, scratch, g->symbols);
    memmove(items + cycles, items, g->symbols * sizeof *items);
    for (uint32_t i = 0; i < cycles; i++) {
        items[i] = (struct sort_item){0, g->symbols + i};
    }
    for (uint32_t i = cycles; i < n; i++) {
        items[i].key = s->raw[items[i].value][0] == '_';
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = time_key(total_of(&g->node[items[i].value]));
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        g->listing[i] = items[i].value;
    }
}

void compat_order_flat(const struct compat_graph *g, const struct compat_symbols *s, uint32_t *list, uint32_t n,
                       struct arena *a)
{
    struct view w = {g, s};
    if (!g->orderly) {
        compat_sort(list, ARENA_ARRAY(a, n, uint32_t), n, flat_compare, &w);
        return;
    }
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    bool *listed = ARENA_ARRAY(a, g->symbols, bool);
    for (uint32_t i = 0; i < n; i++) {
        listed[list[i]] = true;
    }
    for (uint32_t i = 0, k = 0; i < g->symbols; i++) {
        if (listed[g->by_name[i]]) {
            items[k++] = (struct sort_item){~g->node[g->by_name[i]].calls, g->by_name[i]};
        }
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = time_key(g->node[items[i].value].time);
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = items[i].value;
    }
}

struct graph_building {
    const struct compat_filter *filter;
    const struct compat_arcs *arcs;
    const struct compat_cycles *cycles;
    struct compat_graph *g;
    struct compat_node *node;
};

/* Propagates from v's callers to node, which is v or v's cycle; newest arc first. */
static void node_inherit(const struct graph_building *b, uint32_t v, uint32_t node)
{
    struct compat_node *to = &b->node[node];
    for (uint32_t i = b->arcs->parent_first[v + 1]; i-- > b->arcs->parent_first[v];) {
        uint32_t parent = b->arcs->parent[i];
        const struct compat_node *from = &b->node[parent];
        if (parent == v || from->place == node) {
            continue;
        }
        to->shown |= from->shown;
        if (to->calls != 0) {
            to->fraction += from->fraction * ((double)b->arcs->parent_calls[i] / (double)to->calls);
        }
    }
}

/* Sets what is shown and which share of its time is propagated, callers first. The members of a cycle have what the
 * cycle has. The filters override what was inherited; they are not applied to a cycle as a whole, so that one without
 * callers stays hidden. */
static void fractions_inherit(const struct graph_building *b)
{
    const struct compat_filter *f = b->filter;
    const struct compat_cycles *c = b->cycles;
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = b->g->symbols; i-- > 0;) {
        const uint32_t v = c->order[i], node = b->node[v].place;
        struct compat_node *n = &b->node[v];
        if (node != last && node == v) {
            node_inherit(b, v, v);
        } else if (node != last) {
            const uint32_t *first = c->member_first + (node - b->g->symbols);
            for (uint32_t m = first[0]; m < first[1]; m++) {
                node_inherit(b, c->members[m], node);
            }
            for (uint32_t m = first[0]; m < first[1]; m++) {
                b->node[c->members[m]].shown = b->node[node].shown;
                b->node[c->members[m]].fraction = b->node[node].fraction;
            }
        }
        last = node;
        if (!n->shown) {
            n->shown = compat_filter_on(f, COMPAT_GRAPH, v);
        } else if (compat_filter_excludes(f, COMPAT_GRAPH, v) && !compat_filter_includes(f, COMPAT_GRAPH, v)) {
            n->shown = false;
        }
        if (n->fraction == 0.0) {
            if (compat_filter_on(f, COMPAT_TIME, v)) {
                n->fraction = 1.0;
            }
        } else if (compat_filter_excludes(f, COMPAT_TIME, v) && !compat_filter_includes(f, COMPAT_TIME, v)) {
            n->fraction = 0.0;
        }
        b->g->print_time += compat_node_share(n);
    }
}

/* Returns the node that passes time along the arc; NULL if the arc carries no time. */
static const struct compat_node *arc_source(const struct compat_node *node, uint32_t parent, uint32_t child,
                                            uint64_t calls)
{
    if (calls == 0 || child == parent || node[child].fraction == 0.0) {
        return NULL;
    }
    uint32_t place = node[child].place;
    return place == node[parent].place || node[place].calls == 0 ? NULL : &node[place];
}

struct compat_flow compat_graph_flow(const struct compat_graph *g, uint32_t parent, uint32_t child, uint64_t calls)
{
    double fraction = g->node[parent].fraction;
    const struct compat_node *source = fraction == 0.0 ? NULL : arc_source(g->node, parent, child, calls);
    if (source == NULL) {
        return (struct compat_flow){0.0, 0.0};
    }
    double part = (double)calls / (double)source->calls;
    double self = source->time * part, below = source->child * part;
    return (struct compat_flow){self * fraction, below * fraction};
}

void compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f, const struct compat_hist *hist,
                        const struct compat_arcs *arcs, const struct compat_cycles *cycles, struct arena *a,
                        struct compat_graph *out)
{
    struct compat_graph g = {.symbols = s->count, .nodes = s->count + cycles->count};
    struct compat_node *node = g.node = ARENA_ARRAY(a, g.nodes, struct compat_node);
    g.listing = ARENA_ARRAY(a, g.nodes, uint32_t);
    for (uint32_t v = 0; v < g.nodes; v++) {
        node[v].place = v;
    }
    for (uint32_t v = 0; v < g.symbols; v++) {
        node[v].time = hist->time[v];
        node[v].calls = arcs->total[v];
        node[v].place = cycles->number[v] == 0 ? v : g.symbols + cycles->number[v] - 1;
    }

    /* A function's calls of itself are not calls from others. Calls between the members of a cycle are calls of the
     * cycle by itself. */
    for (uint32_t child = 0; child < g.symbols; child++) {
        const uint32_t place = node[child].place;
        for (uint32_t i = arcs->parent_first[child]; i < arcs->parent_first[child + 1]; i++) {
            const uint32_t parent = arcs->parent[i];
            const uint64_t calls = arcs->parent_calls[i];
            if (parent == child) {
                node[child].calls -= calls;
                node[child].self_calls = calls;
            } else if (place != child) {
                *(node[parent].place == place ? &node[place].self_calls : &node[place].calls) += calls;
            }
        }
    }
    fractions_inherit(&(struct graph_building){f, arcs, cycles, &g, node});
    for (uint32_t c = 0; c < cycles->count; c++) {
        for (uint32_t i = cycles->member_first[c]; i < cycles->member_first[c + 1]; i++) {
            if (node[cycles->members[i]].fraction != 0.0) {
                node[g.symbols + c].time += node[cycles->members[i]].time;
            }
        }
    }

    /* Times go to the callers, callees first, newest arc first. */
    for (uint32_t k = 0; k < g.symbols; k++) {
        const uint32_t v = cycles->order[k];
        struct compat_node *n = &node[v], *whole = &node[n->place];
        for (uint32_t i = arcs->child_first[v + 1]; n->fraction != 0.0 && i-- > arcs->child_first[v];) {
            const struct compat_node *source = arc_source(node, v, arcs->child[i], arcs->calls[i]);
            if (source == NULL) {
                continue;
            }
            const double part = (double)arcs->calls[i] / (double)source->calls;
            const double share = source->time * part + source->child * part;
            n->child += share;
            n->child_share += n->fraction * share;
            if (whole != n) {
                whole->child += share;
                whole->child_share += n->fraction * share;
            }
        }
    }
    g.orderly = true;
    for (uint32_t v = 0; v < g.nodes; v++) {
        g.orderly = g.orderly && isfinite(node[v].time) && isfinite(node[v].child) && isfinite(node[v].child_share) &&
                    isfinite(node[v].fraction);
    }
    g.by_name = compat_names_order(s->raw, s->count, a);
    compat_order_nodes(&g, s, a);
    for (uint32_t i = 0; i < g.nodes; i++) {
        node[g.listing[i]].index = i + 1;
    }
    *out = g;
}
