#include "elf/elf_imports.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "core/compare.h"
#include "elf/elf_symbols.h"
#include "proto/limits.h"

/* The relocation types of one machine. */
struct machine {
    uint16_t machine;
    uint32_t slot, data, relative; /* JUMP_SLOT, GLOB_DAT, IRELATIVE */
};

static const struct machine machines[] = {
    {EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE},
    {EM_386, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE},
    {EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE},
};

/* The relocation section that is being read. */
struct reader {
    const struct elf_file *f;
    const struct machine *machine;
    const struct elf_symtab *symbols; /* NULL: the table has none */
    struct elf_imports *out;
    uint32_t capacity;
    bool with_addend;
};

static enum profd_status add_import(struct reader *r, const struct elf_import *i, struct profd_error *e)
{
    struct elf_imports *p = r->out;
    if (p->count == r->capacity) {
        if (p->count >= LIMIT_SYMBOLS) {
            return profd_error_set(e, PROFD_LIMIT, "an executable may have at most %u imported functions",
                                   LIMIT_SYMBOLS);
        }
        uint32_t capacity = r->capacity == 0 ? 256 : r->capacity * 2;
        struct elf_import *more = realloc(p->list, (size_t)capacity * sizeof *more);
        if (more == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " imported functions", capacity);
        }
        p->list = more;
        r->capacity = capacity;
    }
    p->list[p->count++] = *i;
    return PROFD_OK;
}

static enum profd_status read_one(struct reader *r, const GElf_Rela *from, struct profd_error *e)
{
    const uint64_t type = GELF_R_TYPE(from->r_info), number = GELF_R_SYM(from->r_info);
    struct elf_import i = {.word = from->r_offset};
    if (type == r->machine->relative && r->with_addend) {
        i.target = r->f->bits == 64 ? (uint64_t)from->r_addend : (uint32_t)from->r_addend;
        return add_import(r, &i, e);
    }
    if ((type != r->machine->slot && type != r->machine->data) || r->symbols == NULL || number == 0 ||
        number >= r->symbols->count) {
        return PROFD_OK;
    }
    struct elf_symbol s;
    elf_symtab_get(r->symbols, (uint32_t)number, &s);
    if (s.type == STT_OBJECT || s.type == STT_TLS || s.type == STT_SECTION || s.name[0] == '\0') {
        return PROFD_OK;
    }
    i.text = s.name;
    return add_import(r, &i, e);
}

static enum profd_status read_section(struct reader *r, struct elf_build *b, const GElf_Shdr *s, struct profd_error *e)
{
    Elf_Data *data;
    struct profd_error why;
    enum profd_status status = elf_file_data(r->f, s, &data, &why);
    if (status == PROFD_NO_MEMORY) {
        return profd_error_set(e, status, "%s", why.sentence);
    }
    if (status != PROFD_OK) {
        elf_build_note(b, "Some imported functions have no names: %s.", why.sentence);
        return PROFD_OK;
    }
    const uint64_t count = s->sh_size / gelf_fsize(r->f->elf, r->with_addend ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
    for (uint64_t i = 0; i < count && i <= INT_MAX && status == PROFD_OK; i++) {
        GElf_Rela one = {0};
        GElf_Rel plain;
        if (r->with_addend ? gelf_getrela(data, (int)i, &one) != NULL : gelf_getrel(data, (int)i, &plain) != NULL) {
            one = r->with_addend ? one : (GElf_Rela){plain.r_offset, plain.r_info, 0};
            status = read_one(r, &one, e);
        }
    }
    return status;
}

static int compare_imports(const void *x, const void *y)
{
    const struct elf_import *a = x, *b = y;
    if (a->word != b->word) {
        return a->word < b->word ? -1 : 1;
    }
    if (a->text == NULL || b->text == NULL) {
        return a->text != NULL ? -1 : b->text != NULL;
    }
    return strcmp(a->text, b->text);
}

/* Sorts, keeps one import for each word, and moves the list into scratch. */
static enum profd_status settle(struct elf_build *b, struct elf_imports *p, struct profd_error *e)
{
    qsort(p->list, p->count, sizeof *p->list, compare_imports);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (kept == 0 || p->list[kept - 1].word != p->list[i].word) {
            p->list[kept++] = p->list[i];
        }
    }
    struct elf_import *list = ARENA_ARRAY(b->scratch, (size_t)kept + 1, struct elf_import);
    if (list == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " imported functions", kept);
    }
    memcpy(list, p->list, kept * sizeof *list);
    free(p->list);
    p->list = list;
    p->count = kept;
    return PROFD_OK;
}

static bool section_usable(const struct elf_file *f, const GElf_Shdr *s)
{
    return (s->sh_type == SHT_RELA || s->sh_type == SHT_REL) && s->sh_flags & SHF_ALLOC &&
           !(s->sh_flags & SHF_COMPRESSED) && elf_file_holds(f, s->sh_offset, s->sh_size);
}

/* Loads the symbols of the table's own section, the same .dynsym only once. */
static enum profd_status use_symbols(struct reader *r, struct elf_build *b, uint32_t link, uint32_t *loaded,
                                     struct elf_symtab **kept)
{
    const struct elf_file *f = r->f;
    r->symbols = NULL;
    if (link == 0 || link >= f->section_count || f->sections[link].sh_type != SHT_DYNSYM) {
        return PROFD_OK;
    }
    if (*loaded != link) {
        struct elf_symtab *t;
        struct profd_error why;
        enum profd_status status = elf_symtab_load(f, link, b->scratch, &t, &why);
        if (status == PROFD_NO_MEMORY) {
            return status;
        }
        if (status != PROFD_OK) {
            elf_build_note(b, "Imported functions have no names: %s.", why.sentence);
            return PROFD_OK;
        }
        *kept = t;
        *loaded = link;
    }
    r->symbols = *kept;
    return PROFD_OK;
}

static enum profd_status read_all(struct reader *r, struct elf_build *b, struct profd_error *e)
{
    const struct elf_file *f = r->f;
    uint32_t loaded = 0;
    uint64_t budget = f->size; /* headers that refer to the same bytes are counted once */
    struct elf_symtab *kept = NULL;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (!section_usable(f, s) || s->sh_size > budget) {
            continue;
        }
        budget -= s->sh_size;
        r->with_addend = s->sh_type == SHT_RELA;
        enum profd_status status = use_symbols(r, b, s->sh_link, &loaded, &kept);
        if (status != PROFD_OK) {
            return profd_error_set(e, status, "out of memory for the dynamic symbols");
        }
        status = read_section(r, b, s, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    return PROFD_OK;
}

enum profd_status elf_imports_read(struct elf_build *b, const struct elf_file *f, struct elf_imports *out,
                                   struct profd_error *e)
{
    struct elf_imports p = {0};
    struct reader r = {.f = f, .out = &p};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        if (machines[i].machine == f->machine) {
            r.machine = &machines[i];
        }
    }
    enum profd_status status = r.machine == NULL ? PROFD_OK : read_all(&r, b, e);
    if (status == PROFD_OK && p.count != 0) {
        status = settle(b, &p, e);
    }
    if (status != PROFD_OK) {
        free(p.list);
        return status;
    }
    *out = p;
    return PROFD_OK;
}

struct elf_import *elf_imports_at(const struct elf_imports *p, uint64_t word)
{
    uint32_t at = compare_find_first(p->list, p->count, sizeof *p->list, word);
    return at < p->count && p->list[at].word == word ? &p->list[at] : NULL;
}

uint32_t elf_imports_name(struct elf_build *b, struct elf_import *i)
{
    if (i->name == 0 && i->text != NULL) {
        i->name = elf_build_name(b, i->text, strnlen(i->text, LIMIT_SYMBOL_NAME + 1));
    }
    return i->name;
}
