#include "compat/compat_calls.h"

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
