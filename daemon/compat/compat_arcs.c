#include "compat/compat_arcs.h"

#include <stdbool.h>
#include <string.h>

/* e_machine; <elf.h> belongs to elf/. */
enum { EM_386 = 3, EM_X86_64 = 62, EM_AARCH64 = 183 };

struct scan {
    const struct object *object;
    const struct compat_symbols *symbols;
    const struct compat_hist *hist;
    struct arena *arena;
    struct compat_calls calls;
    uint32_t capacity;
    bool failed; /* no memory */
};

bool compat_calls_possible(const struct object *o)
{
    return o->machine == EM_386 || o->machine == EM_X86_64 || o->machine == EM_AARCH64;
}

static void call_add(struct scan *c, uint32_t parent, uint32_t child)
{
    if (c->failed) {
        return;
    }
    if (c->calls.count == c->capacity) {
        uint32_t capacity = c->capacity < 1u << 30 ? c->capacity * 2 + 64 : UINT32_MAX;
        uint32_t *p = ARENA_ARRAY(c->arena, capacity, uint32_t), *q = ARENA_ARRAY(c->arena, capacity, uint32_t);
        if (p == NULL || q == NULL || capacity == c->capacity) {
            c->failed = true;
            return;
        }
        if (c->calls.count > 0) {
            memcpy(p, c->calls.parent, c->calls.count * sizeof *p);
            memcpy(q, c->calls.child, c->calls.count * sizeof *q);
        }
        c->calls.parent = p;
        c->calls.child = q;
        c->capacity = capacity;
    }
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

enum profd_status compat_calls_find(const struct object *o, const struct compat_symbols *s, const struct compat_hist *h,
                                    struct arena *a, struct compat_calls *out, struct profd_error *e)
{
    struct scan c = {.object = o, .symbols = s, .hist = h, .arena = a};
    if (!compat_calls_possible(o) || o->text == NULL || o->text_size > UINT64_MAX - o->text_address) {
        *out = c.calls;
        return PROFD_OK;
    }
    for (uint32_t v = 0; v + 1 < s->count && !c.failed; v++) {
        symbol_scan(&c, v);
    }
    if (c.failed) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u calls found in the code", c.calls.count);
    }
    *out = c.calls;
    return PROFD_OK;
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

static uint64_t calls_of(const struct tally *t, uint32_t number)
{
    return number < t->counts->arc_count ? t->counts->calls[number] : 0;
}

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
            t->list[at[t->from[i]]++] = (struct met){t->to[i], i, calls_of(t, i)};
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

static bool arcs_take(struct compat_arcs *r, size_t arcs, size_t symbols, struct arena *a)
{
    r->child = ARENA_ARRAY(a, arcs, uint32_t);
    r->calls = ARENA_ARRAY(a, arcs, uint64_t);
    r->parent = ARENA_ARRAY(a, arcs, uint32_t);
    r->parent_calls = ARENA_ARRAY(a, arcs, uint64_t);
    r->total = ARENA_ARRAY(a, symbols, uint64_t);
    r->recorded = ARENA_ARRAY(a, symbols, uint32_t);
    r->child_first = ARENA_ARRAY(a, symbols + 1, uint32_t);
    r->parent_first = ARENA_ARRAY(a, symbols + 1, uint32_t);
    return r->child != NULL && r->calls != NULL && r->parent != NULL && r->parent_calls != NULL && r->total != NULL &&
           r->recorded != NULL && r->child_first != NULL && r->parent_first != NULL;
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
    if (t.from == NULL || t.to == NULL || t.arc_of == NULL || t.symbol == NULL || t.list == NULL ||
        !arcs_take(&r, n, s->count, a)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u arcs", c->arc_count);
    }
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
