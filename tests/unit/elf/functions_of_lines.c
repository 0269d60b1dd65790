/* Whose code the lines of a listing by line are: functions, inlined copies, symbols. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "tests/rounds.h"
#include "tests/unit/elf/tools.h"

static const char program[] =
    "static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }\n"
    "static inline __attribute__((always_inline)) int middle(int x) { return inner(x) ^ inner(x + 1); }\n"
    "__attribute__((noinline)) int first(int x, int *p) { for (int i = 0; i < x; i++) *p += middle(i); return *p; }\n"
    "__attribute__((noinline)) int second(int x) { int s = middle(x); if (x == 77) __builtin_abort(); return s + "
    "inner(s) + first(x, &s); }\n"
    "int main(int c, char **v) { (void)v; return second(c); }\n";

static struct object *lines_of(const char *name)
{
    static struct arena *kept;
    if (kept == NULL) {
        kept = arena_new(0);
    }
    int fd = tools_open(name);
    struct elf_read_options how = {.demangle = true, .all_lines = true, .line_table = true, .long_names = true};
    struct profd_error e = {""};
    struct object *o = NULL;
    cr_assert_eq(elf_read(fd, -1, &how, kept, &o, &e), PROFD_OK, "%s: %s", name, e.sentence);
    close(fd);
    return o;
}

static const char *function_of(const struct object *o, const struct object_line *l)
{
    cr_assert_lt(l->function, o->line_function_count);
    return object_name(o, o->line_functions[l->function].name);
}

/* Lines of a function, by its name; all lines must ascend without overlap. */
static unsigned count(const struct object *o, const char *name)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < o->line_count; i++) {
        const struct object_line *l = &o->lines[i];
        cr_assert_lt(l->low, l->high);
        cr_assert(i == 0 || o->lines[i - 1].high <= l->low);
        n += strcmp(function_of(o, l), name) == 0;
    }
    return n;
}

/* binutils' own answer for the first and the last address of every line. */
static void check_addresses(const char *name)
{
    struct object *o = lines_of(name);
    cr_assert_gt(o->line_count, 5);
    char *asked = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&asked, &size);
    for (uint32_t i = 0; i < o->line_count; i++) {
        fprintf(f, "0x%llx\n0x%llx\n", (unsigned long long)o->lines[i].low, (unsigned long long)o->lines[i].high - 1);
    }
    fclose(f);
    tools_write("asked", asked);
    free(asked);
    char *text = tools_output("addr2line -f -e %s <asked", name), *at = text;
    for (uint32_t i = 0; i < 2 * o->line_count; i++) {
        char *end = strchr(at, '\n');
        char *next = end ? strchr(end + 1, '\n') : NULL; /* the function is one line, its place another */
        cr_assert_not_null(next, "%s: address %u", name, i);
        *end = '\0';
        cr_expect_str_eq(function_of(o, &o->lines[i / 2]), at, "%s: address %u", name, i);
        at = next + 1;
    }
    cr_expect_str_empty(at);
    free(text);
    cr_expect_gt(count(o, "inner"), 0);
    cr_expect_gt(count(o, "second"), 0);
}

Test(elf_functions_of_lines, every_version_of_dwarf)
{
    tools_write("a.c", program);
    for (unsigned version = 2; version <= 5; version++) {
        char name[8];
        snprintf(name, sizeof name, "a%u", version);
        tools_run("gcc -O2 -gdwarf-%u a.c -o %s", version, name);
        check_addresses(name);
    }
    tools_run(
        "clang -O2 -gdwarf-4 a.c -o c && gcc -O2 -g -flto a.c -o l && gcc -O2 -g -no-pie -ffunction-sections a.c -o s");
    check_addresses("c");
    check_addresses("l");
    check_addresses("s");
}

Test(elf_functions_of_lines, names_of_cxx_are_the_linkers)
{
    tools_write(
        "a.cc",
        "template <class T> static inline __attribute__((always_inline)) T twice(T x) { return x * 2 + (x >> 1); }\n"
        "__attribute__((noinline)) long lone(long x) { return twice(x) + 1; }\n"
        "static __attribute__((noinline)) long hidden(long x) { return twice(x) + lone(x); }\n"
        "int main(int c, char **) { return (int)hidden(c); }\n");
    tools_run("g++ -O2 -g a.cc -o a");
    struct object *o = lines_of("a");
    cr_expect_gt(count(o, "_Z4lonel"), 0);
    cr_expect_gt(count(o, "_ZL6hiddenl"), 0, "a static function is called as the symbol that begins where it begins");
    for (uint32_t i = 1; i < o->line_function_count; i++) {
        if (strcmp(object_name(o, o->line_functions[i].name), "_Z4lonel") == 0) {
            cr_expect_str_eq(object_name(o, o->line_functions[i].demangled), "lone(long)");
        }
    }
}

Test(elf_functions_of_lines, without_entries_the_nearest_symbol)
{
    tools_write("a.c", program);
    tools_run("gcc -O2 -g a.c -o full && objcopy -R .debug_info -R .debug_abbrev full a");
    struct object *o = lines_of("a");
    cr_expect_eq(count(o, "inner"), 0);
    cr_expect_gt(count(o, "first"), 0);
    cr_expect_gt(count(o, "main"), 0);
}

/* Any byte of the entries may be any other: lines are still lines of somebody. */
Test(elf_functions_of_lines, damaged_entries)
{
    tools_write("a.c", program);
    tools_write(
        "harm.py",
        "import random, re, subprocess, sys\nheaders = subprocess.run(['readelf', '-SW', 'full'], "
        "capture_output=True, text=True).stdout\n"
        "parts = [(int(at, 16), int(size, 16)) for at, size in re.findall("
        "r' \\.debug_(?:info|abbrev|rnglists) +PROGBITS +\\w+ (\\w+) (\\w+)', headers)]\n"
        "assert len(parts) == 3, headers\nfor seed in range(int(sys.argv[1])):\n    r = random.Random(seed)\n"
        "    d = bytearray(open('full', 'rb').read())\n    for at, size in parts:\n"
        "        for _ in range(r.choice([1, 3, 30])):\n            d[at + r.randrange(size)] = r.choice([0, 1, "
        "255, r.randrange(256)])\n"
        "    open(f'a{seed}', 'wb').write(d)\n");
    const uint32_t seeds = rounds(40);
    tools_run("gcc -O2 -g a.c -o full && /usr/bin/python3 harm.py %u", seeds);
    unsigned whole = count(lines_of("full"), "inner"), other = 0;
    for (uint32_t seed = 0; seed < seeds; seed++) {
        char name[16];
        snprintf(name, sizeof name, "a%u", seed);
        other += count(lines_of(name), "inner") != whole;
    }
    cr_expect_gt(other, seeds / 8, "the damage must be felt");
}

/* A list of ranges that all entries share, and an entry of no bytes: neither may cost its square. */
Test(elf_functions_of_lines, entries_that_ask_for_much_are_left_out)
{
    tools_write("a.s", "\t.globl main\n\t.type main,@function\nmain: ret\n\t.section .debug_abbrev\n\t.byte "
                       "1,0x11,1,0x10,0x17,0,0,2,0x1d,0,0x55,0x17,0,0,0\n"
                       "\t.section .debug_info\n\t.long 2f-1f\n1:\t.value 4\n\t.long 0\n\t.byte 8,1\n\t.long 0\n"
                       "\t.rept 3000\n\t.byte 2\n\t.long 0\n\t.endr\n2:\n"
                       "\t.section .note.GNU-stack,\"\",@progbits\n\t.section .debug_ranges\n\t.rept 3000\n\t.quad "
                       "main, main+1\n\t.quad main+4, main+5\n\t.endr\n\t.quad 0,0\n");
    tools_write("b.c", "int other(void) { return 3; }\n");
    tools_run("gcc -no-pie -nostdlib -Wl,-e,main a.s -g b.c -o a");
    struct object *o = lines_of("a");
    cr_expect(strstr(o->note, "left out") != NULL, "%s", o->note);
}
