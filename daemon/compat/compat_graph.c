#include "compat/compat_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "proto/sort.h"

/* Records of one range. */
struct group {
    uint64_t low, high;
    uint32_t records; /* how many */
    uint32_t last;    /* latest record of the group; its other records are found by its range */
    uint32_t size;    /* bins of the first record */
    uint64_t bins;    /* non-zero bins of all its records */
};

static double record_scale(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

static enum profd_status record_check(const struct counts_histogram *first, const struct counts_histogram *h,
                                      struct profd_error *e)
{
    if (strncmp(first->dimension, h->dimension, 15) != 0) {
        return profd_error_set(e, PROFD_CONFLICT, "dimension unit changed between histogram records: %.15s, then %.15s",
                               first->dimension, h->dimension);
    }
    if (first->abbreviation != h->abbreviation) {
        return profd_error_set(e, PROFD_CONFLICT,
                               "dimension abbreviation changed between histogram records: %c, then %c",
                               first->abbreviation, h->abbreviation);
    }
    if (fabs(record_scale(first) - record_scale(h)) > 0.000001) {
        return profd_error_set(e, PROFD_CONFLICT, "different scales in histogram records: %.9g, then %.9g bytes a bin",
                               2 * record_scale(first), 2 * record_scale(h));
    }
    return PROFD_OK;
}

static enum profd_status group_add(struct group *groups, uint32_t *count, const struct counts_histogram *h,
                                   uint32_t record, struct profd_error *e)
{
    const struct group *met = NULL;
    for (uint32_t i = 0; i < *count; i++) {
        struct group *g = &groups[i];
        if (g->low == h->low && g->high == h->high) {
            g->records++;
            g->last = record;
            g->bins += h->used;
            return PROFD_OK;
        }
        if (h->low >= g->high || g->low >= h->high || h->low >= h->high || g->low >= g->high) {
            continue;
        }
        met = met == NULL ? g : met;
    }
    if (met != NULL) {
        return profd_error_set(e, PROFD_CONFLICT,
                               "overlapping histogram records: 0x%" PRIx64 " to 0x%" PRIx64 ", then 0x%" PRIx64
                               " to 0x%" PRIx64,
                               met->low, met->high, h->low, h->high);
    }
    groups[(*count)++] = (struct group){h->low, h->high, 1, record, h->bins, h->used};
    return PROFD_OK;
}

/* Bins of a group: ascending, not zero. */
struct bins {
    uint64_t count;
    const uint32_t *index;
    const uint64_t *ticks;
};

/* Stable sort of the pairs by index in three passes of 11 bits. */
static void pairs_sort(uint32_t *index[2], uint64_t *ticks[2], uint64_t n)
{
    for (unsigned shift = 0; shift < 33; shift += 11) {
        uint64_t place[2048] = {0}, sum = 0;
        for (uint64_t i = 0; i < n; i++) {
            place[index[0][i] >> shift & 2047]++;
        }
        for (unsigned d = 0; d < 2048; d++) {
            uint64_t here = place[d];
            place[d] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = place[index[0][i] >> shift & 2047]++;
            index[1][to] = index[0][i];
            ticks[1][to] = ticks[0][i];
        }
        uint32_t *swap_index = index[0];
        uint64_t *swap_ticks = ticks[0];
        index[0] = index[1], index[1] = swap_index;
        ticks[0] = ticks[1], ticks[1] = swap_ticks;
    }
}

static uint64_t pairs_add_up(uint32_t *index, uint64_t *ticks, uint64_t n)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (kept > 0 && index[kept - 1] == index[i]) {
            uint64_t *sum = &ticks[kept - 1];
            *sum = *sum > UINT64_MAX - ticks[i] ? UINT64_MAX : *sum + ticks[i];
        } else {
            index[kept] = index[i];
            ticks[kept++] = ticks[i];
        }
    }
    return kept;
}

static struct bins group_bins(const struct counts *c, const struct group *g, struct arena *a)
{
    const struct counts_histogram *only = &c->histograms[g->last];
    if (g->records == 1) {
        return (struct bins){only->used, c->bin_index + only->first, c->bin_ticks + only->first};
    }
    uint32_t *index[2];
    uint64_t *ticks[2];
    for (unsigned i = 0; i < 2; i++) {
        index[i] = ARENA_ARRAY(a, g->bins + 1, uint32_t);
        ticks[i] = ARENA_ARRAY(a, g->bins + 1, uint64_t);
    }
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (h->low != g->low || h->high != g->high) {
            continue;
        }
        for (uint32_t j = h->first; j < h->first + h->used; j++, n++) {
            index[0][n] = c->bin_index[j];
            ticks[0][n] = c->bin_ticks[j];
        }
    }
    pairs_sort(index, ticks, n);
    return (struct bins){pairs_add_up(index[0], ticks[0], n), index[0], ticks[0]};
}

/* gprof gives the last symbol no end, so it gets no ticks (rule S8). */
static void bins_apportion(const struct bins *b, uint64_t low_pc, const struct compat_symbols *s,
                           const struct compat_filter *f, struct compat_hist *h)
{
    uint64_t low = low_pc / 2;
    uint32_t first = 0; /* symbols before it end before the current bin */
    for (uint64_t i = 0; i < b->count; i++) {
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
    struct group *groups = ARENA_ARRAY(a, (size_t)c->histogram_count + 1, struct group);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        TRY(record_check(&c->histograms[0], &c->histograms[i], e));
        TRY(group_add(groups, &count, &c->histograms[i], i, e));
    }
    h.ranges = ARENA_ARRAY(a, (size_t)count + 1, struct compat_hist_range);
    if (count > 0) {
        const struct counts_histogram *first = &c->histograms[0];
        h.scale = record_scale(first);
        h.rate = first->rate;
        memcpy(h.dimension, first->dimension, 15);
        h.abbreviation = first->abbreviation;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct group *g = &groups[i];
        const struct bins b = group_bins(c, g, a);
        h.ranges[h.range_count++] = (struct compat_hist_range){g->low, g->high, g->size, b.count, b.index, b.ticks};
        bins_apportion(&b, g->low, s, f, &h);
    }
    *out = h;
    return PROFD_OK;
}

/* e_machine; <elf.h> belongs to elf/. */
enum { EM_386 = 3, EM_X86_64 = 62, EM_AARCH64 = 183 };

struct scan {
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

static void call_add(struct scan *c, uint32_t parent, uint32_t child)
{
    uint32_t capacity = c->capacity; /* of both arrays */
    c->calls.parent = arena_extend(c->arena, c->calls.parent, c->calls.count, &capacity, sizeof *c->calls.parent);
    c->calls.child = arena_extend(c->arena, c->calls.child, c->calls.count, &c->capacity, sizeof *c->calls.child);
    c->calls.parent[c->calls.count] = parent;
    c->calls.child[c->calls.count++] = child;
}

/* gprof looks up the low 32 bits of the address only. */
static bool hist_covers(const struct compat_hist *h, uint32_t address)
{
    for (uint32_t i = 0; i < h->range_count; i++) {
        if (h->ranges[i].low <= address && address < h->ranges[i].high) {
            return true;
        }
    }
    return false;
}

static void call_judge(struct scan *c, uint32_t parent, uint64_t to)
{
    if (!hist_covers(c->hist, (uint32_t)to)) {
        return;
    }
    uint32_t child = compat_symbols_find(c->symbols, to);
    if (child != COMPAT_NONE && c->symbols->address[child] == to) {
        call_add(c, parent, child);
    }
}

static uint32_t word_get(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Scans the code of parent at [low, high), inside .text. */
static void code_scan_x86(struct scan *c, uint32_t parent, uint64_t low, uint64_t high)
{
    const struct object *o = c->object;
    const uint8_t *end = o->text + o->text_size;
    for (uint64_t pc = low; pc < high; pc++) {
        const uint8_t *p = o->text + (pc - o->text_address);
        if (*p == 0xe8 && end - p >= 5) {
            call_judge(c, parent, pc + 5 + word_get(p + 1));
        }
    }
}

static void code_scan_arm64(struct scan *c, uint32_t parent, uint64_t low, uint64_t high)
{
    const struct object *o = c->object;
    /* Starts at the symbol, even if it is not aligned to words. */
    for (uint64_t pc = low; pc < high; pc += 4) {
        if (o->text_size - (pc - o->text_address) < 4) {
            return;
        }
        uint32_t word = word_get(o->text + (pc - o->text_address));
        if ((word & 0x7c000000) != 0x14000000) {
            continue;
        }
        uint64_t offset = (((uint64_t)(word & 0x3ffffff) ^ 0x2000000) - 0x2000000) << 2;
        call_judge(c, parent, pc + offset);
    }
}

/* If several histograms cover parts of a symbol, the first one is used. */
static void symbol_scan(struct scan *c, uint32_t v)
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
    uint64_t end = o->text_address + o->text_size;
    low = in->low > low ? in->low : low;
    high = in->high < high ? in->high : high;
    low = low < o->text_address ? o->text_address : low;
    high = high > end ? end : high;
    if (low >= high) {
        return;
    }
    if (o->machine == EM_AARCH64) {
        code_scan_arm64(c, v, low, high);
    } else {
        code_scan_x86(c, v, low, high);
    }
}

struct compat_calls compat_calls_find(const struct object *o, const struct compat_symbols *s,
                                      const struct compat_hist *h, struct arena *a)
{
    struct scan c = {.object = o, .symbols = s, .hist = h, .arena = a};
    const bool readable = compat_calls_possible(o) && o->text != NULL && o->text_size <= UINT64_MAX - o->text_address;
    for (uint32_t v = 0; readable && v + 1 < s->count; v++) {
        symbol_scan(&c, v);
    }
    return c.calls;
}

/* One record, or one call in the machine code, between two symbols. */
struct met {
    uint32_t child;
    uint32_t number; /* in order of arrival */
    uint64_t calls;
};

/* State of all steps. from and to are the ends of all records in order of arrival; COMPAT_NONE: dropped. */
struct tally {
    const struct counts *counts;
    const struct compat_symbols *symbols;
    const struct compat_filter *filter;
    const struct compat_calls *code; /* may be NULL */
    struct compat_arcs *r;
    uint32_t *from, *to;
    uint32_t met;     /* how many */
    uint32_t *arc_of; /* arc that each record created */
    bool by_parent;   /* parents ascend, as in the file of one process */
    uint32_t *symbol; /* a number for each symbol */
    struct met *list; /* dealt out by parent */
};

/* The owner of an address. Tries the previous owner first, because records come sorted by caller. */
static uint32_t owner_find(const struct compat_symbols *s, uint64_t address, uint32_t before)
{
    if (before != COMPAT_NONE && before + 1 < s->count && address >= s->address[before] && address <= s->end[before] &&
        address < s->address[before + 1]) {
        return before;
    }
    return compat_symbols_find(s, address);
}

static void ends_find(struct tally *t)
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
        from = owner_find(s, c->from[i], from);
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

/* Lists the records of each parent in order of arrival. Leaves the beginnings of the lists in child_first. */
static void records_deal(struct tally *t)
{
    uint32_t *first = t->r->child_first, symbols = t->symbols->count;
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
    uint32_t *at = t->symbol;
    for (uint32_t v = 0; v < symbols; v++) {
        at[v] = first[v];
    }
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->from[i] != COMPAT_NONE) {
            t->list[at[t->from[i]]++] = (struct met){t->to[i], i, i < t->counts->arc_count ? t->counts->calls[i] : 0};
        }
    }
}

/* Makes one arc of all records of a pair. list then holds each arc's first record, at the arc's place. */
static void pairs_join(struct tally *t)
{
    struct compat_arcs *r = t->r;
    uint32_t *arc = t->symbol; /* by child: the latest arc to it */
    for (uint32_t v = 0; v < t->symbols->count; v++) {
        arc[v] = COMPAT_NONE;
    }
    for (uint32_t v = 0, i = 0; v < t->symbols->count; v++) {
        uint32_t begin = r->count, end = r->child_first[v + 1];
        for (; i < end; i++) {
            struct met m = t->list[i];
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
        r->child_first[v] = begin;
    }
    r->child_first[t->symbols->count] = r->count;
}

static void recorded_fill(struct tally *t)
{
    struct compat_arcs *r = t->r;
    for (uint32_t v = 0; v < t->symbols->count; v++) {
        uint32_t end = r->child_first[v + 1];
        while (end > r->child_first[v] && t->list[end - 1].number >= t->counts->arc_count) {
            end--;
        }
        r->recorded[v] = end;
    }
}

static void parent_add(struct tally *t, uint32_t arc, uint32_t parent, uint32_t child)
{
    uint32_t to = t->symbol[child]++;
    t->r->parent[to] = parent;
    t->r->parent_calls[to] = t->r->calls[arc];
}

/* Lists the arcs of each child in order of arrival. */
static void parents_deal(struct tally *t)
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
    if (most >= UINT32_MAX) {
        return profd_error_set(e, PROFD_LIMIT, "there may be at most 4294967294 arcs, not %llu",
                               (unsigned long long)most);
    }
    size_t n = (size_t)most + 1;
    struct tally t = {.counts = c, .symbols = s, .filter = f, .code = calls, .r = &r, .met = (uint32_t)most};
    t.from = ARENA_ARRAY(a, n, uint32_t);
    t.to = ARENA_ARRAY(a, n, uint32_t);
    t.arc_of = ARENA_ARRAY(a, n, uint32_t);
    t.symbol = ARENA_ARRAY(a, s->count, uint32_t);
    t.list = ARENA_ARRAY(a, n, struct met);
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
    records_deal(&t);
    pairs_join(&t);
    recorded_fill(&t);
    parents_deal(&t);
    *out = r;
    return PROFD_OK;
}

/* Follows the newest arc of a symbol first. stack is the path of the walk. heads are the symbols on the path that are
 * not part of a cycle's list yet, in the same order. Each head starts a list of members, linked by next. */
struct walk {
    const struct compat_arcs *arcs;
    uint32_t *entered; /* rank of the visit; 0: not visited */
    uint32_t *cursor;  /* place after the next arc */
    uint32_t *next, *tail;
    uint32_t *top;  /* rank of the component, callees first; 0: not finished */
    uint32_t *lead; /* head of the finished component */
    uint32_t *stack, *heads;
    uint32_t depth, head_count, visits, components;
};

static void walk_enter(struct walk *w, uint32_t v)
{
    w->entered[v] = ++w->visits;
    w->cursor[v] = w->arcs->child_first[v + 1];
    w->next[v] = COMPAT_NONE;
    w->tail[v] = v;
    w->stack[w->depth++] = v;
    w->heads[w->head_count++] = v;
}

/* An arc leads back to v: appends all heads above v's head to its list, in the order of the path. */
static void walk_collapse(struct walk *w, uint32_t v)
{
    uint32_t keep = w->head_count - 1;
    while (w->entered[w->heads[keep]] > w->entered[v]) {
        keep--;
    }
    uint32_t head = w->heads[keep];
    for (uint32_t i = keep + 1; i < w->head_count; i++) {
        w->next[w->tail[head]] = w->heads[i];
        w->tail[head] = w->tail[w->heads[i]];
    }
    w->head_count = keep + 1;
}

static void walk_leave(struct walk *w, uint32_t v)
{
    w->depth--;
    if (w->heads[w->head_count - 1] != v) {
        return;
    }
    w->head_count--;
    w->components++;
    for (uint32_t m = v; m != COMPAT_NONE; m = w->next[m]) {
        w->top[m] = w->components;
        w->lead[m] = v;
    }
}

static void walk_from(struct walk *w, uint32_t root)
{
    walk_enter(w, root);
    while (w->depth > 0) {
        uint32_t v = w->stack[w->depth - 1];
        if (w->cursor[v] == w->arcs->child_first[v]) {
            walk_leave(w, v);
            continue;
        }
        uint32_t child = w->arcs->child[--w->cursor[v]];
        if (w->entered[child] == 0) {
            walk_enter(w, child);
        } else if (w->top[child] == 0) {
            walk_collapse(w, child);
        }
    }
}

/* Lists all symbols by component, inside a component in table order; place has one slot more than there are components.
 */
static void order_fill(const struct walk *w, uint32_t symbols, uint32_t *place, uint32_t *order)
{
    for (uint32_t i = 0; i <= w->components; i++) {
        place[i] = 0;
    }
    for (uint32_t v = 0; v < symbols; v++) {
        place[w->top[v]]++;
    }
    for (uint32_t i = 1; i <= w->components; i++) {
        place[i] += place[i - 1];
    }
    for (uint32_t v = symbols; v-- > 0;) {
        order[--place[w->top[v]]] = v;
    }
}

struct compat_cycles compat_cycles_find(const struct compat_arcs *arcs, uint32_t symbols, struct arena *a)
{
    struct walk w = {.arcs = arcs};
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
    order_fill(&w, symbols, w.stack, r.order);
    return r;
}

#define SMALL 24u /* up to this number, names are sorted by insertion */

/* The names at [begin, end) of the order are equal in their first depth bytes, and none ends there. */
struct stretch {
    uint32_t begin, end;
    size_t depth;
};

/* The next eight bytes as a big-endian number; after the end of the name, zeros. */
static uint64_t key_of(const char *name)
{
    uint64_t key = 0;
    unsigned i = 0;
    for (; i < 8 && name[i] != '\0'; i++) {
        key = key << 8 | (unsigned char)name[i];
    }
    return i == 0 ? 0 : key << 8 * (8 - i);
}

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

/* Sorts by the next eight bytes, and pushes the ranges that are equal in them; returns the new height of the stack. */
static uint32_t stretch_sort(const char *const *names, struct sort_item *items, struct sort_item *scratch,
                             struct stretch s, struct stretch *stack, uint32_t height)
{
    for (uint32_t i = s.begin; i < s.end; i++) {
        items[i].key = key_of(names[items[i].value] + s.depth);
    }
    sort_radix(items + s.begin, scratch, s.end - s.begin);
    for (uint32_t begin = s.begin, i = s.begin + 1; i <= s.end; i++) {
        if (i < s.end && items[i].key == items[begin].key) {
            continue;
        }
        /* If the key contains a zero, these names end here and are equal. */
        if (i - begin > 1 && (items[begin].key & 255) != 0) {
            if (i - begin <= SMALL) {
                insert(names, items + begin, i - begin, s.depth + 8);
            } else {
                stack[height++] = (struct stretch){begin, i, s.depth + 8};
            }
        }
        begin = i;
    }
    return height;
}

uint32_t *compat_names_order(const char *const *names, uint32_t n, struct arena *a)
{
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t);
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    struct stretch *stack =
        ARENA_ARRAY(a, (size_t)n / SMALL + 2, struct stretch); /* ranges on the stack do not overlap */
    for (uint32_t i = 0; i < n; i++) {
        items[i].value = i;
    }
    uint32_t height = 0;
    stack[height++] = (struct stretch){0, n, 0};
    while (height > 0) {
        struct stretch s = stack[--height];
        height = stretch_sort(names, items, scratch, s, stack, height);
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

/* What all steps see. */
struct building {
    const struct compat_filter *filter;
    const struct compat_arcs *arcs;
    const struct compat_cycles *cycles;
    struct compat_graph *g;
    struct compat_node *node;
};

static void nodes_fill(const struct building *b, const double *time)
{
    uint32_t symbols = b->g->symbols;
    for (uint32_t v = 0; v < symbols; v++) {
        uint32_t cycle = b->cycles->number[v];
        b->node[v].time = time[v];
        b->node[v].calls = b->arcs->total[v];
        b->node[v].place = cycle == 0 ? v : symbols + cycle - 1;
    }
    for (uint32_t v = symbols; v < b->g->nodes; v++) {
        b->node[v].place = v;
    }
}

static void calls_fill(const struct building *b)
{
    const struct compat_arcs *arcs = b->arcs;
    for (uint32_t child = 0; child < b->g->symbols; child++) {
        uint32_t place = b->node[child].place;
        for (uint32_t i = arcs->parent_first[child]; i < arcs->parent_first[child + 1]; i++) {
            uint32_t parent = arcs->parent[i];
            uint64_t calls = arcs->parent_calls[i];
            if (parent == child) {
                b->node[child].calls -= calls;
                b->node[child].self_calls = calls;
            } else if (place != child) {
                uint64_t *sum = b->node[parent].place == place ? &b->node[place].self_calls : &b->node[place].calls;
                *sum += calls;
            }
        }
    }
}

/* Propagates from v's callers to node, which is v or v's cycle; newest arc first. */
static void node_inherit(const struct building *b, uint32_t v, uint32_t node)
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

static void cycle_inherit(const struct building *b, uint32_t node)
{
    uint32_t cycle = node - b->g->symbols;
    const uint32_t *first = b->cycles->members + b->cycles->member_first[cycle];
    const uint32_t *end = b->cycles->members + b->cycles->member_first[cycle + 1];
    for (const uint32_t *m = first; m < end; m++) {
        node_inherit(b, *m, node);
    }
    for (const uint32_t *m = first; m < end; m++) {
        b->node[*m].shown = b->node[node].shown;
        b->node[*m].fraction = b->node[node].fraction;
    }
}

/* The filters override what was inherited. They are not applied to a cycle as a whole: without callers it stays hidden.
 */
static void symbol_decide(const struct building *b, uint32_t v)
{
    struct compat_node *n = &b->node[v];
    const struct compat_filter *f = b->filter;
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

/* Callers first. */
static void fractions_inherit(const struct building *b)
{
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = b->g->symbols; i-- > 0;) {
        uint32_t v = b->cycles->order[i], node = b->node[v].place;
        if (node != last) {
            last = node;
            if (node == v) {
                node_inherit(b, v, v);
            } else {
                cycle_inherit(b, node);
            }
        }
        symbol_decide(b, v);
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

static void symbol_propagate(const struct building *b, uint32_t v)
{
    struct compat_node *n = &b->node[v], *whole = &b->node[n->place];
    for (uint32_t i = b->arcs->child_first[v + 1]; i-- > b->arcs->child_first[v];) {
        uint64_t calls = b->arcs->calls[i];
        const struct compat_node *source = arc_source(b->node, v, b->arcs->child[i], calls);
        if (source == NULL) {
            continue;
        }
        double part = (double)calls / (double)source->calls;
        double share = source->time * part + source->child * part;
        n->child += share;
        n->child_share += n->fraction * share;
        if (whole != n) {
            whole->child += share;
            whole->child_share += n->fraction * share;
        }
    }
}

static bool times_finite(const struct compat_graph *g)
{
    for (uint32_t v = 0; v < g->nodes; v++) {
        const struct compat_node *n = &g->node[v];
        if (!isfinite(n->time) || !isfinite(n->child) || !isfinite(n->child_share) || !isfinite(n->fraction)) {
            return false;
        }
    }
    return true;
}

void compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f, const struct compat_hist *hist,
                        const struct compat_arcs *arcs, const struct compat_cycles *cycles, struct arena *a,
                        struct compat_graph *out)
{
    struct compat_graph g = {.symbols = s->count, .nodes = s->count + cycles->count};
    g.node = ARENA_ARRAY(a, g.nodes, struct compat_node);
    g.listing = ARENA_ARRAY(a, g.nodes, uint32_t);
    struct building b = {f, arcs, cycles, &g, g.node};
    nodes_fill(&b, hist->time);
    calls_fill(&b);
    fractions_inherit(&b);
    for (uint32_t c = 0; c < b.cycles->count; c++) {
        for (uint32_t i = b.cycles->member_first[c]; i < b.cycles->member_first[c + 1]; i++) {
            if (b.node[b.cycles->members[i]].fraction != 0.0) {
                b.node[b.g->symbols + c].time += b.node[b.cycles->members[i]].time;
            }
        }
    }
    /* Callees first. */
    for (uint32_t i = 0; i < b.g->symbols; i++) {
        uint32_t v = b.cycles->order[i];
        if (b.node[v].fraction != 0.0) {
            symbol_propagate(&b, v);
        }
    }
    g.orderly = times_finite(&g);
    g.by_name = compat_names_order(s->raw, s->count, a);
    compat_order_nodes(&g, s, a);
    for (uint32_t i = 0; i < g.nodes; i++) {
        g.node[g.listing[i]].index = i + 1;
    }
    *out = g;
}
