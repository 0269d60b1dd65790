/* Instructions of small programs, compared with those that objdump prints. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/object.h"
#include "elf/elf_read.h"
#include "proto/limits.h"
#include "tests/unit/elf/tools.h"

static const char source[] =
    "#include <stdlib.h>\n#define N __attribute__((noinline,noclone,noipa))\n"
    "N static int first(int x) { return x + atoi(\"1\"); }\n"
    "N int second(int x) { int n = 0; for (int i = 0; i < x; i++) { n += first(i); } return n + first(x); }\n"
    "int main(int c, char **v) { return second(c) + (v[0] ? first(c) : 0); }\n";

static struct object *read_code(const char *file, struct arena *a)
{
    const struct elf_read_options options = {.instructions = true};
    struct object *o = NULL;
    struct profd_error e = {""};
    const int fd = tools_open(file);
    cr_assert_eq(elf_read(fd, -1, &options, a, &o, &e), PROFD_OK, "%s", e.sentence);
    close(fd);
    return o;
}

static void check(const char *file, const char *objdump, const char *call)
{
    struct arena *a = arena_new(0);
    struct object *o = read_code(file, a);
    struct object_instruction *all = NULL;
    uint32_t n = 0, wanted = 0;
    unsigned calls = 0;
    cr_assert_eq(object_instructions_find(o, a, 0, UINT64_MAX, &all, &n, NULL), PROFD_OK);
    char *listed =
        tools_output("%s -d --no-show-raw-insn %s | sed -n 's/^ *\\([0-9a-f]*\\):\\t.*/\\1/p'", objdump, file);
    for (const char *at = listed; *at != '\0'; wanted++) {
        char *end;
        const uint64_t address = strtoull(at, &end, 16);
        cr_assert(wanted < n && all[wanted].address == address, "%s: instruction %u is at 0x%llx", file, wanted,
                  (unsigned long long)address);
        at = *end == '\n' ? end + 1 : end;
    }
    cr_expect(n > 20 && wanted == n, "%s: %u instead of %u", file, n, wanted);
    for (uint32_t i = 0; i < n; i++) {
        const char *text = o->instruction_texts + all[i].text;
        calls += all[i].targeted && strncmp(text, call, strlen(call)) == 0 &&
                 all[i].target == tools_symbol(o, "first")->address;
    }
    cr_expect_eq(calls, tools_objdump_count(objdump, file, call, "first"), "%s: %u calls", file, calls);
    cr_expect_geq(calls, 3);
    free(listed);
    arena_free(a);
}

Test(elf_instructions, are_those_of_objdump)
{
    tools_write("a.c", source);
    tools_run("gcc -O1 a.c -o a && aarch64-linux-gnu-gcc -O1 a.c -o arm");
    check("a", "objdump", "call");
    check("arm", "aarch64-linux-gnu-objdump", "bl");
}

/* A part of an address is no target. */
Test(elf_instructions, indirect_calls_have_no_target)
{
    struct arena *a = arena_new(0);
    struct object_instruction *all = NULL;
    uint32_t n = 0;
    tools_write("i.s", ".globl f\n.type f,@function\nf: call *(%rsi,%rax,8)\n jmp *8(%rax)\n ret\n.size f,.-f\n");
    tools_run("gcc -shared -nostdlib i.s -o i.so");
    struct object *o = read_code("i.so", a);
    const uint64_t from = tools_symbol(o, "f")->address;
    cr_assert_eq(object_instructions_find(o, a, from, from + 7, &all, &n, NULL), PROFD_OK);
    cr_assert_eq(n, 3);
    cr_expect(!all[0].targeted && !all[1].targeted && !all[2].targeted);
    cr_expect_str_eq(o->instruction_texts + all[0].text, "callq *(%rsi, %rax, 8)");
    arena_free(a);
}

Test(elf_instructions, what_has_none_says_so)
{
    struct arena *a = arena_new(0);
    tools_write("a.c", source);
    tools_write("large.s", ".globl f\n.type f,@function\nf: .skip 16777217, 0x90\n.size f,.-f\n");
    tools_run("gcc -g a.c -o a && objcopy --only-keep-debug a a.debug && gcc -shared -nostdlib large.s -o large.so");
    struct object *o = read_code("large.so", a);
    cr_expect(o->instruction_count == 0 && strstr(o->note, "at most 16777216 are read"), "%s", o->note);
    o = read_code("a.debug", a);
    cr_expect(o->instruction_count == 0 && strstr(o->note, "a debug file has no code"), "%s", o->note);
    arena_free(a);
}
