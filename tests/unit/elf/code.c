/* Hashes of code, and names of inlined functions: a function that is renamed and moved keeps its hash, one that is
 * changed does not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elf/tools.h"

#define COMMON                                                                                                         \
    "#include <stdlib.h>\n#define N __attribute__((noinline,noclone,noipa))\nint total, table[9];\n"                   \
    "N static int helper(int x) { return x + atoi(\"1\"); }\n"                                                         \
    "static inline int tiny(int x) { return x * 3 + total; }\n"

static const char BEFORE[] = COMMON
    "N int work(int x) { while (x-- > 0) { total += helper(x) + tiny(x); table[x % 9] = total; } return total; }\n"
    "N int other(int x) { while (x-- > 0) { total -= helper(x); table[x % 9] = total; } return total; }\n"
    "int main(int c, char **v) { return work(c) + other(c) + (v == NULL); }\n";
static const char AFTER[] = COMMON
    "int more[999];\n"
    "N int fresh(int x) { return more[x & 7] += helper(x) * 7 + x / 3; }\n"
    "N int other(int x) { while (x-- > 0) { total ^= helper(x); table[x % 9] = total; } return total; }\n"
    "N int renamed(int x) { while (x-- > 0) { total += helper(x) + tiny(x); table[x % 9] = total; } return total; }\n"
    "int main(int c, char **v) { return renamed(c) + other(c) + fresh(c) + (v == NULL); }\n";

static void check(const char *compiler)
{
    char command[200];
    tools_write("a.c", BEFORE);
    tools_write("b.c", AFTER);
    (void)snprintf(command, sizeof command, "%s a.c -o a && %s b.c -o b", compiler, compiler);
    tools_run("%s", command);
    const struct object *a = tools_read("a", NULL), *b = tools_read("b", NULL);
    uint64_t work = tools_symbol(a, "work")->code;
    cr_expect(a->knows_returns && work != 0, "%s", compiler);
    cr_expect_eq(work, tools_symbol(b, "renamed")->code, "%s", compiler);
    cr_expect_eq(tools_symbol(a, "helper")->code, tools_symbol(b, "helper")->code, "%s", compiler);
    cr_expect_neq(tools_symbol(a, "other")->code, tools_symbol(b, "other")->code, "%s", compiler);
    cr_expect_neq(work, tools_symbol(a, "other")->code, "%s", compiler);
}

Test(elf_code, a_renamed_function_keeps_its_hash)
{
    check("gcc -O2");
    check("gcc -O2 -no-pie -fno-pie");
    check("gcc -O0 -pg");
    check("aarch64-linux-gnu-gcc -O2");
    check("aarch64-linux-gnu-gcc -O2 -no-pie -fno-pie");
}

Test(elf_code, inlined_functions_have_names)
{
    tools_write("a.c", BEFORE);
    tools_run("gcc -O2 -g a.c -o a && gcc -O2 a.c -o b && gcc -gdwarf-4 -O2 a.c -o c");
    const struct object *with = tools_read("a", NULL), *without = tools_read("b", NULL), *old = tools_read("c", NULL);
    cr_expect(with->knows_inlined && object_has_inlined(with, "tiny", 4) && object_has_inlined(old, "tiny", 4));
    cr_expect(!object_has_inlined(with, "work", 4) && !object_has_inlined(with, "tin", 3));
    cr_expect(!without->knows_inlined && without->inlined_count == 0);
    for (uint32_t i = 1; i < with->inlined_count; i++) {
        cr_expect_lt(strcmp(object_name(with, with->inlined[i - 1]), object_name(with, with->inlined[i])), 0);
    }
}

Test(elf_code, inlined_members_have_linkage_names)
{
    static const char source[] = "struct Shop { int total; int add(int x) { return total += x; } };\n"
                                 "int main(int c, char **) { Shop s{1}; return s.add(c) + s.add(2); }\n";
    tools_write("a.cc", source);
    tools_run("g++ -O2 -g a.cc -o a");
    const struct object *o = tools_read("a", NULL);
    cr_expect(object_has_inlined(o, "_ZN4Shop3addEi", 14), "%u names", o->inlined_count);
}
