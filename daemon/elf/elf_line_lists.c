/* Reads lists of ranges: .debug_ranges before DWARF 5, .debug_rnglists since. */
#include "elf/elf_line_entries.h"

/* Entries that give addresses by index are left out, because BFD 2.40 does not read them either. */
enum { RANGE_END = 0, RANGE_OFFSETS = 4, RANGE_BASE = 5, RANGE_PAIR = 6, RANGE_LENGTH = 7 };

typedef bool range_each(void *context, uint64_t low, uint64_t high);

static bool step(struct entry_file *d)
{
    if (d->steps == 0) {
        return false;
    }
    d->steps--;
    return true;
}

static bool old_list(struct entry_file *d, const struct entry_unit *u, uint64_t at, range_each *each, void *context)
{
    if (d->old_ranges.bytes == NULL || at > d->old_ranges.size) {
        return false;
    }
    struct line_cursor c = {.file = d->file, .bytes = d->old_ranges.bytes, .at = at, .end = d->old_ranges.size};
    uint64_t base = u->base, mark = u->address_size == 4 ? UINT32_MAX : UINT64_MAX;
    for (;;) {
        uint64_t low = line_number(&c, u->address_size), high = line_number(&c, u->address_size);
        if (c.failed || !step(d)) {
            return false;
        }
        if (low == 0 && high == 0) {
            return true;
        }
        if (low == mark) {
            base = high;
        } else if (!each(context, base + low, base + high)) {
            return false;
        }
    }
}

static bool new_list(struct entry_file *d, const struct entry_unit *u, uint64_t at, range_each *each, void *context)
{
    if (d->ranges.bytes == NULL || at > d->ranges.size) {
        return false;
    }
    struct line_cursor c = {.file = d->file, .bytes = d->ranges.bytes, .at = at, .end = d->ranges.size};
    uint64_t base = u->base;
    for (;;) {
        uint8_t kind = line_u8(&c);
        uint64_t low = 0, high = 0;
        if (kind == RANGE_BASE) {
            base = line_number(&c, u->address_size);
        } else if (kind == RANGE_OFFSETS) {
            low = base + line_leb(&c, false);
            high = base + line_leb(&c, false);
        } else if (kind == RANGE_PAIR) {
            low = line_number(&c, u->address_size);
            high = line_number(&c, u->address_size);
        } else if (kind == RANGE_LENGTH) {
            low = line_number(&c, u->address_size);
            high = low + line_leb(&c, false);
        } else {
            return kind == RANGE_END && !c.failed;
        }
        if (c.failed || !step(d) || (low < high && !each(context, low, high))) {
            return false;
        }
    }
}

bool entry_ranges(struct entry_file *d, const struct entry_unit *u, const struct entry_value *v, range_each *each,
                  void *context)
{
    if (v->kind != ENTRY_VALUE_NUMBER) {
        return false;
    }
    if (u->version < 5) {
        return old_list(d, u, v->number, each, context);
    }
    /* A list given by its index: BFD 2.40 does not read it, so it is left out here, too. */
    return v->is_index || new_list(d, u, v->number, each, context);
}
