#include "elf/elf_symbols.h"

#include <inttypes.h>

#include "proto/limits.h"

/* Section numbers above 65279 stand in a table of their own. */
static enum profd_status load_wide_sections(struct elf_symtab *t, uint32_t index, struct profd_error *e)
{
    const struct elf_file *f = t->file;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_SYMTAB_SHNDX && s->sh_link == index) {
            return elf_file_data(f, s, &t->wide_sections, e);
        }
    }
    return PROFD_OK;
}

/* The names, with a NUL behind the last byte: nearly every table ends with one. */
static enum profd_status load_strings(struct elf_symtab *t, const GElf_Shdr *s, struct arena *a, struct profd_error *e)
{
    const uint8_t *bytes;
    enum profd_status status = elf_file_bytes(t->file, s, &bytes, e);
    if (status != PROFD_OK) {
        return status;
    }
    t->strings_size = s->sh_size;
    t->strings = s->sh_size > 0 && bytes[s->sh_size - 1] == '\0'
                     ? (const char *)bytes
                     : arena_copy(a, (const char *)bytes, (size_t)s->sh_size);
    return t->strings != NULL
               ? PROFD_OK
               : profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " bytes of names", t->strings_size);
}

enum profd_status elf_symtab_load(const struct elf_file *f, uint32_t index, struct arena *a, struct elf_symtab **out,
                                  struct profd_error *e)
{
    const GElf_Shdr *s = &f->sections[index];
    const uint64_t entry = gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (s->sh_entsize != entry) {
        return profd_error_set(e, PROFD_MALFORMED, "a symbol must have %" PRIu64 " bytes; section %s says %" PRIu64,
                               entry, elf_file_section_name(f, s), s->sh_entsize);
    }
    if (s->sh_size / entry > LIMIT_SYMBOLS) {
        return profd_error_set(e, PROFD_LIMIT, "an executable may have at most %u symbols; this one has %" PRIu64,
                               LIMIT_SYMBOLS, s->sh_size / entry);
    }
    if (s->sh_link >= f->section_count || f->sections[s->sh_link].sh_type != SHT_STRTAB) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "the names of section %s must be a string table, not section %" PRIu32,
                               elf_file_section_name(f, s), s->sh_link);
    }
    struct elf_symtab *t = ARENA_NEW(a, struct elf_symtab);
    if (t == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for a symbol table");
    }
    *t = (struct elf_symtab){.file = f, .count = (uint32_t)(s->sh_size / entry)};
    enum profd_status status = elf_file_data(f, s, &t->symbols, e);
    if (status == PROFD_OK) {
        status = load_strings(t, &f->sections[s->sh_link], a, e);
    }
    if (status == PROFD_OK) {
        status = load_wide_sections(t, index, e);
    }
    if (status == PROFD_OK) {
        *out = t;
    }
    return status;
}

void elf_symtab_get(const struct elf_symtab *t, uint32_t i, struct elf_symbol *out)
{
    GElf_Sym s = {0};
    Elf32_Word wide = 0;
    if (gelf_getsymshndx(t->symbols, t->wide_sections, (int)i, &s, &wide) == NULL) {
        gelf_getsym(t->symbols, (int)i, &s); /* the table of wide section numbers is shorter */
    }
    const bool known = s.st_shndx == SHN_XINDEX && wide != SHN_UNDEF;
    *out = (struct elf_symbol){.value = s.st_value,
                               .size = s.st_size,
                               .section = known ? wide : s.st_shndx,
                               .special = !known && (s.st_shndx == SHN_UNDEF || s.st_shndx >= SHN_LORESERVE),
                               .bind = GELF_ST_BIND(s.st_info),
                               .type = GELF_ST_TYPE(s.st_info),
                               .name = s.st_name < t->strings_size ? t->strings + s.st_name : ""};
}
