#include "elf/elf_instructions.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/object_instructions.h"
#include "core/table.h"
#include "elf/elf_disassembler.h"
#include "proto/limits.h"

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

/* Is the last operand where the instruction goes? */
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
