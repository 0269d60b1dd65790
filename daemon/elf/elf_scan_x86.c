#include "elf/elf_scan.h"

#include <elf.h>

#include "elf/elf_x86.h"

static uint64_t offset8(const uint8_t *p)
{
    return (uint64_t)(int64_t)(int8_t)*p;
}

static uint64_t offset32(const struct elf_file *f, const uint8_t *p)
{
    return (uint64_t)(int64_t)(int32_t)elf_u32(f, p);
}

/* True if the instruction is a direct branch, or in 64-bit mode one through a word at a fixed distance (-fno-plt). */
static bool read_branch(const struct elf_file *f, const uint8_t *p, const struct elf_x86 *x, struct elf_branch *b)
{
    uint64_t next = b->from + x->length;
    const uint8_t *operand = p + x->at + 1;
    unsigned room = x->length - x->at - 1u;
    b->through_word = false;
    b->call = x->opcode == 0xe8;
    if ((x->opcode == 0xe8 || x->opcode == 0xe9) && room == 4) {
        b->to = next + offset32(f, operand);
    } else if (x->opcode == 0xeb || (x->opcode & 0xf0) == 0x70) {
        b->to = next + offset8(operand);
    } else if (x->opcode == 0x0f && (x->second & 0xf0) == 0x80 && room == 5) {
        b->to = next + offset32(f, operand + 1);
    } else if (x->opcode == 0xff && f->bits == 64 && (x->second == 0x15 || x->second == 0x25)) {
        b->call = x->second == 0x15;
        b->through_word = true;
        b->to = next + offset32(f, operand + 1);
    } else {
        return false;
    }
    if (f->machine == EM_386) {
        b->to &= UINT32_MAX;
    }
    return true;
}

/* [at, end) of the section, an instruction beginning at at. */
static void scan_piece(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, uint64_t at, uint64_t end)
{
    bool wide = a->file->machine == EM_X86_64;
    while (at < end && !a->full) {
        struct elf_x86 x;
        struct elf_branch b = {.from = s->sh_addr + at};
        uint64_t left = s->sh_size - at;
        if (!elf_x86_decode(bytes + at, left < 15 ? (size_t)left : 15, wide, &x)) {
            at++; /* data, or an instruction that is never executed */
            continue;
        }
        b.length = x.length;
        if (x.plain && read_branch(a->file, bytes + at, &x, &b)) {
            elf_scan_branch(a, &b, bytes + at);
        }
        at += x.length;
    }
}

void elf_scan_x86(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes)
{
    /* Code begins anew at each function and where one ends: padding and data between them can't shift what follows. */
    const struct elf_functions *f = a->functions;
    uint64_t at = 0;
    for (uint32_t i = elf_functions_from(f, s->sh_addr); i <= f->count && at < s->sh_size; i++) {
        uint64_t start = s->sh_size;
        if (i < f->count && f->list[i].address - s->sh_addr < s->sh_size) {
            start = f->list[i].address - s->sh_addr;
        }
        uint64_t before = i > 0 && f->list[i - 1].end > s->sh_addr ? f->list[i - 1].end - s->sh_addr : 0;
        if (before > at && before < start) {
            scan_piece(a, s, bytes, at, before);
            at = before;
        }
        scan_piece(a, s, bytes, at, start);
        at = start;
    }
}
