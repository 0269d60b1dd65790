#include "elf/elf_gmon.h"

#include <string.h>

#include "elf/elf_file.h"
#include "elf/elf_internal.h"

bool elf_gmon_counts(const char *name)
{
    return strstr(name, "mcount") != NULL || strstr(name, "__fentry__") != NULL;
}

/* Looks through the symbols of all tables of that type. Sets *found if there are any, and *linked if one of them is the
 * start of glibc's gmon or counts calls. */
static enum profd_status look_through(const struct elf_file *f, uint32_t type, struct arena *scratch, bool *found,
                                      bool *linked, struct profd_error *e)
{
    for (uint32_t i = 1; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        struct elf_symtab *t;
        if (s->sh_type != type || (s->sh_flags & SHF_COMPRESSED) != 0) {
            continue;
        }
        TRY(elf_symtab_load(f, i, scratch, &t, e));
        for (uint32_t k = 1; k < t->count; k++) {
            struct elf_symbol symbol;
            elf_symtab_get(t, k, &symbol);
            *found = true;
            *linked |= elf_gmon_counts(symbol.name) || strncmp(symbol.name, "__monstartup", 12) == 0 ||
                       strncmp(symbol.name, "monstartup", 10) == 0;
        }
    }
    return PROFD_OK;
}

static enum profd_status read_gmon(const struct elf_file *f, const struct elf_file *debug, struct arena *a,
                                   struct arena *scratch, struct elf_gmon *g, struct profd_error *e)
{
    bool own = false, imports = false, dynamic = false;
    g->ends = ARENA_ARRAY(a, (size_t)f->section_count + f->segment_count + 1, uint64_t);
    FAIL_IF(g->ends == NULL, e, PROFD_NO_MEMORY, "out of memory for the sections of an executable");
    TRY(look_through(f, SHT_SYMTAB, scratch, &own, &g->linked, e));
    TRY(look_through(f, SHT_DYNSYM, scratch, &imports, &g->linked, e));
    if (debug != NULL) {
        TRY(look_through(debug, SHT_SYMTAB, scratch, &own, &g->linked, e));
    }
    const GElf_Phdr *first = NULL;
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const GElf_Phdr *p = &f->segments[i];
        dynamic |= p->p_type == PT_INTERP;
        first = first == NULL && p->p_type == PT_LOAD ? p : first;
    }
    g->stripped = !own;
    g->knows = own || (imports && dynamic);

    const GElf_Shdr *text = elf_file_find(f, ".text");
    if (text == NULL || first == NULL || first->p_offset != 0) {
        return PROFD_OK;
    }
    g->low = first->p_vaddr;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if ((s->sh_flags & SHF_EXECINSTR) != 0 && s->sh_addr >= text->sh_addr) {
            g->ends[g->end_count++] = s->sh_addr + s->sh_size;
        }
    }
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const GElf_Phdr *p = &f->segments[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0) {
            g->ends[g->end_count++] = p->p_vaddr + p->p_memsz;
        }
    }
    return PROFD_OK;
}

enum profd_status elf_read_gmon(int executable, int debug, struct arena *a, struct elf_gmon *out, struct profd_error *e)
{
    struct arena *scratch = arena_new(0);
    struct elf_file *f = NULL, *other = NULL;
    struct elf_gmon g = {.knows = false};
    enum profd_status status = scratch != NULL
                                   ? elf_file_open(executable, scratch, &f, e)
                                   : profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    if (status == PROFD_OK && debug >= 0) {
        status = elf_file_open(debug, scratch, &other, e);
    }
    if (status == PROFD_OK) {
        status = read_gmon(f, other, a, scratch, &g, e);
    }
    elf_file_close(f);
    elf_file_close(other);
    arena_free(scratch);
    if (status == PROFD_OK) {
        *out = g;
    }
    return status;
}
