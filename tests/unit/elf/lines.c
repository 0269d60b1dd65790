/* Source lines from DWARF 2 to 5, compared with addr2line; damaged tables give a note and no crash. */
#include <criterion/criterion.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "proto/hex.h"
#include "tests/unit/elf/tools.h"

static const char first[] = "#include \"inner.h\"\n"
                            "static int __attribute__((noinline)) alpha(int x) { return x + 1; }\n" /* line 2 */
                            "\n"
                            "#line 500 \"other.y\"\n"
                            "static int __attribute__((noinline)) beta(int x) { return x + alpha(x); }\n" /* line 500 */
                            "int main(int c, char **v) { (void)v; return alpha(c) + beta(c) + inner(c) + far(c); }\n";
static const char header[] =
    "int far(int);\nstatic int __attribute__((noinline)) inner(int x) { return x * 5; }\n"; /* line 2 */
static const char second[] = "\n\n\nstatic int __attribute__((noinline)) gamma_(int x) { return x ^ 3; }\nint far(int "
                             "x) { return gamma_(x) + 1; }\n";

static void expect(const struct object *o, const char *name, const char *file, unsigned line)
{
    const struct object_symbol *s = tools_symbol(o, name);
    const char *path = object_name(o, s->file), *base = strrchr(path, '/');
    cr_expect_str_eq(base == NULL ? path : base + 1, file);
    cr_expect_eq(s->line, line, "%s is at %u, not %u", name, s->line, line);
}

static void check(const char *program, bool absolute)
{
    struct object *o = tools_read(program, NULL);
    expect(o, "alpha", "a.c", 2);
    expect(o, "beta", "other.y", 500);
    expect(o, "inner", "inner.h", 2);
    expect(o, "gamma_", "b.c", 4);
    cr_expect_eq(tools_symbol(o, "main")->line, 0, "only static functions are asked for");
    if (absolute) {
        cr_expect_eq(strncmp(object_name(o, tools_symbol(o, "inner")->file), tools_dir(), strlen(tools_dir())), 0, "%s",
                     object_name(o, tools_symbol(o, "inner")->file));
    }
}

static void write_sources(void)
{
    tools_run("mkdir -p sub inc");
    tools_write("a.c", first);
    tools_write("inc/inner.h", header);
    tools_write("sub/b.c", second);
}

Test(elf_lines, every_version_of_dwarf)
{
    write_sources();
    for (unsigned version = 2; version <= 5; version++) {
        tools_run("gcc -O1 -g -gdwarf-%u -Iinc a.c sub/b.c -o a%u", version, version);
        char name[8];
        snprintf(name, sizeof name, "a%u", version);
        check(name, version == 5);
    }
    tools_run("clang -O1 -g -gdwarf-5 -Iinc a.c sub/b.c -o c5 && clang -O1 -g -gdwarf-4 -Iinc a.c sub/b.c -o c4");
    struct object *five = tools_read("c5", NULL), *four = tools_read("c4", NULL);
    expect(five, "inner", "inner.h", 2);
    expect(four, "gamma_", "b.c", 4);
}

Test(elf_lines, wide_offsets_and_other_machines)
{
    write_sources();
    tools_run("gcc -O1 -g -gdwarf64 -Iinc a.c sub/b.c -o w && aarch64-linux-gnu-gcc -O1 -g -Iinc a.c sub/b.c -o m");
    check("w", true);
    check("m", true);
}

/* The same lines as binutils finds, for all static functions of a program with much inlining. */
Test(elf_lines, equal_addr2line)
{
    tools_write("a.cc", "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\nnamespace {\n"
                        "struct less { bool operator()(const std::string &a, const std::string &b) const { return "
                        "a.size() < b.size(); } };\n"
                        "int __attribute__((noinline)) count(std::vector<std::string> &v) { std::sort(v.begin(), "
                        "v.end(), less()); return (int)v.size(); }\n}\n"
                        "int main(int c, char **v) { std::vector<std::string> l(v, v + c); std::map<std::string, int> "
                        "m; m[\"x\"] = count(l); return m[\"x\"]; }\n");
    /* Not version 5: binutils 2.40 takes file 0 where the table means 1, the state before the first set_file. */
    tools_run("g++ -O2 -g -gdwarf-4 a.cc -o a");
    struct object *o = tools_read("a", NULL);
    unsigned checked = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (s->line == 0) {
            continue;
        }
        char *text =
            tools_output("addr2line -e a 0x%llx | sed 's/ (discriminator.*//'", (unsigned long long)s->address);
        char *colon = strrchr(text, ':'), *base;
        cr_assert_not_null(colon);
        *colon = '\0';
        base = strrchr(text, '/');
        const char *file = object_name(o, s->file), *mine = strrchr(file, '/');
        cr_assert_not_null(base);
        cr_expect_str_eq(mine == NULL ? file : mine + 1, base + 1, "%s", object_name(o, s->name));
        cr_expect_eq(s->line, strtoul(colon + 1, NULL, 10), "%s", object_name(o, s->name));
        free(text);
        checked++;
    }
    cr_expect_geq(checked, 3);
}

/* Every row: the line of its first byte by addr2line; neighbours differ; a path stands once among the names. */
Test(elf_lines, rows_equal_addr2line)
{
    write_sources();
    tools_run("gcc -O1 -g -gdwarf-4 -Iinc a.c sub/b.c -o r && addr2line -e r $(nm r | awk '/ main$/ {print $1}')");
    int fd = tools_open("r");
    struct elf_read_options options = {.lines = true, .rows = true};
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    cr_assert_eq(elf_read(fd, -1, &options, a, &o, NULL), PROFD_OK);
    close(fd);
    cr_assert_geq(o->line_count, 5);
    for (uint32_t i = 0; i < o->line_count; i++) {
        const struct object_line *l = &o->lines[i];
        const char *file = object_name(o, l->file), *mine = strrchr(file, '/');
        char want[64];
        snprintf(want, sizeof want, "/%s:%u", mine == NULL ? file : mine + 1, l->line);
        char *text = tools_output("addr2line -e r 0x%llx", (unsigned long long)l->low);
        cr_expect(strstr(text, want) != NULL, "%llx: %s, not %s", (unsigned long long)l->low, text, want);
        free(text);
        for (uint32_t k = 0; k < i; k++) {
            cr_expect(o->lines[k].file == l->file || strcmp(object_name(o, o->lines[k].file), file) != 0, "%s", file);
        }
        cr_expect(i == 0 || l[-1].high != l->low || l[-1].file != l->file || l[-1].line != l->line);
    }
    arena_free(a);
}

/* clang states the MD5 of each file; gcc with DWARF 5 states none, nor has DWARF 4 a place for it. A header that two
 * units read differently has two. */
Test(elf_lines, digests_of_files)
{
    write_sources();
    tools_write("m.c", "#include \"inner.h\"\nint again(int);\nint far(int x) { return inner(x); }\n"
                       "int main(int c, char **v) { (void)v; return far(c) + again(c); }\n");
    tools_write("again.c", "#include \"inner.h\"\nint again(int x) { return inner(x); }\n");
    tools_run("clang -O0 -g -gdwarf-5 -Iinc -c m.c -o m.o && cp inc/inner.h was.h && echo >> inc/inner.h && "
              "clang -O0 -g -gdwarf-5 -Iinc -c again.c -o again.o && clang m.o again.o -o d5 && "
              "clang -O0 -g -gdwarf-4 -Iinc m.c again.c -o d4");
    struct elf_read_options options = {.lines = true, .rows = true};
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    int fd = tools_open("d5");
    cr_assert_eq(elf_read(fd, -1, &options, a, &o, NULL), PROFD_OK);
    close(fd);
    char *sums = tools_output("md5sum m.c was.h inc/inner.h again.c");
    unsigned inner = 0;
    for (uint32_t i = 0; i < o->digest_count; i++) {
        char hex[2 * OBJECT_DIGEST_BYTES + 1];
        hex_put(hex, o->digests[i].md5, OBJECT_DIGEST_BYTES);
        const char *file = object_name(o, o->digests[i].file);
        cr_expect(strstr(sums, hex) != NULL, "%s: %s", file, hex);
        inner += strstr(file, "inner.h") != NULL;
    }
    cr_expect_eq(inner, 2, "%u", inner);
    cr_expect_eq(o->digest_count, 4, "%u", o->digest_count);
    free(sums);
    fd = tools_open("d4");
    cr_assert_eq(elf_read(fd, -1, &options, a, &o, NULL), PROFD_OK);
    close(fd);
    cr_expect(o->line_count > 0 && o->digest_count == 0);
    arena_free(a);
}

Test(elf_lines, compressed_tables_are_read)
{
    write_sources();
    tools_run("gcc -O1 -g -gz=zlib -Iinc a.c sub/b.c -o a && objcopy --compress-debug-sections=zlib a && "
              "objcopy --compress-debug-sections=zlib-gnu a old");
    check("a", true);
    check("old", true);
}

/* A compressed section that states 16 TiB, and one that is not compressed data: a sentence, and the symbols. */
Test(elf_lines, compressed_tables_that_cannot_be_read_are_a_note)
{
    write_sources();
    tools_run(
        "gcc -O1 -g -Iinc a.c sub/b.c -o a && objcopy --compress-debug-sections=zlib a c && /usr/bin/python3 -c \""
        "import subprocess,re; d=open('c','rb').read(); "
        "at=int(re.search(r'debug_info +PROGBITS +\\w+ (\\w+)', subprocess.run(['readelf','-SW','c'], "
        "capture_output=True, text=True).stdout)[1],16); "
        "open('big','wb').write(d[:at+8]+(1<<44).to_bytes(8,'little')+d[at+16:]); "
        "open('bad','wb').write(d[:at+24]+b'profd'*4+d[at+44:])\"");
    for (const char *const *name = (const char *const[]){"big", "bad", NULL}; *name != NULL; name++) {
        struct object *o = tools_read(*name, NULL);
        cr_expect(strstr(o->note, "cannot be read") != NULL, "%s: %s", *name, o->note);
        cr_expect_eq(tools_symbol(o, "alpha")->line, 0);
    }
}

/* The reason why rows are not read by libdw: it sorts the row without bytes at the end of main's sequence behind that
 * end, where it would cover the code of another file. */
Test(elf_lines, sequences_end_where_they_end)
{
    tools_write("end.s", ".file 1 \"end.c\"\n.text\n.globl main\n.type main,@function\nmain: .loc 1 10\nnop\nret\n"
                         ".loc 1 11 view 0\n.size main,.-main\n.section z,\"ax\",@progbits\n.loc 1 20\nnop\n");
    tools_write("none.s", ".text\n.globl none\n.type none,@function\nnone: nop\nret\n.size none,.-none\n");
    tools_run("gcc -g -c end.s && gcc -c none.s && gcc -nostdlib -Wl,-e,main,-z,noexecstack end.o none.o -o end");
    struct object *o = tools_read("end", NULL);
    const struct object_symbol *none = tools_symbol(o, "none");
    for (uint32_t i = 0; i < o->line_count; i++) {
        cr_expect(o->lines[i].high <= none->address || o->lines[i].low > none->address, "%u", o->lines[i].line);
    }
    cr_expect_eq(o->line_count, 2, "%u", o->line_count);
    int fd = tools_open("end");
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    Dwarf_Die unit;
    cr_assert_eq(dwarf_get_units(dwarf, NULL, &(Dwarf_CU *){NULL}, NULL, NULL, &unit, NULL), 0);
    Dwarf_Line *line = dwarf_getsrc_die(&unit, none->address);
    int number = 0;
    cr_expect(line != NULL && dwarf_lineno(line, &number) == 0 && number == 11,
              "libdw ends sequences by now: rows can be read by it");
    dwarf_end(dwarf);
    close(fd);
}

/* The functions of a unit are in a .dwo file: its lines are known, and the note says what is not. */
Test(elf_lines, split_units_are_a_note)
{
    write_sources();
    tools_run(
        "gcc -O1 -g -gsplit-dwarf -Iinc a.c sub/b.c -o s5 && gcc -O1 -g -gdwarf-4 -gsplit-dwarf -Iinc a.c sub/b.c "
        "-o s4");
    for (const char *const *name = (const char *const[]){"s5", "s4", NULL}; *name != NULL; name++) {
        check(*name, true);
        struct object *o = tools_read(*name, NULL);
        cr_expect(strstr(o->note, "2 units") != NULL && strstr(o->note, ".dwo") != NULL, "%s: %s", *name, o->note);
        cr_expect_not(o->knows_inlined);
    }
}

Test(elf_lines, damaged_tables_are_a_note)
{
    write_sources();
    tools_run("gcc -O1 -g -Iinc a.c sub/b.c -o a && objcopy --dump-section .debug_line=l a /dev/null && "
              "/usr/bin/python3 -c \"d=bytearray(open('l','rb').read()); d[4]=77; open('l','wb').write(d)\" && objcopy "
              "--update-section .debug_line=l a b");
    struct object *o = tools_read("b", NULL);
    cr_expect(strstr(o->note, "damaged") != NULL, "%s", o->note);
    cr_expect_eq(tools_symbol(o, "alpha")->line, 0);
    expect(o, "gamma_", "b.c", 4);
}

Test(elf_lines, names_for_people)
{
    tools_write("a.cc",
                "namespace house { template <typename T> struct box { T v; T __attribute__((noinline)) get(T x) { "
                "return v + x; } }; }\n"
                "static int __attribute__((noinline)) hidden(long, const char *) { return 3; }\n"
                "extern \"C\" int _Zebra(int x) { return x; }\n"
                "int main(int c, char **v) { house::box<int> b{c}; return b.get(c) + hidden(c, v[0]) + _Zebra(c); }\n"
                "asm(\".globl _Zv\\n.type _Zv,@function\\n_Zv: ret\\n.globl .dot._Z3foov\\n.globl ._Z3foov\\n.type "
                "._Z3foov,@function\\n._Z3foov: ret\\n\");\n");
    tools_run("g++ -O1 a.cc -o a");
    struct object *o = tools_read("a", NULL);
    cr_expect_str_eq(object_name(o, tools_symbol(o, "_ZN5house3boxIiE3getEi")->demangled), "house::box<int>::get(int)");
    cr_expect_str_eq(object_name(o, tools_symbol(o, "_ZL6hiddenlPKc")->demangled), "hidden(long, char const*)");
    cr_expect_str_eq(object_name(o, tools_symbol(o, "._Z3foov")->demangled), ".foo()");
    cr_expect_eq(tools_symbol(o, "_Zebra")->demangled, tools_symbol(o, "_Zebra")->name);
    cr_expect_eq(tools_symbol(o, "_Zv")->demangled, tools_symbol(o, "_Zv")->name);
    cr_expect_eq(tools_symbol(o, "main")->demangled, tools_symbol(o, "main")->name);
}
