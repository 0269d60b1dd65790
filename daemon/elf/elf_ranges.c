#include "elf/elf_ranges.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/compare.h"
#include "proto/limits.h"

bool elf_ranges_is_plt(const struct elf_file *f, const GElf_Shdr *s)
{
    const char *name = elf_file_section_name(f, s);
    return strcmp(name, ".plt") == 0 || strcmp(name, ".plt.got") == 0 || strcmp(name, ".plt.sec") == 0 ||
           strcmp(name, ".iplt") == 0;
}

static int compare_ranges(const void *x, const void *y)
{
    const struct object_range *a = x, *b = y;
    int order = compare_pairs(a->kind, b->kind, a->low, b->low);
    return order != 0 ? order : compare_u64(a->high, b->high);
}

static void add_range(struct object *o, uint64_t low, uint64_t size, enum object_range_kind kind)
{
    uint64_t high;
    if (size == 0 || __builtin_add_overflow(low, size, &high)) {
        return;
    }
    o->ranges[o->range_count++] = (struct object_range){low, high, (uint8_t)kind};
}

/* Without symbols, functions are found by the calls to them. No call goes to the entry point, so without this it would
 * be a part of the function before it. */
static void add_entry(struct object *o, uint64_t entry)
{
    for (uint32_t i = 0; !o->has_names && i < o->range_count; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_TEXT && entry > o->ranges[i].low && entry < o->ranges[i].high) {
            add_range(o, entry, o->ranges[i].high - entry, OBJECT_RANGE_EXECUTABLE);
            return;
        }
    }
}

enum profd_status elf_ranges_read(struct elf_build *b, const struct elf_file *f, struct profd_error *e)
{
    struct object *o = b->object;
    o->ranges = ARENA_ARRAY(b->out, (size_t)f->section_count + f->segment_count + 2, struct object_range);
    if (o->ranges == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " sections", f->section_count);
    }
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if ((s->sh_flags & code) != code || s->sh_type == SHT_NULL) {
            continue;
        }
        bool text = strcmp(elf_file_section_name(f, s), ".text") == 0;
        add_range(o, s->sh_addr, s->sh_size,
                  text                      ? OBJECT_RANGE_TEXT
                  : elf_ranges_is_plt(f, s) ? OBJECT_RANGE_PLT
                                            : OBJECT_RANGE_EXECUTABLE);
    }
    add_entry(o, f->entry);
    for (uint32_t i = 0; i < f->segment_count; i++) {
        if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_flags & PF_X) {
            add_range(o, f->segments[i].p_vaddr, f->segments[i].p_memsz, OBJECT_RANGE_SEGMENT);
        }
    }
    if (o->range_count > LIMIT_SECTIONS) {
        return profd_error_set(
            e, PROFD_LIMIT, "an executable may have at most %u executable sections and segments; this one has %" PRIu32,
            LIMIT_SECTIONS, o->range_count);
    }
    qsort(o->ranges, o->range_count, sizeof *o->ranges, compare_ranges);
    return PROFD_OK;
}
