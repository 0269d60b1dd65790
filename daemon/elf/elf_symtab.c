#include "elf/elf_symbols.h"

#include <elf.h>
#include <inttypes.h>

#include "proto/limits.h"

/* Section numbers above 65279 stand in a table of their own. */
static enum profd_status load_wide_sections(struct elf_symtab *t, uint32_t index, struct arena *a,
                                            struct profd_error *e)
{
    const struct elf_file *f = t->file;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const struct elf_section *s = &f->sections[i];
        if (s->type != SHT_SYMTAB_SHNDX || s->link != index)
            continue;
        uint8_t *raw;
        enum profd_status status = elf_file_load(f, s, a, &raw, e);
        if (status != PROFD_OK)
            return status;
        t->wide_sections = raw;
        t->wide_count = s->size / 4 > UINT32_MAX ? UINT32_MAX : (uint32_t)(s->size / 4);
        break;
    }
    return PROFD_OK;
}

enum profd_status elf_symtab_load(const struct elf_file *f, uint32_t index, struct arena *a, struct elf_symtab **out,
                                  struct profd_error *e)
{
    const struct elf_section *s = &f->sections[index];
    uint32_t entry = f->bits == 64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    if (s->entry != entry)
        return profd_error_set(e, PROFD_MALFORMED, "a symbol must have %" PRIu32 " bytes; section %s says %" PRIu64,
                               entry, elf_file_section_name(f, s), s->entry);
    if (s->size / entry > LIMIT_SYMBOLS)
        return profd_error_set(e, PROFD_LIMIT, "an executable may have at most %u symbols; this one has %" PRIu64,
                               LIMIT_SYMBOLS, s->size / entry);
    if (s->link >= f->section_count || f->sections[s->link].type != SHT_STRTAB)
        return profd_error_set(e, PROFD_MALFORMED,
                               "the names of section %s must be a string table, not section %" PRIu32,
                               elf_file_section_name(f, s), s->link);
    struct elf_symtab *t = ARENA_NEW(a, struct elf_symtab);
    if (t == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for a symbol table");
    uint8_t *raw, *strings;
    enum profd_status status = elf_file_load(f, s, a, &raw, e);
    if (status == PROFD_OK)
        status = elf_file_load(f, &f->sections[s->link], a, &strings, e);
    if (status != PROFD_OK)
        return status;
    *t = (struct elf_symtab){.file = f,
                             .raw = raw,
                             .count = (uint32_t)(s->size / entry),
                             .entry = entry,
                             .strings = (const char *)strings,
                             .strings_size = f->sections[s->link].size};
    status = load_wide_sections(t, index, a, e);
    if (status == PROFD_OK)
        *out = t;
    return status;
}

void elf_symtab_get(const struct elf_symtab *t, uint32_t i, struct elf_symbol *out)
{
    const struct elf_file *f = t->file;
    const uint8_t *p = t->raw + (size_t)i * t->entry;
    bool wide = f->bits == 64;
    uint32_t name = elf_u32(f, p);
    uint8_t info = p[wide ? 4 : 12];
    uint32_t section = elf_u16(f, p + (wide ? 6 : 14));
    bool special = section == SHN_UNDEF || section >= SHN_LORESERVE;
    if (section == SHN_XINDEX && i < t->wide_count) {
        section = elf_u32(f, t->wide_sections + (size_t)i * 4);
        special = section == SHN_UNDEF;
    }
    *out = (struct elf_symbol){.value = elf_word(f, p + (wide ? 8 : 4)),
                               .size = elf_word(f, p + (wide ? 16 : 8)),
                               .section = section,
                               .special = special,
                               .bind = info >> 4,
                               .type = info & 15,
                               .name = name < t->strings_size ? t->strings + name : ""};
}
