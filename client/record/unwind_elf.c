#include "record/unwind_elf.h"

#include "core/arena.h"
#include "elf/elf_file.h"

#define MEMORY_MAX (2 * (size_t)UNWIND_SECTION) /* for sections and headers of a file */

/* Reads a section; without it, *out stays empty. */
static enum profd_status read_section(const struct elf_file *f, const char *name, struct arena *a,
                                      struct unwind_section *out, struct profd_error *e)
{
    const GElf_Shdr *s = elf_file_find(f, name);
    uint8_t *bytes;
    if (!s) {
        return PROFD_OK;
    }
    if (s->sh_size > UNWIND_SECTION) {
        return profd_error_set(e, PROFD_LIMIT, "section %s has %llu bytes; at most %u are read", name,
                               (unsigned long long)s->sh_size, UNWIND_SECTION);
    }
    TRY(elf_file_load(f, s, a, &bytes, e));
    *out = (struct unwind_section){bytes, (size_t)s->sh_size, s->sh_addr};
    return PROFD_OK;
}

static enum profd_status make(const struct elf_file *f, struct arena *a, struct unwind_table **out,
                              struct profd_error *e)
{
    struct unwind_source in = {.machine = f->machine == EM_AARCH64 ? UNWIND_AARCH64 : UNWIND_X86_64};
    if ((f->machine != EM_X86_64 && f->machine != EM_AARCH64) || f->bits != 64 || f->big_endian) {
        return profd_error_set(e, PROFD_REFUSED,
                               "stacks are unwound on x86-64 and AArch64; this file is for ELF machine %u, %u bits",
                               f->machine, f->bits);
    }
    TRY(read_section(f, ".eh_frame", a, &in.eh_frame, e));
    TRY(read_section(f, ".debug_frame", a, &in.debug_frame, e));
    return unwind_table_make(&in, out, e);
}

enum profd_status unwind_elf_read(int fd, struct unwind_table **out, struct profd_error *e)
{
    struct elf_file *f = NULL;
    struct arena *a = arena_new(MEMORY_MAX);
    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to read unwind information");
    }
    enum profd_status status = elf_file_open(fd, a, &f, e);
    if (status == PROFD_OK) {
        status = make(f, a, out, e);
    }
    elf_file_close(f);
    arena_free(a);
    return status;
}
