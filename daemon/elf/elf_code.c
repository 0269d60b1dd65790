#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "core/table.h"
#include "elf/elf_internal.h"
#include "proto/late.h"
#include "proto/limits.h"

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
    return late_load("libcapstone.so.4", names, sizeof names / sizeof *names, &capstone, e);
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
    struct table known; /* of the texts that begin at starts */
    uint32_t *starts, start_count, start_capacity;
    struct object_instruction last;
    uint32_t count;
    uint64_t end; /* of the previous section */
};

/* May the instructions be kept? The note states why not. */
static bool is_kept(struct elf_build *b, const struct elf_file *f)
{
    uint64_t bytes = 0;
    if (!disassembler_knows(f->machine)) {
        elf_build_note(b, "Instructions are known for x86 and AArch64 only; the machine is number %u.", f->machine);
        return false;
    }
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        bytes += (s->sh_flags & SHF_EXECINSTR) && s->sh_type == SHT_PROGBITS ? s->sh_size : 0;
    }
    if (bytes == 0) {
        elf_build_note(b, "Instructions are not known: a debug file has no code.");
    } else if (bytes > LIMIT_CODE_BYTES) {
        elf_build_note(b, "Instructions were left out: there are %" PRIu64 " bytes of code, and at most %u are read.",
                       bytes, LIMIT_CODE_BYTES);
    }
    return bytes > 0 && bytes <= LIMIT_CODE_BYTES;
}

enum profd_status elf_instructions_new(struct elf_build *b, const struct elf_file *f,
                                       const struct elf_functions *functions, struct elf_instructions **out,
                                       struct profd_error *e)
{
    *out = NULL;
    if (!is_kept(b, f)) {
        return PROFD_OK;
    }
    struct elf_instructions *i = calloc(1, sizeof *i);
    enum profd_status status = i ? disassembler_open(&i->disassembler, f->machine, true, e) : profd_no_memory(e);
    if (status) {
        free(i);
        return status;
    }
    i->build = b;
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
    if (i == NULL) {
        return;
    }
    disassembler_close(&i->disassembler);
    buffer_done(&i->texts);
    buffer_done(&i->rows);
    free(i);
}

static uint64_t hash_start(const void *context, uint32_t index)
{
    const struct elf_instructions *i = context;
    return table_hash_text(i->texts.data + i->starts[index], 0, 0);
}

/* The offset of a text, which is added if it is new. False: out of memory, or above LIMIT_INSTRUCTION_TEXTS. */
static bool find_text(struct elf_instructions *i, const char *text, uint32_t *offset)
{
    struct arena *a = i->build->scratch;
    uint32_t *starts = arena_extend(a, i->starts, i->start_count, &i->start_capacity, sizeof *starts);
    if (starts == NULL) {
        return false;
    }
    i->starts = starts;
    if (!table_reserve(&i->known, a, hash_start, i)) {
        return false;
    }
    uint32_t slot = table_slot(&i->known, table_hash_text(text, 0, 0));
    for (; i->known.slots[slot] != 0; slot = (slot + 1) & i->known.mask) {
        *offset = starts[i->known.slots[slot] - 1];
        if (strcmp(i->texts.data + *offset, text) == 0) {
            return true;
        }
    }
    *offset = (uint32_t)i->texts.size;
    buffer_add(&i->texts, text, strlen(text) + 1);
    starts[i->start_count++] = *offset;
    i->known.slots[slot] = i->start_count;
    i->known.used++;
    return !i->texts.failed;
}

/* True if the last operand is the target of the instruction. */
static bool is_branch(const struct elf_instructions *i, const cs_insn *x)
{
    const char *m = x->mnemonic;
    if (i->machine == EM_AARCH64) {
        return strcmp(m, "b") == 0 || strcmp(m, "bl") == 0 || strncmp(m, "b.", 2) == 0 || strncmp(m, "cb", 2) == 0 ||
               strncmp(m, "tb", 2) == 0;
    }
    return m[0] == 'j' || strncmp(m, "call", 4) == 0 || strncmp(m, "loop", 4) == 0 || strcmp(m, "xbegin") == 0;
}

/* Splits the target off the operands of a direct branch: "w0, #3, #0x1c" → "w0, #3, " and 0x1c. */
static bool split_target(const struct elf_instructions *i, const cs_insn *x, size_t *kept, uint64_t *target)
{
    const char *space = strrchr(x->op_str, ' '), *last = space ? space + 1 : x->op_str, *digits = last;
    char *end;
    digits += *digits == '#';
    if (!is_branch(i, x) || digits[0] < '0' || digits[0] > '9') {
        return false;
    }
    const uint64_t address = strtoull(digits, &end, 0);
    if (*end != '\0') { /* part of "(%rsi, %rax, 8)" */
        return false;
    }
    *target = address;
    *kept = (size_t)(last - x->op_str);
    return true;
}

static bool add(struct elf_instructions *i, const cs_insn *x)
{
    char text[LIMIT_INSTRUCTION_TEXT + 1];
    struct object_instruction row = {.address = x->address, .size = x->size};
    size_t kept = strlen(x->op_str);
    row.targeted = split_target(i, x, &kept, &row.target);
    (void)snprintf(text, sizeof text, "%s%s%.*s", x->mnemonic, x->op_str[0] ? " " : "", (int)kept, x->op_str);
    if (!find_text(i, text, &row.text)) {
        return false;
    }
    object_instructions_add(&i->rows, &i->last, &row);
    i->count++;
    return !i->rows.failed;
}

/* Bytes up to the next function's entry. */
static bool scan_part(struct elf_instructions *i, const uint8_t *bytes, size_t size, uint64_t address)
{
    while (size > 0 && disassembler_next(&i->disassembler, &bytes, &size, &address)) {
        if (!add(i, i->disassembler.instruction)) {
            return false;
        }
    }
    return true;
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
    for (uint64_t at = s->sh_addr; at < end;) {
        while (next < i->functions->count && i->functions->list[next].address <= at) {
            next++;
        }
        const uint64_t stop = next < i->functions->count && i->functions->list[next].address < end
                                  ? i->functions->list[next].address
                                  : end;
        if (!scan_part(i, bytes + (at - s->sh_addr), (size_t)(stop - at), at)) {
            return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " instructions", i->count);
        }
        at = stop;
    }
    return PROFD_OK;
}

enum profd_status elf_instructions_finish(struct elf_instructions *i, struct profd_error *e)
{
    struct object *o = i->build->object;
    char *texts = arena_copy(i->build->out, i->texts.data, i->texts.size);
    char *rows = i->count > 0 ? arena_copy(i->build->out, i->rows.data, i->rows.size) : NULL;
    if (texts == NULL || (i->count > 0 && rows == NULL)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " instructions", i->count);
    }
    o->instruction_texts = texts;
    o->instruction_text_bytes = (uint32_t)i->texts.size;
    o->instruction_bytes = (const uint8_t *)rows;
    o->instruction_size = i->rows.size;
    o->instruction_count = i->count;
    return PROFD_OK;
}
