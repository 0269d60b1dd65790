#include "elf/elf_file.h"

#include <inttypes.h>
#include <stdlib.h>

const char *elf_file_section_name(const struct elf_file *f, const GElf_Shdr *s)
{
    const char *name = f->names != SHN_UNDEF ? elf_strptr(f->elf, f->names, s->sh_name) : NULL;
    return name != NULL ? name : "";
}

const GElf_Shdr *elf_file_find(const struct elf_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED ||
            !elf_file_holds(f, s->sh_offset, s->sh_size)) {
            continue;
        }
        if (strcmp(elf_file_section_name(f, s), name) == 0) {
            return s;
        }
    }
    return NULL;
}

/* An address and the section's index, so that the order is total. */
struct code_key {
    uint64_t address;
    uint32_t index;
};

static int compare_keys(const void *x, const void *y)
{
    const struct code_key *a = x, *b = y;
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

enum profd_status elf_file_code(const struct elf_file *f, struct arena *a, uint32_t **indexes, uint32_t *count,
                                struct profd_error *e)
{
    struct code_key *keys = ARENA_ARRAY(a, (size_t)f->section_count + 1, struct code_key);
    uint32_t *list = ARENA_ARRAY(a, (size_t)f->section_count + 1, uint32_t);
    if (keys == NULL || list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " sections", f->section_count);
    }
    uint32_t n = 0;
    uint64_t left = f->size; /* sections that share bytes would be read repeatedly */
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_PROGBITS && (s->sh_flags & code) == code && !(s->sh_flags & SHF_COMPRESSED) &&
            s->sh_size != 0) {
            if (s->sh_size > left) {
                return profd_error_set(e, PROFD_MALFORMED,
                                       "executable sections must not have more bytes than the file, which has %" PRIu64,
                                       f->size);
            }
            left -= s->sh_size;
            keys[n++] = (struct code_key){s->sh_addr, i};
        }
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = keys[i].index;
    }
    *indexes = list;
    *count = n;
    return PROFD_OK;
}
