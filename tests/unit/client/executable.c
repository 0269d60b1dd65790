/* Executables and their gmon.out, with real programs compiled by gcc -pg. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/executable.h"
#include "profd.h"
#include "lib/profd_upload.h"
#include "elf/elf_debuglink.h"

static char home[4096], directory[] = "/tmp/client_exe_XXXXXX";

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
    char command[8192];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    cr_assert_eq(system(command), 0, "%s", command);
}

static void begin(void)
{
    unsetenv("GMON_OUT_PREFIX"); /* Criterion sets it */
    cr_assert_not_null(getcwd(home, sizeof home));
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    FILE *f = fopen("small.c", "w");
    fputs("static volatile int n; __attribute__((noinline)) void leaf(int i) { n += i; }\n"
          "__attribute__((noinline)) void middle(int i) { leaf(i); leaf(i); n++; }\n"
          "int main(void) { for (int i = 0; i < 100; i++) middle(i); return 0; }\n",
          f);
    fclose(f);
    f = fopen("other.c", "w");
    fputs("static volatile int n; __attribute__((noinline)) int pad(int i) { int a = i; for (int k = 0; k < i; k++)"
          " a = a * 31 + k % 7; return a; }\n__attribute__((noinline)) void leaf(int i) { n += pad(i); }\n"
          "int main(void) { for (int i = 0; i < 10; i++) leaf(i); return 0; }\n",
          f);
    fclose(f);
}

static void end(void)
{
    cr_assert_eq(chdir(home), 0);
    run("rm -rf %s", directory);
}

TestSuite(client_executable, .init = begin, .fini = end);

static struct profd_executable *exe(const char *path)
{
    struct profd_executable *x;
    struct profd_error e = {""};
    cr_assert_eq(profd_executable_open(path, &x, &e), PROFD_OK, "%s", e.sentence);
    return x;
}

static void import_is(const char *path, const char *gmon, enum profd_status status, const char *word)
{
    struct profd_executable *x = exe(path);
    struct profd_upload *u = NULL;
    struct profd_error e = {""};
    cr_assert_eq(profd_executable_import(x, gmon, &u, &e), status, "%s with %s: %s", path, gmon, e.sentence);
    cr_assert(status == PROFD_OK || (u == NULL && strstr(e.sentence, word)), "\"%s\" lacks \"%s\"", e.sentence, word);
    cr_assert(status == PROFD_OK || strstr(e.sentence, gmon), "\"%s\" names the file", e.sentence);
    profd_upload_free(u);
    profd_executable_free(x);
}

Test(client_executable, its_own_gmon_is_taken_whatever_the_build)
{
    static const char *const flags[] = {"-O0", "-O2", "-O2 -no-pie", "-static", "-static-pie", "-O2 -flto", "-m64 -s"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        run("rm -f gmon.out; gcc -pg %s -o prog small.c && ./prog", flags[i]);
        import_is("./prog", "gmon.out", PROFD_OK, "");
    }
}

Test(client_executable, the_upload_says_what_gmon_is)
{
    run("gcc -pg -O0 -o prog small.c && ./prog");
    struct profd_executable *x = exe("prog");
    struct profd_upload *u = NULL;
    cr_assert_eq(profd_executable_import(x, "gmon.out", &u, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_build_count(u), 1);
    cr_assert_str_eq(profd_upload_build_id(u, 0), profd_executable_build_id(x));
    cr_assert_eq(profd_executable_path(x)[0], '/');
    cr_assert(profd_executable_has_names(x));
    char id[129];
    cr_assert_eq(profd_executable_read_id("prog", id, sizeof id, NULL), PROFD_OK);
    cr_assert_str_eq(id, profd_executable_build_id(x));
    cr_assert_eq(profd_executable_read_id("prog", id, 10, NULL), PROFD_USAGE);
    profd_upload_free(u);
    profd_executable_free(x);
}

Test(client_executable, another_programs_gmon_is_refused)
{
    run("gcc -pg -O0 -o prog small.c && ./prog && mv gmon.out small.gmon");
    run("gcc -pg -O0 -o other other.c && ./other && mv gmon.out other.gmon");
    import_is("prog", "other.gmon", PROFD_WRONG_BUILD, "0x");
    import_is("other", "small.gmon", PROFD_WRONG_BUILD, "not the executable that was profiled");
    run("cp /bin/true true");
    import_is("true", "small.gmon", PROFD_WRONG_BUILD, "true");
}

Test(client_executable, a_stripped_one_is_judged_by_its_text)
{
    run("gcc -pg -O0 -o prog small.c && ./prog && mv gmon.out small.gmon && strip -o bare prog");
    import_is("bare", "small.gmon", PROFD_OK, "");
    run("gcc -pg -O0 -Wl,-Ttext-segment=0x7000000 -no-pie -o far small.c && ./far && mv gmon.out far.gmon");
    import_is("bare", "far.gmon", PROFD_WRONG_BUILD, "has code that ends elsewhere");
}

Test(client_executable, every_truncation_is_refused)
{
    run("gcc -pg -O0 -o prog small.c && ./prog && mv gmon.out whole");
    struct profd_executable *x = exe("prog");
    struct stat s;
    cr_assert_eq(stat("whole", &s), 0);
    run("cp whole cut");
    for (off_t size = s.st_size - 1; size >= 0; size--) {
        struct profd_upload *u = NULL;
        struct profd_error e = {""};
        cr_assert_eq(truncate("cut", size), 0);
        enum profd_status status = profd_executable_import(x, "cut", &u, &e);
        /* A cut between two records leaves a shorter, whole file: arcs of 20 bytes behind the histogram. */
        if (status == PROFD_OK) {
            cr_assert((s.st_size - size) % 20 == 1 || (s.st_size - size) % 21 == 0 || size == 20,
                      "%ld of %ld bytes are taken", (long)size, (long)s.st_size);
            profd_upload_free(u);
        } else {
            cr_assert_eq(status, PROFD_MALFORMED, "%ld bytes: %s", (long)size, e.sentence);
        }
    }
    profd_executable_free(x);
}

static void patched(size_t at, const char *hex, const char *word)
{
    run("cp whole bad && printf '%s' | dd of=bad bs=1 seek=%zu conv=notrunc status=none", hex, at);
    import_is("prog", "bad", PROFD_MALFORMED, word);
}

Test(client_executable, broken_gmon_files)
{
    run("gcc -pg -O0 -o prog small.c && ./prog && mv gmon.out whole");
    patched(0, "gmom", "gmo");
    patched(4, "\\002", "2");
    patched(20, "\\377", "255");
    patched(37, "\\377\\377\\377\\177", "4294967294");
    patched(21, "\\377\\377\\377\\377\\377\\377\\377\\177", "low");
    run(": > empty");
    import_is("prog", "empty", PROFD_MALFORMED, "");
    run("mkdir dir");
    import_is("prog", "dir", PROFD_REFUSED, "regular");
    import_is("prog", "missing", PROFD_NO_INPUT, "No such file");
    run("truncate -s 600M huge");
    import_is("prog", "huge", PROFD_TOO_LARGE, "629145600");
    run("mkfifo pipe");
    import_is("prog", "pipe", PROFD_REFUSED, "regular");
}

static void open_is(const char *path, enum profd_status status, const char *word)
{
    struct profd_executable *x = NULL;
    struct profd_error e = {""};
    cr_assert_eq(profd_executable_open(path, &x, &e), status, "%s: %s", path, e.sentence);
    cr_assert(x == NULL && strstr(e.sentence, word) && strstr(e.sentence, path), "\"%s\" lacks \"%s\"", e.sentence,
              word);
}

Test(client_executable, what_is_no_executable)
{
    run("truncate -s 5G huge; echo hello > text; : > empty; mkfifo pipe; gcc -c -o part.o small.c");
    open_is("huge", PROFD_TOO_LARGE, "5368709120");
    open_is("text", PROFD_MALFORMED, "ELF");
    open_is("empty", PROFD_MALFORMED, "");
    open_is("pipe", PROFD_REFUSED, "regular");
    open_is(".", PROFD_REFUSED, "regular");
    open_is("missing", PROFD_NO_INPUT, "No such file");
    open_is("part.o", PROFD_MALFORMED, "");
}

Test(client_executable, debug_files_are_found_and_checked)
{
    run("gcc -pg -g -O0 -o prog small.c && objcopy --only-keep-debug prog prog.debug && strip -o bare prog && "
        "objcopy --add-gnu-debuglink=prog.debug bare && ./prog");
    struct elf_debuglink link;
    uint32_t crc;
    int fd = open("bare", O_RDONLY), debug = open("prog.debug", O_RDONLY);
    cr_assert_eq(elf_read_debuglink(fd, &link, NULL), PROFD_OK);
    cr_assert_str_eq(link.name, "prog.debug");
    cr_assert_eq(elf_read_crc(debug, 1 << 30, &crc, NULL), PROFD_OK);
    cr_assert_eq(crc, link.crc, "the checksum objcopy wrote");
    cr_assert_eq(elf_read_crc(debug, 100, &crc, NULL), PROFD_LIMIT);
    close(fd);
    close(debug);
    static const char *const places[] = {".", ".debug"};
    run("mkdir .debug && mv prog.debug kept");
    for (size_t i = 0; i < 2; i++) {
        run("cp kept %s/prog.debug", places[i]);
        struct profd_executable *x = exe("bare");
        int fds[2];
        size_t n = 0;
        cr_assert_eq(executable_dup_fds(x, fds, &n, NULL), PROFD_OK);
        cr_assert_eq(n, 2, "with its debug file in %s", places[i]);
        cr_assert(x->object->has_etext, "whose symbols are read");
        executable_close_fds(fds, n);
        profd_executable_free(x);
        run("rm %s/prog.debug", places[i]);
    }
    run("gcc -g -O0 -o other other.c && objcopy --only-keep-debug other prog.debug"); /* of another build */
    struct profd_executable *x = exe("bare");
    cr_assert(!x->object->has_etext);
    profd_executable_free(x);
    import_is("bare", "gmon.out", PROFD_OK, "");
    fd = open("prog", O_RDONLY);
    cr_assert_eq(elf_read_debuglink(fd, &link, NULL), PROFD_NOT_FOUND);
    close(fd);
}
