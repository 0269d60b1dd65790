#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/sort.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"

/* The relocation types of one machine. */
struct relocation_types {
    uint16_t machine;
    uint32_t slot, data, relative; /* JUMP_SLOT, GLOB_DAT, IRELATIVE */
};

static const struct relocation_types machines[] = {
    {EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE},
    {EM_386, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE},
    {EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE},
};

/* The relocation section that is being read. */
struct import_reader {
    const struct elf_file *f;
    const struct relocation_types *machine;
    const struct elf_symtab *symbols; /* NULL: the table has none */
    struct arena *arena;
    struct elf_imports *out;
    uint32_t capacity;
    bool with_addend;
};

static enum profd_status add_import(struct import_reader *r, const struct elf_import *i, struct profd_error *e)
{
    struct elf_imports *p = r->out;
    FAIL_IF(p->count >= LIMIT_SYMBOLS, e, PROFD_LIMIT, "an executable may have at most %u imported functions",
            LIMIT_SYMBOLS);
    FAIL_IF(!ARENA_EXTEND(r->arena, p->list, p->count, r->capacity), e, PROFD_NO_MEMORY,
            "out of memory for %" PRIu32 " imported functions", p->count + 1);
    p->list[p->count++] = *i;
    return PROFD_OK;
}

/* Adds the imports of one section of relocations. */
static enum profd_status read_section(struct import_reader *r, struct elf_build *b, const GElf_Shdr *s,
                                      struct profd_error *e)
{
    Elf_Data *data;
    struct profd_error why;
    enum profd_status status = elf_file_data(r->f, s, &data, &why);
    FAIL_IF(status == PROFD_NO_MEMORY, e, status, "%s", why.sentence);
    if (status) {
        elf_build_note(b, "Some imported functions have no names: %s.", why.sentence);
        return PROFD_OK;
    }
    const uint64_t count = s->sh_size / gelf_fsize(r->f->elf, r->with_addend ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
    for (uint64_t i = 0; i < count && i <= INT_MAX; i++) {
        GElf_Rela one = {0};
        GElf_Rel plain;
        if (r->with_addend ? gelf_getrela(data, (int)i, &one) == NULL : gelf_getrel(data, (int)i, &plain) == NULL) {
            continue;
        }
        one = r->with_addend ? one : (GElf_Rela){plain.r_offset, plain.r_info, 0};
        const uint64_t type = GELF_R_TYPE(one.r_info), number = GELF_R_SYM(one.r_info);
        struct elf_import import = {.word = one.r_offset};
        if (type == r->machine->relative && r->with_addend) {
            import.target = r->f->bits == 64 ? (uint64_t)one.r_addend : (uint32_t)one.r_addend;
            TRY(add_import(r, &import, e));
            continue;
        }
        if ((type != r->machine->slot && type != r->machine->data) || r->symbols == NULL || number == 0 ||
            number >= r->symbols->count) {
            continue;
        }
        struct elf_symbol symbol;
        elf_symtab_get(r->symbols, (uint32_t)number, &symbol);
        if (symbol.type != STT_OBJECT && symbol.type != STT_TLS && symbol.type != STT_SECTION &&
            symbol.name[0] != '\0') {
            import.text = symbol.name;
            TRY(add_import(r, &import, e));
        }
    }
    return PROFD_OK;
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

/* Fills the list, in scratch, ascending by word. If a word has several relocations, one with a name is used. Malformed
 * tables lead to a note. NO_MEMORY, LIMIT. O(relocations + imports log imports). */
static enum profd_status elf_imports_read(struct elf_build *b, const struct elf_file *f, struct elf_imports *out,
                                          struct profd_error *e)
{
    struct import_reader r = {.f = f, .arena = b->scratch, .out = out};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        if (machines[i].machine == f->machine) {
            r.machine = &machines[i];
        }
    }
    uint32_t loaded = 0; /* the section of the symbols that were loaded last: .dynsym, as a rule for all tables */
    struct elf_symtab *symbols = NULL;
    uint64_t budget = f->size; /* headers that refer to the same bytes are counted once */
    for (uint32_t i = 0; r.machine != NULL && i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if ((s->sh_type != SHT_RELA && s->sh_type != SHT_REL) || !(s->sh_flags & SHF_ALLOC) ||
            s->sh_flags & SHF_COMPRESSED || !elf_file_holds(f, s->sh_offset, s->sh_size) || s->sh_size > budget) {
            continue;
        }
        budget -= s->sh_size;
        r.with_addend = s->sh_type == SHT_RELA;
        const uint32_t link = s->sh_link;
        const bool linked = link != 0 && link < f->section_count && f->sections[link].sh_type == SHT_DYNSYM;
        if (linked && loaded != link) {
            struct profd_error why;
            enum profd_status status = elf_symtab_load(f, link, b->scratch, &symbols, &why);
            FAIL_IF(status == PROFD_NO_MEMORY, e, status, "out of memory for the dynamic symbols");
            if (status) {
                elf_build_note(b, "Imported functions have no names: %s.", why.sentence);
            } else {
                loaded = link;
            }
        }
        r.symbols = linked && loaded == link ? symbols : NULL;
        TRY(read_section(&r, b, s, e));
    }

    uint32_t kept = 0;
    if (out->count > 0) {
        qsort(out->list, out->count, sizeof *out->list, compare_imports);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (kept == 0 || out->list[kept - 1].word != out->list[i].word) {
            out->list[kept++] = out->list[i];
        }
    }
    out->count = kept;
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
struct slot_decoder {
    const struct elf_file *f;
    const GElf_Shdr *s;
    const uint8_t *bytes;
    uint64_t got; /* of i386: what %ebx holds */
};

/* x86: finds a slot by its indirect jump (ff 25 or, on i386, ff a3) at `at`. *word: the address of the word it jumps
 * through. *start: where the slot begins in the section; endbr and the bnd prefix belong to it. */
static bool x86_slot(const struct slot_decoder *d, uint64_t at, uint64_t *word, uint64_t *start)
{
    const uint8_t *p = d->bytes + at;
    if (at + 6 > d->s->sh_size || p[0] != 0xff) {
        return false;
    }
    uint64_t displacement = (uint64_t)(int64_t)(int32_t)elf_u32(d->f, p + 2);
    if (p[1] == 0x25) {
        *word = d->f->machine == EM_X86_64 ? d->s->sh_addr + at + 6 + displacement : (uint32_t)displacement;
    } else if (p[1] == 0xa3 && d->f->machine == EM_386) {
        *word = (uint32_t)(d->got + displacement);
    } else {
        return false;
    }
    p = d->bytes;
    at -= at > 0 && p[at - 1] == 0xf2;
    if (at >= 4 && p[at - 4] == 0xf3 && p[at - 3] == 0x0f && p[at - 2] == 0x1e &&
        (p[at - 1] == 0xfa || p[at - 1] == 0xfb)) {
        at -= 4;
    }
    *start = at;
    return true;
}

/* AArch64: the same by adrp x16, page; ldr x17, [x16, #offset]. bti c before them belongs to the slot. */
static bool arm64_slot(const struct slot_decoder *d, uint64_t at, uint64_t *word, uint64_t *start)
{
    if (at % 4 != 0 || at + 8 > d->s->sh_size) {
        return false;
    }
    /* Instructions are little-endian even if data is big-endian. */
    uint32_t adrp, ldr, before = 0;
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
    if (at >= 4) {
        memcpy(&before, d->bytes + at - 4, 4);
    }
    *start = le32toh(before) == 0xd503245f ? at - 4 : at;
    return true;
}

/* Appends the section's slots; p->slots must have room for one for every 4 bytes. */
static void decode_slots(const struct slot_decoder *d, struct elf_plt *p)
{
    bool arm = d->f->machine == EM_AARCH64;
    uint32_t first = p->slot_count;
    for (uint64_t at = 0; at < d->s->sh_size; at += arm ? 4 : 1) {
        uint64_t word, start;
        const struct elf_import *i = NULL;
        if (arm ? arm64_slot(d, at, &word, &start) : x86_slot(d, at, &word, &start)) {
            i = elf_imports_at(&p->imports, word);
        }
        if (i != NULL) {
            p->slots[p->slot_count++] =
                (struct elf_slot){d->s->sh_addr + start, SLOT_MAX, (uint32_t)(i - p->imports.list)};
            at += arm ? 4 : 5;
        }
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

enum profd_status elf_plt_read(struct elf_build *b, const struct elf_file *f, struct elf_plt *out,
                               struct profd_error *e)
{
    struct elf_plt p = {0};
    uint32_t *code, count = 0;
    uint64_t most = 0, end = 0;
    TRY(elf_imports_read(b, f, &p.imports, e));
    if (p.imports.count != 0) {
        TRY(elf_file_code(f, b->scratch, &code, &count, e));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (elf_ranges_is_plt(f, &f->sections[code[i]])) {
            most += f->sections[code[i]].sh_size / 4 + 1;
        }
    }
    FAIL_IF(most > LIMIT_SYMBOLS, e, PROFD_LIMIT,
            "an executable may have at most %u PLT slots; the size of its PLT allows %" PRIu64, LIMIT_SYMBOLS, most);
    p.slots = ARENA_ARRAY(b->scratch, (size_t)most + 1, struct elf_slot);
    FAIL_IF(p.slots == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " PLT slots", most);
    /* Position-independent slots of i386 are relative to .got.plt, else to .got. */
    const GElf_Shdr *got = elf_file_find(f, ".got.plt");
    got = got == NULL ? elf_file_find(f, ".got") : got;
    for (uint32_t i = 0; i < count; i++) {
        const GElf_Shdr *s = &f->sections[code[i]];
        if (elf_ranges_is_plt(f, s) && s->sh_addr >= end && s->sh_size <= UINT64_MAX - s->sh_addr) {
            struct slot_decoder d = {f, s, NULL, got == NULL ? 0 : got->sh_addr};
            end = s->sh_addr + s->sh_size;
            TRY(elf_file_bytes(f, s, &d.bytes, e));
            decode_slots(&d, &p);
        }
    }

    struct object *o = b->object;
    o->plt = ARENA_ARRAY(b->out, (size_t)p.slot_count + 1, struct object_plt);
    FAIL_IF(o->plt == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " PLT slots", p.slot_count);
    for (uint32_t i = 0; i < p.slot_count; i++) {
        struct elf_import *import = &p.imports.list[p.slots[i].import];
        if (import->text != NULL) {
            o->plt[o->plt_count++] =
                (struct object_plt){p.slots[i].address, p.slots[i].size, elf_imports_name(b, import)};
        }
    }
    *out = p;
    return PROFD_OK;
}
