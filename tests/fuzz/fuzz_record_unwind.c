/* Laws: whatever the sections contain, the table ascends and ends, each address has the rule of its row, and a walk
 * over any stack ends within its bounds. Input: a byte for the machine, 5 words of registers, two lengths of 16 bits,
 * the sections, and the stack. */
#include <stdlib.h>
#include <string.h>

#include "record/record_internal.h"

#define HEAD (1 + 5 * 8 + 2 * 2)
#define BIAS UINT64_C(0x10000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find(void *context, uint64_t address, struct unwind_object *out)
{
    const struct unwind_table *t = context;
    *out = (struct unwind_object){t, BIAS};
    return address % 251 != 0;
}

static void check_table(const struct unwind_table *t)
{
    if (t->rule_count == 0 || (t->row_count > 0 && t->rows[t->row_count - 1].rule != 0)) {
        abort();
    }
    for (uint32_t i = 0; i < t->row_count; i++) {
        const struct table_rule *rule = unwind_table_find(t, t->base + t->rows[i].at);
        if (t->rows[i].rule >= t->rule_count || (i > 0 && t->rows[i].at <= t->rows[i - 1].at) ||
            (i > 0 && t->rows[i].rule == t->rows[i - 1].rule) ||
            rule != (t->rows[i].rule ? &t->rules[t->rows[i].rule] : NULL)) {
            abort();
        }
    }
}

static void check_walk(const struct unwind_table *t, const uint64_t *registers, const uint8_t *stack, size_t size)
{
    uint64_t returns[UNWIND_RETURNS];
    bool interrupted[UNWIND_RETURNS];
    uint32_t count = UINT32_MAX;
    const struct unwind_thread thread = {.machine = t->machine,
                                         .pc = t->row_count > 0 ? t->base + BIAS + registers[0] % 256 : registers[0],
                                         .sp = registers[1],
                                         .fp = registers[2],
                                         .link = registers[3],
                                         .base = registers[4] & 1 ? registers[1] : registers[4],
                                         .stack = stack,
                                         .size = size};
    enum unwind_end end = unwind_walk(&thread, find, (void *)(uintptr_t)t, returns, interrupted, &count, NULL);
    if (count > UNWIND_RETURNS || (end == UNWIND_DEEP && count != UNWIND_RETURNS)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unwind_source in = {.machine = UNWIND_X86_64};
    struct unwind_table *t;
    struct profd_error e = {""};
    uint64_t registers[5];
    uint16_t sizes[2];
    if (size < HEAD) {
        return 0;
    }
    in.machine = data[0] & 1 ? UNWIND_AARCH64 : UNWIND_X86_64;
    memcpy(registers, data + 1, sizeof registers);
    memcpy(sizes, data + 1 + sizeof registers, sizeof sizes);
    data += HEAD;
    size -= HEAD;
    size_t eh = sizes[0] < size ? sizes[0] : size, debug = sizes[1] < size - eh ? sizes[1] : size - eh;
    /* Copies, so that a read beyond a section is found. */
    uint8_t *eh_copy = malloc(eh + 1), *debug_copy = malloc(debug + 1), *stack = malloc(size - eh - debug + 1);
    eh_copy = realloc(memcpy(eh_copy, data, eh), eh ? eh : 1);
    debug_copy = realloc(memcpy(debug_copy, data + eh, debug), debug ? debug : 1);
    stack = realloc(memcpy(stack, data + eh + debug, size - eh - debug), size - eh - debug ? size - eh - debug : 1);
    in.eh_frame = (struct unwind_section){eh_copy, eh, 0x1000};
    in.debug_frame = (struct unwind_section){debug_copy, debug, 0};
    if (unwind_table_make(&in, &t, &e) == PROFD_OK) {
        check_table(t);
        check_walk(t, registers, stack, size - eh - debug);
        unwind_table_free(t);
    } else if (e.sentence[0] == '\0') {
        abort();
    }
    free(eh_copy);
    free(debug_copy);
    free(stack);
    return 0;
}
