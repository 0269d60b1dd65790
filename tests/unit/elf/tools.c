/* Compiles small programs and runs binutils for the tests of elf/. */
#include "tests/unit/elf/tools.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/elf_read.h"

static char folder[] = "/tmp/profd-elf-XXXXXX";
static pid_t owner;

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
    if (getpid() == owner && system(command) != 0) {
        fprintf(stderr, "%s was not removed\n", folder);
    }
}

const char *tools_dir(void)
{
    if (owner != getpid()) {
        cr_assert_not_null(mkdtemp(folder));
        owner = getpid();
        atexit(remove_folder);
    }
    return folder;
}

void tools_write(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", tools_dir(), name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
}

char *tools_output(const char *format, ...)
{
    char command[4096];
    int n = snprintf(command, sizeof command, "cd '%s' && { ", tools_dir());
    va_list list;
    va_start(list, format);
    n += vsnprintf(command + n, sizeof command - (size_t)n, format, list);
    va_end(list);
    cr_assert_lt(n, (int)sizeof command - 8);
    strcat(command, "\n}");
    FILE *f = popen(command, "r");
    cr_assert_not_null(f);
    char *out = NULL;
    size_t size = 0;
    FILE *sink = open_memstream(&out, &size);
    char piece[65536];
    for (size_t got; (got = fread(piece, 1, sizeof piece, f)) > 0;) {
        fwrite(piece, 1, got, sink);
    }
    fclose(sink);
    int status = pclose(f);
    cr_assert_eq(status, 0, "%s\nended with %d: %s", command, WEXITSTATUS(status), out);
    return out;
}

void tools_run(const char *format, ...)
{
    char command[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    free(tools_output("%s", command));
}

int tools_open(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : tools_dir(), name[0] == '/' ? "" : "/", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0, "%s", path);
    return fd;
}

struct object *tools_read(const char *name, const char *debug)
{
    static struct arena *kept;
    if (kept == NULL) {
        kept = arena_new(0);
    }
    int fd = tools_open(name), separate = debug == NULL ? -1 : tools_open(debug);
    struct elf_read_options all = {.static_arcs = true, .demangle = true, .lines = true, .rows = true, .inlined = true};
    struct profd_error e = {""};
    struct object *o = NULL;
    enum profd_status status = elf_read(fd, separate, &all, kept, &o, &e);
    cr_assert_eq(status, PROFD_OK, "%s: %s: %s", name, profd_status_name(status), e.sentence);
    close(fd);
    if (separate >= 0) {
        close(separate);
    }
    return o;
}

static const struct object_symbol *find(const struct object *o, const char *name)
{
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        if (strcmp(object_name(o, o->symbols[i].name), name) == 0) {
            return &o->symbols[i];
        }
    }
    return NULL;
}

const struct object_symbol *tools_symbol(const struct object *o, const char *name)
{
    const struct object_symbol *s = find(o, name);
    cr_assert_not_null(s, "no symbol %s", name);
    return s;
}

static unsigned count(const struct object *o, const char *from, uint64_t to, const char *import,
                      enum object_arc_kind kind)
{
    const struct object_symbol *s = tools_symbol(o, from);
    unsigned n = 0;
    for (uint32_t i = 0; i < o->arc_count; i++) {
        const struct object_arc *a = &o->arcs[i];
        bool same = import == NULL ? a->import == 0 && a->to == to
                                   : strcmp(object_name(o, a->import), import) == 0 && a->to == 0;
        n += same && a->kind == kind && a->from >= s->address && a->from < s->address + s->size;
    }
    return n;
}

unsigned tools_arcs(const struct object *o, const char *from, const char *to, enum object_arc_kind kind)
{
    return count(o, from, tools_symbol(o, to)->address, NULL, kind);
}

unsigned tools_imports(const struct object *o, const char *from, const char *import, enum object_arc_kind kind)
{
    return count(o, from, 0, import, kind);
}

unsigned tools_objdump_count(const char *objdump, const char *file, const char *mnemonics, const char *symbol)
{
    char *text = tools_output("%s -d --no-show-raw-insn %s | grep -cE '[[:space:]](%s)[[:space:]].*<%s>$' || true",
                              objdump, file, mnemonics, symbol);
    unsigned n = (unsigned)strtoul(text, NULL, 10);
    free(text);
    return n;
}
