#include "elf/elf_plt.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/compare.h"
#include "elf/elf_ranges.h"
#include "proto/limits.h"

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
    enum profd_status status = elf_imports_read(b, f, &p.imports, e);
    if (status == PROFD_OK && p.imports.count != 0) {
        status = read_slots(b, f, &p, e);
    }
    if (status == PROFD_OK) {
        status = publish(b, &p, e);
    }
    if (status == PROFD_OK) {
        *out = p;
    }
    return status;
}
