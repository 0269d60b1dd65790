#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "core/row_table.h"
#include "elf/elf_internal.h"
#include "proto/late.h"
#include "proto/limits.h"

#define INSTRUCTION_MOST 15u

/* A function's code. */
struct function_code {
    const struct elf_file *file;
    const uint8_t *bytes;
    uint64_t address, size;
    uint64_t low, high; /* addresses of the object; equal where it is position-independent */
    uint32_t pages;     /* AArch64: registers that adrp has set */
    uint64_t hash;      /* FNV-1a, 64 bits */
};

static void code_add(struct function_code *c, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->hash = (c->hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
}

static bool is_inside(const struct function_code *c, uint64_t address)
{
    return address - c->address < c->size;
}

static void mask(uint8_t *p)
{
    memset(p, 0, 4);
}

static void code_read_x86(struct function_code *c)
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
        at += x.length;
        const uint64_t next = c->address + at;
        /* Offset of the 32 bits of a direct branch; 0 if it is none. */
        const bool near = x.opcode == 0xe8 || x.opcode == 0xe9;
        const bool conditional = x.opcode == 0x0f && (x.second & 0xf0) == 0x80;
        const unsigned branch = near ? x.at + 1u : conditional ? x.at + 2u : 0;
        if (x.plain && branch != 0 && x.length == branch + 4u) {
            uint64_t to = next + (uint64_t)(int64_t)(int32_t)elf_u32(c->file, p + branch);
            to = c->file->machine == EM_386 ? to & UINT32_MAX : to;
            if (x.opcode == 0xe8 || !is_inside(c, to)) {
                mask(p + branch);
            }
        } else if (x.plain && (x.opcode == 0xeb || (x.opcode & 0xf0) == 0x70)) { /* a branch of 8 bits */
            if (!is_inside(c, next + (uint64_t)(int64_t)(int8_t)p[x.length - 1])) {
                p[x.length - 1] = 0;
            }
        } else {
            if (x.address != 0) {
                mask(p + x.address);
            }
            if (x.length >= x.at + 5u && elf_u32(c->file, p + x.length - 4) - c->low < c->high - c->low) {
                mask(p + x.length - 4);
            }
        }
        code_add(c, p, x.length);
    }
}

static void code_read_arm64(struct function_code *c)
{
    for (uint64_t at = 0; c->size - at >= 4; at += 4) {
        uint32_t w;
        memcpy(&w, c->bytes + at, 4);
        w = le32toh(w);
        if ((w & 0xfc000000) == 0x94000000) { /* bl */
            w &= 0xfc000000;
        } else if ((w & 0xfc000000) == 0x14000000) { /* b */
            const uint64_t to = c->address + at + (uint64_t)((int64_t)(int32_t)(w << 6) >> 4);
            w = is_inside(c, to) ? w : w & 0xfc000000;
        } else if ((w & 0x1f000000) == 0x10000000) { /* adr, adrp */
            c->pages |= UINT32_C(1) << (w & 31);
            w &= 0x9f00001f;
        } else if (((w & 0x7f800000) == 0x11000000 || (w & 0x3b000000) == 0x39000000) && /* add; load or store */
                   (c->pages >> (w >> 5 & 31) & 1) != 0) {
            w &= ~UINT32_C(0x003ffc00);
        }
        w = htole32(w);
        code_add(c, (const uint8_t *)&w, 4);
    }
}

void elf_code_hash(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                   const GElf_Shdr *s, const uint8_t *bytes)
{
    struct function_code c = {.file = f};
    bool arm64 = f->machine == EM_AARCH64;
    if (!arm64 && f->machine != EM_X86_64 && f->machine != EM_386) {
        return;
    }
    for (uint32_t i = 0; !b->object->position_independent && i < f->segment_count; i++) {
        const GElf_Phdr *p = &f->segments[i];
        if (p->p_type == PT_LOAD && p->p_memsz < UINT64_MAX - p->p_vaddr) {
            c.low = c.high == 0 || p->p_vaddr < c.low ? p->p_vaddr : c.low;
            c.high = p->p_vaddr + p->p_memsz > c.high ? p->p_vaddr + p->p_memsz : c.high;
        }
    }
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

static struct {
    __typeof__(cs_open) *open;
    __typeof__(cs_option) *option;
    __typeof__(cs_malloc) *malloc;
    __typeof__(cs_disasm_iter) *next;
    __typeof__(cs_free) *free;
    __typeof__(cs_close) *close;
} capstone;
static const char *const names[] = {"cs_open", "cs_option", "cs_malloc", "cs_disasm_iter", "cs_free", "cs_close"};

enum profd_status disassembler_load(struct profd_error *e)
{
    static const struct late_library library = {"libcapstone.so.4", names, sizeof names / sizeof *names, &capstone};
    return late_load(&library, e);
}

bool disassembler_knows(uint16_t machine)
{
    return machine == EM_X86_64 || machine == EM_386 || machine == EM_AARCH64;
}

enum profd_status disassembler_open(struct disassembler *d, uint16_t machine, bool text, struct profd_error *e)
{
    const cs_arch arch = machine == EM_AARCH64 ? CS_ARCH_ARM64 : CS_ARCH_X86;
    const cs_mode mode = machine == EM_X86_64 ? CS_MODE_64 : machine == EM_386 ? CS_MODE_32 : CS_MODE_LITTLE_ENDIAN;
    *d = (struct disassembler){0};
    TRY(disassembler_load(e));
    if (capstone.open(arch, mode, &d->handle) == CS_ERR_OK) {
        if (text) {
            (void)capstone.option(d->handle, CS_OPT_SKIPDATA, CS_OPT_ON);
        }
        if (text && arch == CS_ARCH_X86) {
            (void)capstone.option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
        }
        d->instruction = capstone.malloc(d->handle);
        if (d->instruction) {
            return PROFD_OK;
        }
        (void)capstone.close(&d->handle);
    }
    return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for the disassembler");
}

bool disassembler_next(struct disassembler *d, const uint8_t **bytes, size_t *size, uint64_t *address)
{
    return capstone.next(d->handle, bytes, size, address, d->instruction);
}

void disassembler_close(struct disassembler *d)
{
    if (d->instruction) {
        capstone.free(d->instruction, 1);
        (void)capstone.close(&d->handle);
        d->instruction = NULL;
    }
}

struct elf_instructions {
    struct elf_build *build;
    const struct elf_functions *functions;
    uint16_t machine;
    struct disassembler disassembler;
    struct buffer texts, rows;
    struct set known; /* texts; starts has the offset of each */
    uint32_t *starts, start_capacity;
    struct object_instruction last;
    uint32_t count;
    uint64_t end; /* of the previous section */
};

enum profd_status elf_instructions_new(struct elf_build *b, const struct elf_file *f,
                                       const struct elf_functions *functions, struct elf_instructions **out,
                                       struct profd_error *e)
{
    *out = NULL;
    if (!disassembler_knows(f->machine)) {
        elf_build_note(b, "Instructions are known for x86 and AArch64 only; the machine is number %u.", f->machine);
        return PROFD_OK;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        bytes += (s->sh_flags & SHF_EXECINSTR) && s->sh_type == SHT_PROGBITS ? s->sh_size : 0;
    }
    if (bytes == 0) {
        elf_build_note(b, "Instructions are not known: a debug file has no code.");
        return PROFD_OK;
    }
    if (bytes > LIMIT_CODE_BYTES) {
        elf_build_note(b, "Instructions were left out: there are %" PRIu64 " bytes of code, and at most %u are read.",
                       bytes, LIMIT_CODE_BYTES);
        return PROFD_OK;
    }
    struct elf_instructions *i = ARENA_NEW(b->scratch, struct elf_instructions);
    TRY(i ? disassembler_open(&i->disassembler, f->machine, true, e) : profd_no_memory(e));
    i->build = b;
    set_init(&i->known, b->scratch);
    i->functions = functions;
    i->machine = f->machine;
    buffer_init(&i->texts, LIMIT_INSTRUCTION_TEXTS);
    buffer_init(&i->rows, SIZE_MAX);
    buffer_add_char(&i->texts, '\0');
    *out = i;
    return PROFD_OK;
}

void elf_instructions_free(struct elf_instructions *i)
{
    if (i != NULL) {
        disassembler_close(&i->disassembler);
        buffer_done(&i->texts);
        buffer_done(&i->rows);
    }
}

/* Finds the offset of a text, which is added if it is new. False: out of memory, or above LIMIT_INSTRUCTION_TEXTS. */
static bool find_text(struct elf_instructions *i, const char *text, uint32_t *offset)
{
    bool added = false;
    if (!ARENA_EXTEND(i->build->scratch, i->starts, i->known.count, i->start_capacity)) {
        return false;
    }
    const uint32_t number = set_add(&i->known, text, strlen(text), &added);
    if (number != SET_FULL && added) {
        i->starts[number] = (uint32_t)i->texts.size;
        buffer_add(&i->texts, text, strlen(text) + 1);
    }
    *offset = number == SET_FULL ? 0 : i->starts[number];
    return number != SET_FULL && !i->texts.failed;
}

/* Adds an instruction as a row with its text. The target of a direct branch becomes a number of the row, so that equal
 * texts stay few: "tbz w0, #3, #0x1c" becomes "tbz w0, #3, " and 0x1c. False: as find_text. */
static bool add(struct elf_instructions *i, const cs_insn *x)
{
    const char *m = x->mnemonic;
    const bool branch =
        i->machine == EM_AARCH64
            ? strcmp(m, "b") == 0 || strcmp(m, "bl") == 0 || strncmp(m, "b.", 2) == 0 || strncmp(m, "cb", 2) == 0 ||
                  strncmp(m, "tb", 2) == 0
            : m[0] == 'j' || strncmp(m, "call", 4) == 0 || strncmp(m, "loop", 4) == 0 || strcmp(m, "xbegin") == 0;
    struct object_instruction row = {.address = x->address, .size = x->size};
    const char *space = strrchr(x->op_str, ' '), *last = space ? space + 1 : x->op_str, *digits = last;
    size_t kept = strlen(x->op_str);
    digits += *digits == '#';
    if (branch && digits[0] >= '0' && digits[0] <= '9') {
        char *end;
        const uint64_t target = strtoull(digits, &end, 0);
        if (*end == '\0') { /* no part of "(%rsi, %rax, 8)" */
            row.targeted = true;
            row.target = target;
            kept = (size_t)(last - x->op_str);
        }
    }
    char text[LIMIT_INSTRUCTION_TEXT + 1];
    (void)snprintf(text, sizeof text, "%s%s%.*s", m, x->op_str[0] ? " " : "", (int)kept, x->op_str);
    if (!find_text(i, text, &row.text)) {
        return false;
    }
    object_instructions_add(&i->rows, &i->last, &row);
    i->count++;
    return !i->rows.failed;
}

enum profd_status elf_instructions_scan(struct elf_instructions *i, const GElf_Shdr *s, const uint8_t *bytes,
                                        struct profd_error *e)
{
    if (s->sh_addr < i->end || s->sh_size > UINT64_MAX - s->sh_addr) {
        return PROFD_OK;
    }
    const uint64_t end = s->sh_addr + s->sh_size;
    uint32_t next = elf_functions_from(i->functions, s->sh_addr);
    i->end = end;
    for (uint64_t at = s->sh_addr, stop; at < end; at = stop) {
        while (next < i->functions->count && i->functions->list[next].address <= at) {
            next++;
        }
        stop = next < i->functions->count && i->functions->list[next].address < end ? i->functions->list[next].address
                                                                                    : end;
        const uint8_t *p = bytes + (at - s->sh_addr);
        size_t left = (size_t)(stop - at);
        for (uint64_t address = at; left > 0 && disassembler_next(&i->disassembler, &p, &left, &address);) {
            FAIL_IF(!add(i, i->disassembler.instruction), e, PROFD_NO_MEMORY,
                    "out of memory for %" PRIu32 " instructions", i->count);
        }
    }
    return PROFD_OK;
}

enum profd_status elf_instructions_finish(struct elf_instructions *i, struct profd_error *e)
{
    struct object *o = i->build->object;
    char *texts = arena_copy(i->build->out, i->texts.data, i->texts.size);
    char *rows = i->count > 0 ? arena_copy(i->build->out, i->rows.data, i->rows.size) : NULL;
    FAIL_IF(texts == NULL || (i->count > 0 && rows == NULL), e, PROFD_NO_MEMORY,
            "out of memory for %" PRIu32 " instructions", i->count);
    o->instruction_texts = texts;
    o->instruction_text_bytes = (uint32_t)i->texts.size;
    o->instruction_bytes = (const uint8_t *)rows;
    o->instruction_size = i->rows.size;
    o->instruction_count = i->count;
    return PROFD_OK;
}
