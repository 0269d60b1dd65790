/* Call arcs read from machine code of x86-64, i386 and AArch64, compared with what the sources call. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/elf/tools.h"

/* Backward and forward calls, mutual and direct recursion, a tail jump, calls out of the object. */
static const char calls[] =
    "#include <stdlib.h>\n#include <string.h>\n#define N __attribute__((noinline,noclone,noipa))\n"
    "N static int before(int x) { return x + atoi(\"1\"); }\n"
    "static int after(int x);\n"
    "N int middle(int x) { return before(x) * after(x) + before(x + 1); }\n"
    "N int tail(int x) { return after(x + 2); }\n"
    "N int leave(const char *s) { return unsetenv(s); }\n"
    "N static int after(int x) { return x < 2 ? 1 : middle(x - 1) + (int)strlen(getenv(\"HOME\")); }\n"
    "N int self(int x) { return x < 2 ? x : self(x - 1) * self(x - 2); }\n"
    "int main(int c, char **v) { return middle(c) + tail(c) + leave(v[0]) + self(c); }\n";

static const char *const names[] = {"before", "middle", "tail", "leave", "after", "self", "main"};

static unsigned to_anywhere(const struct object *o, const char *to, enum object_arc_kind kind)
{
    uint64_t address = tools_symbol(o, to)->address;
    unsigned n = 0;
    for (uint32_t i = 0; i < o->arc_count; i++) {
        n += o->arcs[i].import == 0 && o->arcs[i].to == address && o->arcs[i].kind == kind;
    }
    return n;
}

static void check_calls(const char *file, const char *objdump, const char *call, const char *jump)
{
    struct object *o = tools_read(file, NULL);
    cr_expect_eq(tools_arcs(o, "middle", "before", OBJECT_ARC_CALL), 2, "backward");
    cr_expect_eq(tools_arcs(o, "middle", "after", OBJECT_ARC_CALL), 1, "forward");
    cr_expect_eq(tools_arcs(o, "after", "middle", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_arcs(o, "tail", "after", OBJECT_ARC_TAIL), 1);
    cr_expect_eq(tools_arcs(o, "tail", "after", OBJECT_ARC_CALL), 0);
    cr_expect_eq(tools_arcs(o, "self", "self", OBJECT_ARC_TAIL), 0, "jumps inside a function are no tail calls");
    cr_expect_geq(tools_arcs(o, "self", "self", OBJECT_ARC_CALL), 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cr_expect_eq(to_anywhere(o, names[i], OBJECT_ARC_CALL), tools_objdump_count(objdump, file, call, names[i]),
                     "%s", names[i]);
        cr_expect_eq(to_anywhere(o, names[i], OBJECT_ARC_TAIL), tools_objdump_count(objdump, file, jump, names[i]),
                     "%s", names[i]);
    }
    for (uint32_t i = 1; i < o->arc_count; i++) {
        cr_expect_lt(o->arcs[i - 1].from, o->arcs[i].from);
    }
}

static void check_imports(const char *file)
{
    struct object *o = tools_read(file, NULL);
    cr_expect_eq(
        tools_imports(o, "before", "atoi", OBJECT_ARC_CALL) + tools_imports(o, "before", "strtol", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_imports(o, "after", "getenv", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_imports(o, "after", "strlen", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_imports(o, "leave", "unsetenv", OBJECT_ARC_TAIL), 1);
}

static void check_plt(const char *file, const char *objdump)
{
    struct object *o = tools_read(file, NULL);
    char *text = tools_output("%s -d %s | sed -n 's/^\\([0-9a-f]*\\) <\\(.*\\)@plt>:$/\\1 \\2/p'", objdump, file);
    unsigned n = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        unsigned long address;
        char name[128];
        cr_assert_eq(sscanf(line, "%lx %127s", &address, name), 2);
        unsigned found = 0;
        for (uint32_t i = 0; i < o->plt_count; i++) {
            found += o->plt[i].address == address && strcmp(object_name(o, o->plt[i].import), name) == 0;
        }
        cr_expect_eq(found, 1, "%s", line);
        n++;
    }
    free(text);
    cr_expect_geq(n, 3);
    cr_expect_eq(n, o->plt_count);
    for (uint32_t i = 1; i < o->plt_count; i++) {
        cr_expect_leq(o->plt[i - 1].address + o->plt[i - 1].size, o->plt[i].address);
    }
}

/* Addresses that objdump shows behind a call, and no others, are return addresses. call: a regular expression. */
static void check_returns(const char *file, const char *objdump, const char *call)
{
    const struct object *o = tools_read(file, NULL);
    const struct object_arc *arc;
    char *text = tools_output(
        "%s -d --no-show-raw-insn %s | awk '/^Disassembly/ { called = 0 } "
        "/^ *[0-9a-f]+:\t/ { a = $1; sub(\":\", \"\", a); print a, called; called = $0 ~ /\t(%s)([ \t]|$)/ }'",
        objdump, file, call);
    unsigned count = 0, missed = 0, others = 0, invented = 0, signals = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        unsigned long address;
        int called;
        cr_assert_eq(sscanf(line, "%lx %d", &address, &called), 2, "%s", line);
        enum object_call found = object_find_call(o, address, &arc);
        count += called != 0;
        missed += called != 0 && found != OBJECT_CALL_DIRECT && found != OBJECT_CALL_POSSIBLE;
        others += called == 0;
        signals += found == OBJECT_CALL_SIGNAL;
        invented += called == 0 && found != OBJECT_CALL_NONE && found != OBJECT_CALL_SIGNAL;
    }
    free(text);
    cr_expect(o->knows_returns && count > 5 && others > count, "%u calls, %u others", count, others);
    cr_expect_eq(missed, 0, "%s: %u of %u calls", file, missed, count);
    cr_expect_eq(invented, 0, "%s: %u of %u others", file, invented, others);
    cr_expect_leq(signals, 2);
}

#define X86_JUMP "jmp|j[a-z]+|bnd jmp"

Test(elf_arcs, x86_64)
{
    tools_write("a.c", calls);
    tools_run("gcc -O2 a.c -o a && gcc -O2 -no-pie -fcf-protection=full -Wl,-z,ibtplt a.c -o b && gcc -O2 -fno-plt a.c "
              "-o c && gcc -O2 -Wl,-z,now a.c -o d");
    static const char *const files[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        check_calls(files[i], "objdump", "call", X86_JUMP);
        check_imports(files[i]);
        check_returns(files[i], "objdump", "(bnd |notrack |data16 |rex.W )*call");
    }
    check_plt("a", "objdump");
    check_plt("d", "objdump");
    cr_expect_geq(tools_read("b", NULL)->plt_count, 3);
}

/* A debug file has no code: nothing says where its calls are. */
Test(elf_arcs, returns_of_a_file_without_code)
{
    const struct object_arc *arc;
    tools_write("a.c", calls);
    tools_run("gcc -O2 -g a.c -o a && objcopy --only-keep-debug a a.debug");
    const struct object *whole = tools_read("a", NULL), *debug = tools_read("a.debug", NULL);
    uint64_t inside = tools_symbol(whole, "middle")->address + 1;
    cr_expect(whole->knows_returns && !debug->knows_returns);
    cr_expect_eq(object_find_call(whole, inside, &arc), OBJECT_CALL_NONE);
    cr_expect_eq(object_find_call(debug, inside, &arc), OBJECT_CALL_POSSIBLE);
}

/* A large program, with calls through registers and tables. */
Test(elf_arcs, returns_of_the_c_library)
{
    check_returns("/lib/x86_64-linux-gnu/libc.so.6", "objdump", "(bnd |notrack |data16 |rex.W |addr32 )*call");
}

Test(elf_arcs, arm64)
{
    tools_write("a.c", calls);
    tools_run("aarch64-linux-gnu-gcc -O2 a.c -o a && aarch64-linux-gnu-gcc -O2 -mbranch-protection=standard "
              "-Wl,-z,force-bti a.c -o b 2>&1");
    for (const char *file = "a"; file != NULL; file = file[0] == 'a' ? "b" : NULL) {
        check_calls(file, "aarch64-linux-gnu-objdump", "bl", "b|b\\.[a-z]+|cbz|cbnz|tbz|tbnz");
        check_imports(file);
        check_returns(file, "aarch64-linux-gnu-objdump", "blr?");
        check_plt(file, "aarch64-linux-gnu-objdump");
    }
}

Test(elf_arcs, i386)
{
    tools_write("a.c",
                "#define N __attribute__((noipa))\nN static int one(int x) { return x + 1; }\nstatic int two(int x);\n"
                "N int three(int x) { return one(x) + two(x); }\nN static int two(int x) { return three(x - 1); }\n"
                "void _start(void) { three(4); for (;;) ; }\n");
    tools_run("gcc -m32 -O2 -nostdlib -static -fno-pic -no-pie -fno-asynchronous-unwind-tables a.c -o a");
    struct object *o = tools_read("a", NULL);
    cr_expect_eq(o->bits, 32);
    cr_expect_eq(tools_arcs(o, "three", "one", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_arcs(o, "three", "two", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_arcs(o, "two", "three", OBJECT_ARC_TAIL) + tools_arcs(o, "two", "three", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_arcs(o, "_start", "three", OBJECT_ARC_CALL), 1);
}

/* i386's position-independent slots count from the GOT. */
Test(elf_arcs, i386_plt)
{
    tools_write("a.c", "int away(int);\nint f(int x) { return away(x) + 1; }\n");
    tools_run("gcc -m32 -O1 -nostdlib -shared -fPIC a.c -o a.so");
    struct object *o = tools_read("a.so", NULL);
    cr_expect_eq(o->plt_count, 1);
    cr_expect_eq(tools_imports(o, "f", "away", OBJECT_ARC_CALL), 1);
}

/* The unlikely part of a function is no function: nothing calls it, and returning from it isn't a call. */
Test(elf_arcs, cold_parts)
{
    tools_write("a.cc", "#include <cstdio>\n#include <cstdlib>\n#include <stdexcept>\n"
                        "__attribute__((cold,noipa)) void rare(int x) { std::printf(\"%d\\n\", x); }\n"
                        "__attribute__((noipa)) int hot(int x) { if (__builtin_expect(x == 12345, 0)) { rare(x); throw "
                        "std::runtime_error(\"x\"); } return x + 1; }\n"
                        "int main(int c, char **) { try { return hot(c); } catch (...) { return 1; } }\n");
    tools_run("g++ -O2 a.cc -o a");
    struct object *o = tools_read("a", NULL);
    const struct object_symbol *cold = tools_symbol(o, "_Z3hoti.cold");
    for (uint32_t i = 0; i < o->arc_count; i++) {
        cr_expect_neq(o->arcs[i].to, cold->address);
        /* hot's part may only call, never "tail call" hot. */
        cr_expect(!(o->arcs[i].from >= cold->address && o->arcs[i].from < cold->address + cold->size &&
                    o->arcs[i].kind == OBJECT_ARC_TAIL));
    }
    cr_expect_eq(tools_arcs(o, "_Z3hoti.cold", "_Z4rarei", OBJECT_ARC_CALL), 1);
    cr_expect_eq(tools_arcs(o, "main", "_Z3hoti", OBJECT_ARC_CALL), 1);
}

/* From a cold part back to its function's very first instruction: a jump, not a call; to another function's: a tail
 * call. */
Test(elf_arcs, cold_part_that_returns_to_the_entry)
{
    tools_write("a.s", ".text\n.globl f\n.type f,@function\nf: dec %edi\njz f.cold\nret\n.size f,.-f\n"
                       ".globl g\n.type g,@function\ng: ret\n.size g,.-g\n"
                       ".type f.cold,@function\nf.cold: nop\njmp f\njmp g\n.size f.cold,.-f.cold\n");
    tools_run("as a.s -o a.o && ld -e f a.o -o a");
    struct object *o = tools_read("a", NULL);
    cr_expect_eq(o->arc_count, 1);
    cr_expect_eq(tools_arcs(o, "f.cold", "g", OBJECT_ARC_TAIL), 1);
}

/* Bytes that look like calls inside other instructions, and behind data that upsets the decoding, are told apart. */
Test(elf_arcs, boundaries)
{
    tools_write("a.s",
                ".text\n.globl t\n.type t,@function\nt: ret\n.size t,.-t\n"
                ".globl f\n.type f,@function\nf: movabs $0xe8e8e8e8e8e8e8e8,%rax\n"
                "mov $0xffffffe8,%eax\n.byte 0xb8,0xe8\n.long t-.-4\n.byte 0\n" /* mov $imm32 whose bytes are a call */
                "data16 lea 0x0(%rip),%rdi\ncall t\nrex.W call t\nret\n.size f,.-f\n"
                ".byte 0x0f,0x04,0x48,0x8b\n" /* no instruction; the next function begins anew */
                ".globl g\n.type g,@function\ng: call t\nvpaddd %zmm1,%zmm2,%zmm3\ncall t\n.size g,.-g\n");
    tools_run("as a.s -o a.o && ld -e f a.o -o a");
    struct object *o = tools_read("a", NULL);
    cr_expect_eq(tools_arcs(o, "f", "t", OBJECT_ARC_CALL), 2);
    cr_expect_eq(tools_arcs(o, "g", "t", OBJECT_ARC_CALL), 2);
}

/* A static program calls its IFUNCs through a PLT without names. */
Test(elf_arcs, ifunc_in_a_static_program)
{
    tools_write("a.c", "static int plain(int x) { return x; }\nstatic int (*choose(void))(int) { return plain; }\n"
                       "int pick(int) __attribute__((ifunc(\"choose\")));\nint main(int c, char **v) { (void)v; return "
                       "pick(c) + pick(c + 1); }\n");
    tools_run("gcc -O1 -static a.c -o a");
    struct object *o = tools_read("a", NULL);
    cr_expect_eq(tools_symbol(o, "pick")->type, OBJECT_TYPE_IFUNC);
    cr_expect_eq(tools_arcs(o, "main", "pick", OBJECT_ARC_CALL), 2);
}

/* Much text; ELF_TEXT_MB sets how much. The count is known; the speed is only told. */
Test(elf_arcs, much_text)
{
    const char *wanted = getenv("ELF_TEXT_MB");
    unsigned megabytes = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    unsigned functions = megabytes * 64; /* of 16 KiB: 1,024 times a call and ten other bytes and more */
    char path[256];
    snprintf(path, sizeof path, "%s/a.s", tools_dir());
    FILE *f = fopen(path, "w");
    for (unsigned i = 0; i < functions; i++) {
        fprintf(f,
                ".globl f%u\n.type f%u,@function\nf%u:\n.rept 1024\ncall f%u\nmov %%rax,8(%%rsp)\nadd $1,%%eax\ncmp "
                "%%eax,%%ecx\nje .\n.endr\n.size f%u,.-f%u\n",
                i, i, i, (i * 7919u + 1) % functions, i, i);
    }
    fclose(f);
    tools_run("as a.s -o a.o && ld -e f0 a.o -o a");
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    struct object *o = tools_read("a", NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_expect_eq(o->arc_count, functions * 1024);
    double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    double text = (double)(o->ranges[0].high - o->ranges[0].low) / 1e6;
    fprintf(stderr, "elf_read: %.1f MB of text, %u arcs, %.3f s, %.1f MB/s\n", text, o->arc_count, seconds,
            text / seconds);
}
