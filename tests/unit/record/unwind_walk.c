/* Unwind tables of hand-made entries, and walks by them: the PLT's rule, rules by expressions, signal frames, link
 * registers, and each reason for which a walk ends before the outermost frame. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_internal.h"

#define CODE 0x1000u
#define SECTION 0x9000u
#define STACK UINT64_C(0x7ffc00000000)
#define BIAS UINT64_C(0x5000000)

struct bytes {
    uint8_t at[4096];
    size_t size;
};

static void add(struct bytes *b, const void *bytes, size_t n)
{
    memcpy(b->at + b->size, bytes, n);
    b->size += n;
}

static void add32(struct bytes *b, uint32_t value)
{
    add(b, &value, sizeof value);
}

/* A common part at the beginning: CFA = sp + 8 and the return address below it; of AArch64: CFA = sp, and x30. */
static void begin(struct bytes *b, bool aarch64, bool signal)
{
    static const uint8_t x86_64[] = {0x0c, 7, 8, 0x80 | 16, 1}, arm[] = {0x0c, 31, 0};
    const char *letters = signal ? "zRS" : "zR";
    size_t n = aarch64 ? sizeof arm : sizeof x86_64;
    b->size = 0;
    add32(b, (uint32_t)(4 + 1 + strlen(letters) + 1 + 3 + 2 + n));
    add32(b, 0);
    add(b, "\1", 1);
    add(b, letters, strlen(letters) + 1);
    add(b, aarch64 ? "\4\x78\x1e" : "\1\x78\x10", 3);
    add(b, "\1\x1b", 2);
    add(b, aarch64 ? arm : x86_64, n);
}

/* An entry over [CODE + from, CODE + from + size). */
static void entry(struct bytes *b, uint32_t from, uint32_t size, const uint8_t *program, size_t n)
{
    add32(b, (uint32_t)(4 + 4 + 4 + 1 + n));
    add32(b, (uint32_t)b->size);
    add32(b, CODE + from - (SECTION + (uint32_t)b->size));
    add32(b, size);
    add(b, "\0", 1);
    add(b, program, n);
}
#define ENTRY(b, from, size, ...)                                                                                      \
    entry(b, from, size, (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__})

static struct unwind_table *made(const struct bytes *b, enum unwind_machine machine)
{
    const struct unwind_source in = {.machine = machine, .eh_frame = {b->at, b->size, SECTION}};
    struct unwind_table *t = NULL;
    struct profd_error e = {""};
    cr_assert_eq(unwind_table_make(&in, &t, &e), PROFD_OK, "%s", e.sentence);
    return t;
}

static bool find(void *context, uint64_t address, struct unwind_object *out)
{
    *out = (struct unwind_object){context, BIAS};
    return address >= BIAS && address < BIAS + 0x100000;
}

/* Walks from CODE + pc over the words of a stack. */
static enum unwind_end walk(struct unwind_table *t, uint32_t pc, const uint64_t *stack, size_t words, uint64_t fp,
                            uint64_t link, uint64_t *returns, uint32_t *count)
{
    static bool interrupted[UNWIND_RETURNS];
    const struct unwind_thread thread = {.machine = t->machine,
                                         .pc = BIAS + CODE + pc,
                                         .sp = STACK,
                                         .fp = fp,
                                         .link = link,
                                         .base = STACK,
                                         .stack = (const uint8_t *)stack,
                                         .size = words * 8};
    return unwind_walk(&thread, find, t, returns, interrupted, count, NULL);
}

#define RETURN(offset) (BIAS + CODE + (offset))

Test(unwind, the_plt_and_the_end)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, false, false);
    /* .plt: from offset 11 of an entry on, the number of the function has been pushed */
    ENTRY(&b, 0, 64, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    ENTRY(&b, 64, 16, 0x0e, 16);    /* a function with a frame of 16 bytes */
    ENTRY(&b, 80, 16, 0x07, 16, 0); /* _start: no return address */
    struct unwind_table *t = made(&b, UNWIND_X86_64);
    const uint64_t early[] = {RETURN(70), 1, RETURN(85)}, late[] = {7, RETURN(70), 1, RETURN(85)};
    cr_assert_eq(walk(t, 16 + 10, early, 3, 0, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert(count == 2 && returns[0] == RETURN(70) && returns[1] == RETURN(85));
    cr_assert_eq(walk(t, 16 + 11, late, 4, 0, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert(count == 2 && returns[0] == RETURN(70) && returns[1] == RETURN(85));
    cr_assert_eq(walk(t, 16 + 10, early, 2, 0, 0, returns, &count), UNWIND_SHORT);
    cr_assert_eq(count, 1, "what was found before stays");
    const uint64_t none[] = {RETURN(70), 1, 0}, nowhere[] = {RETURN(200)}, elsewhere[] = {4};
    cr_assert_eq(walk(t, 16, none, 3, 0, 0, returns, &count), UNWIND_COMPLETE, "a return address of 0 ends the stack");
    cr_assert_eq(count, 1);
    cr_assert_eq(walk(t, 16, nowhere, 1, 0, 0, returns, &count), UNWIND_NO_ENTRY);
    cr_assert_eq(walk(t, 16, elsewhere, 1, 0, 0, returns, &count), UNWIND_NO_TABLE);
    unwind_table_free(t);
}

Test(unwind, a_call_that_does_not_return_ends_its_function)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, false, false);
    ENTRY(&b, 0, 16, 0x0e, 24);
    ENTRY(&b, 16, 16, 0x07, 16); /* of the next function, the return address is its first */
    struct unwind_table *t = made(&b, UNWIND_X86_64);
    const uint64_t stack[] = {0, 0, RETURN(16), 0, 0, 0};
    cr_assert_eq(walk(t, 4, stack, 6, 0, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert(count == 1 && returns[0] == RETURN(16), "the rule is that of the calling function");
    unwind_table_free(t);
}

Test(unwind, expressions_and_registers)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, false, false);
    ENTRY(&b, 0, 16, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0); /* CFA = *(fp − 8); fp is at fp */
    ENTRY(&b, 16, 16, 0x0f, 5, 0x77, 8, 0x06, 0x23, 8);               /* CFA = *(sp + 8) + 8 */
    ENTRY(&b, 32, 16, 0x0c, 6, 16, 0x86, 2);                          /* CFA = fp + 16; fp is at CFA − 16 */
    ENTRY(&b, 48, 16, 0x07, 16);
    ENTRY(&b, 64, 16, 0x0c, 3, 8); /* CFA = rbx + 8: not supported */
    struct unwind_table *t = made(&b, UNWIND_X86_64);
    /* a frame of each of the first three kinds, outermost the fourth */
    const uint64_t stack[] = {0, STACK + 8 * 5, STACK + 8 * 9, 0, RETURN(20), /* fp = STACK + 16 */
                              0, STACK + 8 * 7, RETURN(40),    0, 0,          RETURN(50), 0};
    cr_assert_eq(walk(t, 4, stack, 12, STACK + 16, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert_eq(count, 3);
    cr_assert(returns[0] == RETURN(20) && returns[1] == RETURN(40) && returns[2] == RETURN(50));
    cr_assert_eq(walk(t, 70, stack, 12, 0, 0, returns, &count), UNWIND_NO_RULE);
    cr_assert_eq(walk(t, 40, stack, 12, STACK - 800, 0, returns, &count), UNWIND_BROKEN, "a frame below its callee");
    unwind_table_free(t);
}

Test(unwind, an_epilogue_has_popped_its_frame_pointer)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, false, false);
    ENTRY(&b, 0, 16, 0x86, 2);               /* CFA = sp + 8 again; fp was at CFA - 16, which is below sp */
    ENTRY(&b, 16, 16, 0x0c, 6, 16, 0x86, 2); /* CFA = fp + 16 */
    ENTRY(&b, 48, 16, 0x07, 16);
    struct unwind_table *t = made(&b, UNWIND_X86_64);
    const uint64_t stack[] = {RETURN(20), 0, 0, RETURN(50)};
    cr_assert_eq(walk(t, 4, stack, 4, STACK + 16, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert(count == 2 && returns[0] == RETURN(20) && returns[1] == RETURN(50));
    unwind_table_free(t);
}

Test(unwind, signal_frames)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, false, true);
    /* __restore_rt: CFA = *(sp + 160); the return address at sp + 168, fp at sp + 120 */
    ENTRY(&b, 0, 16, 0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1, 0x10, 6, 3, 0x77, 0xf8, 0);
    struct unwind_table *t = made(&b, UNWIND_X86_64);
    uint64_t stack[32] = {0};
    stack[20] = STACK + 8 * 30;
    stack[21] = 0;
    cr_assert_eq(walk(t, 4, stack, 32, 0, 0, returns, &count), UNWIND_COMPLETE);
    stack[21] = RETURN(0);
    cr_assert_eq(walk(t, 4, stack, 32, 0, 0, returns, &count), UNWIND_SHORT);
    cr_assert(count == 1 && returns[0] == RETURN(0), "the interrupted instruction itself is looked up");
    unwind_table_free(t);
}

Test(unwind, link_registers)
{
    struct bytes b;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    begin(&b, true, false);
    ENTRY(&b, 0, 16, 0);                           /* a leaf: the return address is in x30 */
    ENTRY(&b, 16, 16, 0x0e, 32, 0x9d, 4, 0x9e, 3); /* x29 at CFA − 32, x30 at CFA − 24 */
    ENTRY(&b, 32, 16, 0x07, 30);
    struct unwind_table *t = made(&b, UNWIND_AARCH64);
    const uint64_t stack[] = {0, RETURN(36) | UINT64_C(0x55) << 48, 0, 0};
    cr_assert_eq(walk(t, 4, stack, 4, 0, RETURN(20), returns, &count), UNWIND_COMPLETE);
    cr_assert(count == 2 && returns[0] == RETURN(20) && returns[1] == RETURN(36), "without the signature");
    const uint64_t leaf_again[] = {0, RETURN(4), 0, 0};
    cr_assert_eq(walk(t, 20, leaf_again, 4, 0, RETURN(20), returns, &count), UNWIND_BROKEN,
                 "only the innermost function may be without a frame");
    unwind_table_free(t);
}

Test(unwind, depth_and_debug_frame)
{
    struct bytes b, d = {.size = 0};
    uint64_t returns[UNWIND_RETURNS], stack[300];
    uint32_t count;
    struct profd_error e = {""};
    struct unwind_table *t = NULL;
    begin(&b, false, false);
    ENTRY(&b, 0, 16, 0);
    /* .debug_frame, version 4: the same code with another rule, and more */
    add32(&d, 16);
    add32(&d, UINT32_MAX);
    add(&d, "\4\0\x8\0\1\x78\x10\xc\7\x10\x90\1", 12);
    add32(&d, 20);
    add32(&d, 0);
    add(&d, &(uint64_t){CODE + 8}, 8);
    add(&d, &(uint64_t){24}, 8);
    const struct unwind_source in = {
        .machine = UNWIND_X86_64, .eh_frame = {b.at, b.size, SECTION}, .debug_frame = {d.at, d.size, 0}};
    cr_assert_eq(unwind_table_make(&in, &t, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(unwind_table_find(t, CODE + 8)->cfa_offset, 8, ".eh_frame counts");
    cr_assert_eq(unwind_table_find(t, CODE + 16)->cfa_offset, 16);
    cr_assert_eq(unwind_table_find(t, CODE + 31)->cfa_offset, 16);
    cr_assert_null(unwind_table_find(t, CODE + 32));
    cr_assert_null(unwind_table_find(t, CODE - 1));
    for (size_t i = 0; i < 300; i++) {
        stack[i] = RETURN(4);
    }
    cr_assert_eq(walk(t, 4, stack, 300, 0, 0, returns, &count), UNWIND_DEEP);
    cr_assert_eq(count, UNWIND_RETURNS);
    stack[126] = 0;
    cr_assert_eq(walk(t, 4, stack, 300, 0, 0, returns, &count), UNWIND_COMPLETE);
    cr_assert_eq(count, 126);
    unwind_table_free(t);
}
