/* Symbols, ranges, build-ids and debug files read from ELF, compared with readelf. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "tests/unit/elf/tools.h"
#include "proto/limits.h"

static const char program[] =
    "#include <stdio.h>\n"
    "static int __attribute__((noinline)) hidden(int x) { return x * 3 + (int)getchar(); }\n"
    "int __attribute__((noinline)) shown(int x) { return hidden(x) + hidden(x + 1); }\n"
    "int __attribute__((weak)) soft(int x) { return shown(x) - 1; }\n"
    "int table[4] = {1, 2, 3, 4};\n"
    "__attribute__((alias(\"shown\"))) int other(int x);\n"
    "int main(int c, char **v) { (void)v; printf(\"%d\\n\", soft(c) + table[c & 3]); return 0; }\n";

static void build(const char *options, const char *name)
{
    tools_write("a.c", program);
    tools_run("gcc -O1 -g %s a.c -o %s", options, name);
}

/* Every function of readelf's table is there with its address, size and binding; nothing that object.h leaves out is.
 */
Test(elf_object, symbols_equal_readelf)
{
    build("", "a");
    struct object *o = tools_read("a", NULL);
    char *text =
        tools_output("readelf -sW a | awk '/symtab/ {on=1} on && $4==\"FUNC\" && $7!=\"UND\" {print $2, $3, $5, $8}'");
    unsigned n = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        unsigned long address, size;
        char bind[16], name[128];
        cr_assert_eq(sscanf(line, "%lx %li %15s %127s", &address, (long *)&size, bind, name), 4, "%s", line);
        const struct object_symbol *s = tools_symbol(o, name);
        cr_expect_eq(s->address, address);
        cr_expect_eq(s->size, size);
        cr_expect_eq(s->type, OBJECT_TYPE_FUNCTION);
        cr_expect_eq(s->bind, strcmp(bind, "LOCAL") == 0  ? OBJECT_BIND_LOCAL
                              : strcmp(bind, "WEAK") == 0 ? OBJECT_BIND_WEAK
                                                          : OBJECT_BIND_GLOBAL);
        cr_expect_eq(s->flags, OBJECT_SYMBOL_EXECUTABLE);
        n++;
    }
    free(text);
    cr_expect_geq(n, 9);
    cr_expect(o->has_names && !o->only_dynamic && o->position_independent && o->bits == 64 && !o->big_endian);
    cr_expect_str_empty(o->note);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const char *name = object_name(o, o->symbols[i].name);
        cr_expect(strcmp(name, "a.c") != 0 && strcmp(name, "table") != 0 && strncmp(name, "printf", 6) != 0, "%s",
                  name);
    }
    cr_expect_eq(tools_symbol(o, "other")->address, tools_symbol(o, "shown")->address);
    cr_expect_eq(tools_symbol(o, "data_start")->bind, OBJECT_BIND_WEAK, "weak symbols are kept whatever their section");
    cr_expect_eq(tools_symbol(o, "data_start")->flags, 0);
}

Test(elf_object, bounds_of_a_profiled_program)
{
    build("-pg", "a");
    struct object *o = tools_read("a", NULL);
    char *text =
        tools_output("readelf -sW a | awk '$8==\"etext\" {print $2}; $8==\"__executable_start\" {print $2}' | sort -u");
    unsigned long low, high;
    cr_assert_eq(sscanf(text, "%lx %lx", &low, &high), 2, "%s", text);
    cr_expect(o->has_executable_start && o->has_etext);
    cr_expect_eq(o->executable_start, low);
    cr_expect_eq(o->etext, high);
    free(text);
}

Test(elf_object, ranges_equal_sections)
{
    build("", "a");
    struct object *o = tools_read("a", NULL);
    char *text = tools_output("readelf -SW a | sed 's/^ *\\[ *[0-9]*\\] //' | awk '$7 ~ /X/ {print $1, $3, $5}'");
    unsigned sections = 0, texts = 0, slots = 0;
    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save), sections++) {
        char name[64];
        unsigned long low, size;
        cr_assert_eq(sscanf(line, "%63s %lx %lx", name, &low, &size), 3, "%s", line);
        enum object_range_kind kind = strcmp(name, ".text") == 0      ? OBJECT_RANGE_TEXT
                                      : strncmp(name, ".plt", 4) == 0 ? OBJECT_RANGE_PLT
                                                                      : OBJECT_RANGE_EXECUTABLE;
        texts += kind == OBJECT_RANGE_TEXT;
        slots += kind == OBJECT_RANGE_PLT;
        unsigned found = 0;
        for (uint32_t i = 0; i < o->range_count; i++) {
            found += o->ranges[i].low == low && o->ranges[i].high == low + size && o->ranges[i].kind == kind;
        }
        cr_expect_eq(found, 1, "%s", name);
    }
    free(text);
    cr_expect_eq(texts, 1);
    cr_expect_geq(slots, 1);
    cr_expect_eq(o->ranges[o->range_count - 1].kind, OBJECT_RANGE_SEGMENT);
    for (uint32_t i = 1; i < o->range_count; i++) {
        cr_expect(o->ranges[i - 1].kind < o->ranges[i].kind ||
                  (o->ranges[i - 1].kind == o->ranges[i].kind && o->ranges[i - 1].low <= o->ranges[i].low));
    }
}

static void check_id(const char *file, const char *want)
{
    struct buildid id;
    int fd = tools_open(file);
    cr_assert_eq(elf_read_id(fd, LIMIT_OBJECT_BYTES, &id, NULL), PROFD_OK);
    close(fd);
    cr_expect_str_eq(id.text, want);
    cr_expect_str_eq(tools_read(file, NULL)->id.text, want);
}

Test(elf_object, build_id_from_notes)
{
    build("-Wl,--build-id=0x00112233445566778899AABBCCDDEEFF", "a");
    check_id("a", "00112233445566778899aabbccddeeff");
    build("-Wl,--build-id=sha1", "b");
    char *text = tools_output("readelf -nW b | sed -n 's/.*Build ID: //p' | tr -d '\\n'");
    check_id("b", text);
    free(text);
}

/* Without section headers the note's segment is all there is; symbols are gone. */
Test(elf_object, build_id_without_sections)
{
    build("-Wl,--build-id=0xabcdef12", "a");
    tools_run("/usr/bin/python3 -c \"d=bytearray(open('a','rb').read()); d[40:48]=bytes(8); d[58:64]=bytes(6); "
              "open('b','wb').write(d)\"");
    check_id("b", "abcdef12");
    struct object *o = tools_read("b", NULL);
    cr_expect_eq(o->symbol_count, 0);
    cr_expect(!o->has_names);
    cr_expect(strstr(o->note, "no symbol table") != NULL, "%s", o->note);
}

/* The hash of buildid_from_sha256, counted by an independent program. */
Test(elf_object, id_is_the_hash_of_the_code)
{
    build("-Wl,--build-id=none", "a");
    tools_write(
        "h.py",
        "import hashlib,subprocess,struct,re\n"
        "d=open('a','rb').read(); rows=[]\n"
        "for l in subprocess.run(['readelf','-SW','a'],capture_output=True,text=True).stdout.splitlines():\n"
        "    m=re.match(r'\\s*\\[ *\\d+\\] (\\S+)\\s+PROGBITS\\s+(\\w+) (\\w+) (\\w+) \\w+\\s+(\\w*X\\w*) ',l)\n"
        "    if m and 'A' in m[5]: rows.append(tuple(int(m[i],16) for i in (2,3,4)))\n"
        "h=hashlib.sha256()\n"
        "for a,o,s in sorted(rows): h.update(struct.pack('<QQ',a,s)); h.update(d[o:o+s])\n"
        "print('sha256-'+h.hexdigest(),end='')\n");
    char *text = tools_output("/usr/bin/python3 h.py");
    check_id("a", text);
    /* Stripping doesn't change who it is. */
    tools_run("strip -o b a");
    check_id("b", text);
    free(text);
}

Test(elf_object, variant_tells_contents_apart)
{
    build("-Wl,--build-id=0x1234", "a");
    tools_run("objcopy --redefine-sym shown=lying a b && strip -o c a && cp a d && strip --strip-debug d");
    const char *a = tools_read("a", NULL)->variant;
    cr_expect_eq(strlen(a), 64);
    cr_expect_str_eq(a, tools_read("a", NULL)->variant);
    cr_expect_str_eq(a, tools_read("d", NULL)->variant, "debug information is no content");
    cr_expect_str_neq(a, tools_read("b", NULL)->variant);
    cr_expect_str_neq(a, tools_read("c", NULL)->variant);
    cr_expect_str_eq(tools_read("b", NULL)->id.text, "1234");
}

Test(elf_object, stripped_falls_back_to_dynamic_symbols)
{
    build("-rdynamic -s", "a");
    struct object *o = tools_read("a", NULL);
    cr_expect(o->only_dynamic && o->has_names);
    cr_expect(tools_symbol(o, "shown")->flags == (OBJECT_SYMBOL_EXECUTABLE | OBJECT_SYMBOL_DYNAMIC));
    cr_expect(strstr(o->note, "stripped") != NULL, "%s", o->note);
    /* hidden's name is gone but its callers' and its own calls are still seen. */
    cr_expect_eq(tools_arcs(o, "soft", "shown", OBJECT_ARC_CALL) + tools_imports(o, "soft", "shown", OBJECT_ARC_CALL),
                 1);
}

/* Nothing calls _start: where names are gone, its beginning is known from the header only. */
Test(elf_object, where_a_stripped_program_begins)
{
    build("-O2", "a");
    const struct object *a = tools_read("a", NULL);
    uint64_t start = tools_symbol(a, "_start")->address;
    tools_run("strip -o b a");
    const struct object *each[] = {a, tools_read("b", NULL)};
    cr_assert(each[0]->has_names && !each[1]->has_names);
    for (unsigned i = 0; i < 2; i++) {
        unsigned found = 0;
        for (uint32_t k = 0; k < each[i]->range_count; k++) {
            found += each[i]->ranges[k].kind == OBJECT_RANGE_EXECUTABLE && each[i]->ranges[k].low == start;
        }
        cr_expect_eq(found, i, "%u ranges begin at _start", found);
    }
}

Test(elf_object, debug_file_names_a_stripped_one)
{
    build("-Wl,--build-id=sha1", "a");
    tools_run("objcopy --only-keep-debug a a.debug && strip -o b a");
    struct object *whole = tools_read("a", NULL), *o = tools_read("b", "a.debug");
    cr_assert_eq(o->symbol_count, whole->symbol_count);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        cr_expect_str_eq(object_name(o, o->symbols[i].name), object_name(whole, whole->symbols[i].name));
        cr_expect_eq(o->symbols[i].address, whole->symbols[i].address);
        cr_expect_eq(o->symbols[i].flags, whole->symbols[i].flags | OBJECT_SYMBOL_DEBUG);
        cr_expect_eq(o->symbols[i].line, whole->symbols[i].line);
    }
    cr_expect_eq(o->arc_count, whole->arc_count);
    cr_expect(!o->only_dynamic);
    cr_expect_str_eq(o->variant, whole->variant);
}

static void check_wrong(const char *file, const char *debug, enum profd_status want, const char *word)
{
    struct arena *a = arena_new(0);
    struct elf_read_options all = {.static_arcs = true, .demangle = true, .lines = true};
    struct profd_error e = {""};
    struct object *untouched = (struct object *)&e, *o = untouched;
    int fd = tools_open(file), separate = tools_open(debug);
    enum profd_status status = elf_read(fd, separate, &all, a, &o, &e);
    cr_expect_eq(status, want, "%s", profd_status_name(status));
    cr_expect(strstr(e.sentence, word) != NULL, "%s", e.sentence);
    cr_expect_eq(o, untouched);
    close(fd);
    close(separate);
    arena_free(a);
}

Test(elf_object, debug_file_of_another_build_is_refused)
{
    build("-Wl,--build-id=0xaaaa", "a");
    build("-Wl,--build-id=0xbbbb", "b");
    build("-Wl,--build-id=none", "c");
    tools_run("objcopy --only-keep-debug b b.debug && objcopy --only-keep-debug c c.debug && strip a");
    check_wrong("a", "b.debug", PROFD_WRONG_BUILD, "bbbb");
    check_wrong("a", "c.debug", PROFD_WRONG_BUILD, "none");
    check_wrong("c", "b.debug", PROFD_WRONG_BUILD, "none");
    check_wrong("a", "a.c", PROFD_MALFORMED, "ELF");
}

Test(elf_object, long_and_odd_names)
{
    char name[5001], *text = malloc(30000);
    memset(name, 'L', 5000);
    name[5000] = '\0';
    snprintf(text, 30000,
             ".globl a\n.type a,@function\na: ret\n.globl %s\n.type %s,@function\n%s: ret\n"
             ".globl odd_12\n.type odd_12,@function\nodd_12: ret\n",
             name, name, name);
    tools_write("n.s", text);
    free(text);
    tools_run("as n.s -o n.o && ld -shared n.o -o n.so && LC_ALL=C sed -i 's/odd_12/odd_\\x01\\xff/g' n.so");
    struct object *o = tools_read("n.so", NULL);
    unsigned cut = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        cut += strlen(object_name(o, o->symbols[i].name)) == 4096;
    }
    cr_expect_eq(cut, 1);
    cr_expect(strstr(o->note, "cut") != NULL, "%s", o->note);
    tools_symbol(o, "a");
    tools_symbol(o, "odd_\001\377"); /* as they are: escaping is the renderers' */
}

Test(elf_object, arm64_has_no_mapping_marks)
{
    tools_write(
        "a.c",
        "static int __attribute__((noinline)) one(int x) { return x * 7; }\nint f(int x) { return one(x) + 1; }\n");
    tools_run("aarch64-linux-gnu-gcc -O1 -fno-ipa-ra -nostdlib -shared -fPIC a.c -o a.so");
    struct object *o = tools_read("a.so", NULL);
    cr_expect_eq(o->machine, 183);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        cr_expect_neq(object_name(o, o->symbols[i].name)[0], '$');
    }
    cr_expect_eq(tools_arcs(o, "f", "one", OBJECT_ARC_CALL), 1);
}

/* A big-endian object's tables are read; its code isn't, and that is said. */
Test(elf_object, other_machine_is_a_note)
{
    build("", "a");
    tools_run("/usr/bin/python3 -c \"d=bytearray(open('a','rb').read()); d[18:20]=(243).to_bytes(2,'little'); "
              "open('b','wb').write(d)\"");
    struct object *o = tools_read("b", NULL);
    cr_expect_eq(o->machine, 243);
    cr_expect_eq(o->arc_count, 0);
    tools_symbol(o, "shown");
    cr_expect(strstr(o->note, "243") != NULL, "%s", o->note);
}

Test(elf_object, survives_its_encoding)
{
    build("", "a");
    struct object *o = tools_read("a", NULL), *back;
    uint8_t *bytes;
    size_t size;
    cr_assert_eq(object_encode(o, &bytes, &size, NULL), PROFD_OK);
    struct arena *a = arena_new(0);
    struct profd_error e = {""};
    cr_assert_eq(object_decode(a, bytes, size, &back, &e), PROFD_OK, "%s", e.sentence);
    cr_expect_eq(back->symbol_count, o->symbol_count);
    cr_expect_eq(back->arc_count, o->arc_count);
    cr_expect_eq(back->plt_count, o->plt_count);
    cr_expect_str_eq(back->id.text, o->id.text);
    free(bytes);
    arena_free(a);
}
