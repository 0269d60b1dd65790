#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/sort.h"
#include "elf/elf_internal.h"
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
        TRY(read_section(r, b, s, e));
    }
    return PROFD_OK;
}

/* Fills the list, ascending by word. If a word has several relocations, one with a name is used. Malformed tables lead
 * to a note. NO_MEMORY, LIMIT. O(relocations + imports log imports). */
static enum profd_status elf_imports_read(struct elf_build *b, const struct elf_file *f, struct elf_imports *out,
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

/* No linker creates longer slots, so code further after the last one does not belong to it. */
#define SLOT_MAX 32u

struct elf_import *elf_plt_slot_at(const struct elf_plt *p, uint64_t address)
{
    uint32_t at = compare_find_first(p->slots, p->slot_count, sizeof *p->slots, address);
    return at < p->slot_count && p->slots[at].address == address ? &p->imports.list[p->slots[at].import] : NULL;
}

/* Decoding one PLT section. */
struct decoder {
    const struct elf_file *f;
    const GElf_Shdr *s;
    const uint8_t *bytes;
    uint64_t got; /* of i386: what %ebx holds */
};

/* x86: at an indirect jump (ff 25 or, on i386, ff a3), the address of the word it jumps through. */
static bool x86_word(const struct decoder *d, uint64_t at, uint64_t *word)
{
    const uint8_t *p = d->bytes + at;
    if (at + 6 > d->s->sh_size || p[0] != 0xff) {
        return false;
    }
    uint64_t displacement = (uint64_t)(int64_t)(int32_t)elf_u32(d->f, p + 2);
    if (p[1] == 0x25) {
        *word = d->f->machine == EM_X86_64 ? d->s->sh_addr + at + 6 + displacement : (uint32_t)displacement;
        return true;
    }
    if (p[1] == 0xa3 && d->f->machine == EM_386) {
        *word = (uint32_t)(d->got + displacement);
        return true;
    }
    return false;
}

/* Start of the slot with the jump at `at`: endbr and the bnd prefix belong to it. */
static uint64_t x86_slot_start(const struct decoder *d, uint64_t at)
{
    const uint8_t *p = d->bytes;
    if (at > 0 && p[at - 1] == 0xf2) {
        at--;
    }
    if (at >= 4 && p[at - 4] == 0xf3 && p[at - 3] == 0x0f && p[at - 2] == 0x1e &&
        (p[at - 1] == 0xfa || p[at - 1] == 0xfb)) {
        at -= 4;
    }
    return at;
}

/* AArch64: adrp x16, page; ldr x17, [x16, #offset]. */
static bool arm64_word(const struct decoder *d, uint64_t at, uint64_t *word)
{
    if (at % 4 != 0 || at + 8 > d->s->sh_size) {
        return false;
    }
    /* Instructions are little-endian even if data is big-endian. */
    uint32_t adrp, ldr;
    memcpy(&adrp, d->bytes + at, 4);
    memcpy(&ldr, d->bytes + at + 4, 4);
    adrp = le32toh(adrp);
    ldr = le32toh(ldr);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) {
        return false;
    }
    uint64_t pages = (uint64_t)((adrp >> 29) & 3) | (uint64_t)((adrp >> 5) & 0x7ffff) << 2;
    if (pages & 0x100000) {
        pages |= ~UINT64_C(0x1fffff);
    }
    *word = ((d->s->sh_addr + at) & ~UINT64_C(0xfff)) + (pages << 12) + (uint64_t)((ldr >> 10) & 0xfff) * 8;
    return true;
}

static uint64_t arm64_slot_start(const struct decoder *d, uint64_t at)
{
    uint32_t before;
    if (at < 4) {
        return at;
    }
    memcpy(&before, d->bytes + at - 4, 4);
    return le32toh(before) == 0xd503245f ? at - 4 : at; /* bti c */
}

/* Appends the section's slots; slots must have capacity for one for every 4 bytes. */
static void decode_slots(const struct decoder *d, struct elf_plt *p)
{
    bool arm = d->f->machine == EM_AARCH64;
    uint32_t first = p->slot_count;
    for (uint64_t at = 0; at < d->s->sh_size; at += arm ? 4 : 1) {
        uint64_t word;
        if (!(arm ? arm64_word(d, at, &word) : x86_word(d, at, &word))) {
            continue;
        }
        const struct elf_import *i = elf_imports_at(&p->imports, word);
        if (i == NULL) {
            continue;
        }
        uint64_t start = arm ? arm64_slot_start(d, at) : x86_slot_start(d, at);
        p->slots[p->slot_count++] = (struct elf_slot){d->s->sh_addr + start, SLOT_MAX, (uint32_t)(i - p->imports.list)};
        at += arm ? 4 : 5;
    }
    uint64_t end = d->s->sh_addr + d->s->sh_size;
    for (uint32_t k = p->slot_count; k > first; k--) {
        struct elf_slot *s = &p->slots[k - 1];
        if (end - s->address < s->size) {
            s->size = (uint32_t)(end - s->address);
        }
        end = s->address;
    }
}

/* Position-independent slots of i386 are relative to .got.plt. */
static uint64_t got_base(const struct elf_file *f)
{
    const GElf_Shdr *s = elf_file_find(f, ".got.plt");
    if (s == NULL) {
        s = elf_file_find(f, ".got");
    }
    return s == NULL ? 0 : s->sh_addr;
}

static enum profd_status read_slots(struct elf_build *b, const struct elf_file *f, struct elf_plt *p,
                                    struct profd_error *e)
{
    uint32_t *code, count;
    enum profd_status status = elf_file_code(f, b->scratch, &code, &count, e);
    uint64_t bytes = 0, end = 0;
    for (uint32_t i = 0; i < count && status == PROFD_OK; i++) {
        if (elf_ranges_is_plt(f, &f->sections[code[i]])) {
            bytes += f->sections[code[i]].sh_size / 4 + 1;
        }
    }
    if (status != PROFD_OK || bytes <= 1) {
        return status;
    }
    if (bytes > LIMIT_SYMBOLS) {
        return profd_error_set(e, PROFD_LIMIT,
                               "an executable may have at most %u PLT slots; the size of its PLT allows %" PRIu64,
                               LIMIT_SYMBOLS, bytes);
    }
    p->slots = ARENA_ARRAY(b->scratch, (size_t)bytes, struct elf_slot);
    if (p->slots == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " PLT slots", bytes);
    }
    for (uint32_t i = 0; i < count && status == PROFD_OK; i++) {
        const GElf_Shdr *s = &f->sections[code[i]];
        if (!elf_ranges_is_plt(f, s) || s->sh_addr < end || s->sh_size > UINT64_MAX - s->sh_addr) {
            continue;
        }
        end = s->sh_addr + s->sh_size;
        const uint8_t *p_bytes = NULL;
        status = elf_file_bytes(f, s, &p_bytes, e);
        struct decoder d = {f, s, p_bytes, got_base(f)};
        if (status == PROFD_OK) {
            decode_slots(&d, p);
        }
    }
    return status;
}

static enum profd_status publish(struct elf_build *b, struct elf_plt *p, struct profd_error *e)
{
    struct object *o = b->object;
    o->plt = ARENA_ARRAY(b->out, (size_t)p->slot_count + 1, struct object_plt);
    if (o->plt == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " PLT slots", p->slot_count);
    }
    for (uint32_t i = 0; i < p->slot_count; i++) {
        struct elf_import *import = &p->imports.list[p->slots[i].import];
        if (import->text != NULL) {
            o->plt[o->plt_count++] =
                (struct object_plt){p->slots[i].address, p->slots[i].size, elf_imports_name(b, import)};
        }
    }
    return PROFD_OK;
}

enum profd_status elf_plt_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out,
                               struct profd_error *e)
{
    struct elf_plt p = {0};
    TRY(elf_imports_read(b, f, &p.imports, e));
    if (p.imports.count != 0) {
        TRY(read_slots(b, f, &p, e));
    }
    TRY(publish(b, &p, e));
    *out = p;
    return PROFD_OK;
}
