#include "elf/elf_code.h"

#include <elf.h>
#include <string.h>

#include "elf/elf_x86.h"

#define INSTRUCTION_MOST 15u

/* A function's code. */
struct code {
    const struct elf_file *file;
    const uint8_t *bytes;
    uint64_t address, size;
    uint64_t low, high; /* addresses of the object; equal where it is position-independent */
    uint32_t pages;     /* AArch64: registers that adrp has set */
    uint64_t hash;      /* FNV-1a, 64 bits */
};

static void code_add(struct code *c, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->hash = (c->hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
}

static bool is_inside(const struct code *c, uint64_t address)
{
    return address - c->address < c->size;
}

static bool is_address(const struct code *c, uint64_t value)
{
    return value - c->low < c->high - c->low;
}

static void mask(uint8_t *p)
{
    memset(p, 0, 4);
}

static bool is_short_branch(const struct elf_x86 *x)
{
    return x->plain && (x->opcode == 0xeb || (x->opcode & 0xf0) == 0x70);
}

static void mask_x86(const struct code *c, const struct elf_x86 *x, uint64_t next, uint8_t *p)
{
    /* Offset of a direct branch of 32 bits; 0 if it is none. */
    bool near = x->opcode == 0xe8 || x->opcode == 0xe9;
    bool conditional = x->opcode == 0x0f && (x->second & 0xf0) == 0x80;
    unsigned at = near ? x->at + 1u : conditional ? x->at + 2u : 0;
    unsigned branch = x->plain && at != 0 && x->length == at + 4u ? at : 0;
    if (branch != 0) {
        uint64_t to = next + (uint64_t)(int64_t)(int32_t)elf_u32(c->file, p + branch);
        to = c->file->machine == EM_386 ? to & UINT32_MAX : to;
        if (x->opcode == 0xe8 || !is_inside(c, to)) {
            mask(p + branch);
        }
        return;
    }
    if (is_short_branch(x)) {
        bool inside = is_inside(c, next + (uint64_t)(int64_t)(int8_t)p[x->length - 1]);
        p[x->length - 1] = inside ? p[x->length - 1] : 0;
        return;
    }
    if (x->address != 0) {
        mask(p + x->address);
    }
    if (x->length >= x->at + 5u && is_address(c, elf_u32(c->file, p + x->length - 4))) {
        mask(p + x->length - 4);
    }
}

static void code_read_x86(struct code *c)
{
    for (uint64_t at = 0; at < c->size;) {
        uint8_t p[INSTRUCTION_MOST];
        struct elf_x86 x;
        size_t left = c->size - at < sizeof p ? (size_t)(c->size - at) : sizeof p;
        memcpy(p, c->bytes + at, left);
        if (!elf_x86_decode(p, left, c->file->machine == EM_X86_64, &x)) {
            code_add(c, p, 1);
            at++;
            continue;
        }
        mask_x86(c, &x, c->address + at + x.length, p);
        code_add(c, p, x.length);
        at += x.length;
    }
}

static uint32_t mask_arm64(struct code *c, uint64_t address, uint32_t w)
{
    uint32_t base = w >> 5 & 31;
    if ((w & 0xfc000000) == 0x94000000) { /* bl */
        return w & 0xfc000000;
    }
    if ((w & 0xfc000000) == 0x14000000) { /* b */
        uint64_t to = address + (uint64_t)((int64_t)(int32_t)(w << 6) >> 4);
        return is_inside(c, to) ? w : w & 0xfc000000;
    }
    if ((w & 0x1f000000) == 0x10000000) { /* adr, adrp */
        c->pages |= UINT32_C(1) << (w & 31);
        return w & 0x9f00001f;
    }
    bool add = (w & 0x7f800000) == 0x11000000, memory = (w & 0x3b000000) == 0x39000000;
    return (add || memory) && (c->pages >> base & 1) != 0 ? w & ~UINT32_C(0x003ffc00) : w;
}

static void code_read_arm64(struct code *c)
{
    for (uint64_t at = 0; c->size - at >= 4; at += 4) {
        uint32_t w;
        memcpy(&w, c->bytes + at, 4);
        w = htole32(mask_arm64(c, c->address + at, le32toh(w)));
        code_add(c, (const uint8_t *)&w, 4);
    }
}

static void set_extent(struct code *c, const struct elf_build *b)
{
    const struct object *o = b->object;
    if (o->position_independent) {
        return;
    }
    for (uint32_t i = 0; i < c->file->segment_count; i++) {
        const GElf_Phdr *s = &c->file->segments[i];
        if (s->p_type == PT_LOAD && s->p_memsz < UINT64_MAX - s->p_vaddr) {
            c->low = c->high == 0 || s->p_vaddr < c->low ? s->p_vaddr : c->low;
            c->high = s->p_vaddr + s->p_memsz > c->high ? s->p_vaddr + s->p_memsz : c->high;
        }
    }
}

void elf_code_hash(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                   const GElf_Shdr *s, const uint8_t *bytes)
{
    struct code c = {.file = f};
    bool arm64 = f->machine == EM_AARCH64;
    if (!arm64 && f->machine != EM_X86_64 && f->machine != EM_386) {
        return;
    }
    set_extent(&c, b);
    for (uint32_t i = elf_functions_from(functions, s->sh_addr); i < functions->count; i++) {
        const struct elf_function *function = &functions->list[i];
        uint64_t at = function->address - s->sh_addr;
        if (at >= s->sh_size) {
            break;
        }
        c.address = function->address;
        c.size = function->end - function->address;
        if (c.size < ELF_CODE_LEAST || c.size > s->sh_size - at) {
            continue;
        }
        c.bytes = bytes + at;
        c.pages = 0;
        c.hash = UINT64_C(0xcbf29ce484222325);
        if (arm64) {
            code_read_arm64(&c);
        } else {
            code_read_x86(&c);
        }
        for (uint32_t k = 0; k < function->aliases; k++) {
            b->object->symbols[functions->symbols[function->first + k]].code =
                (c.hash ^ c.hash >> 56) & UINT64_MAX >> 8;
        }
    }
}
