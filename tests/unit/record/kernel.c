/* The kernel and its modules, from files as the kernel has them: names, addresses relative to the start, hidden ones.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/object.h"
#include "elf/elf_read.h"
#include "record/record_internal.h"

static char folder[64];
static char paths[4][128];
static struct kernel_files files;
static struct images *images;

static void file_write(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(bytes, 1, n, f) == n);
    (void)fclose(f);
}

static void note_write(const char *path, uint8_t first)
{
    uint8_t note[36] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, first};
    file_write(path, note, sizeof note);
}

static void setup(void)
{
    static const char symbols[] = "ffffffff81000000 T _text\n"
                                  "ffffffff81000000 T startup\n"
                                  "ffffffff81000100 T do_syscall\n"
                                  "ffffffff81000400 t local\n"
                                  "ffffffff81001000 T _etext\n"
                                  "ffffffff82000000 D data\n"
                                  "ffffffffc0000010 t first\t[ext4]\n"
                                  "ffffffffc0000050 t second\t[ext4]\n"
                                  "ffffffffc0008000 t third\t[nameless]\n";
    static const char modules[] = "ext4 4096 1 - Live 0xffffffffc0000000\n"
                                  "nameless 4096 0 - Live 0xffffffffc0008000\n";
    char path[256];
    (void)snprintf(folder, sizeof folder, "/tmp/record-kernel-%d", (int)getpid());
    cr_assert_eq(mkdir(folder, 0700), 0);
    static const char *const names[] = {"notes", "kallsyms", "modules", "module"};
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    }
    files = (struct kernel_files){paths[0], paths[1], paths[2], paths[3]};
    note_write(paths[0], 0xaa);
    file_write(paths[1], symbols, strlen(symbols));
    file_write(paths[2], modules, strlen(modules));
    (void)snprintf(path, sizeof path, "mkdir -p %s/ext4/notes", paths[3]);
    cr_assert_eq(system(path), 0);
    (void)snprintf(path, sizeof path, "%s/ext4/notes/.note.gnu.build-id", paths[3]);
    note_write(path, 0xbb);
    cr_assert_eq(images_new(&images, NULL), PROFD_OK);
}

static void teardown(void)
{
    char command[96];
    images_free(images);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(kernel, .init = setup, .fini = teardown);

static struct counts_frame find(const struct kernel *k, uint64_t address)
{
    struct counts_frame f;
    kernel_find_frame(k, address, &f);
    return f;
}

/* The symbol that the file of a build has at an address. */
static void check_symbol(const char *id, uint64_t address, const char *name, uint64_t size)
{
    const struct elf_read_options options = {.static_arcs = true};
    struct arena *a = arena_new(0);
    struct object *o;
    struct profd_error e;
    uint32_t uid;
    const char *build;
    bool found = false;
    const int fd = images_open_build(images, id, &uid, &build);
    cr_assert_geq(fd, 0);
    cr_assert_eq(elf_read(fd, -1, &options, a, &o, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(o->id.text, id);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        found |= o->symbols[i].address == address && o->symbols[i].size == size &&
                 strcmp(o->names + o->symbols[i].name, name) == 0;
    }
    cr_assert(found, "%s", name);
    close(fd);
    arena_free(a);
}

Test(kernel, parts_and_their_names)
{
    struct kernel *k;
    struct profd_error e = {""};
    cr_assert_eq(kernel_open(&files, images, &k, &e), PROFD_OK, "%s", e.sentence);
    const struct counts_frame inside = find(k, 0xffffffff81000123), module = find(k, 0xffffffffc0000055);
    cr_assert(inside.build == kernel_get_build(k) && inside.address == 0x123);
    cr_assert_str_eq(images_get_name(images, inside.build), "[kernel]");
    cr_assert(module.build != inside.build && module.address == 0x55);
    cr_assert_str_eq(images_get_name(images, module.build), "[ext4]");
    cr_assert(kernel_has_build(k, module.build));
    cr_assert_eq(find(k, 0xffffffffc0008010).build, COUNTS_NOWHERE, "a module without a build-id");
    cr_assert_eq(find(k, 0xffffffff81001000).build, COUNTS_NOWHERE, "behind the code");
    check_symbol(images_get_id(images, inside.build), 0x100, "do_syscall", 0x300);
    check_symbol(images_get_id(images, inside.build), 0x400, "local", 0xc00);
    check_symbol(images_get_id(images, inside.build), 0, "startup", 0x100);
    check_symbol(images_get_id(images, module.build), 0x10, "first", 0x40);
    kernel_close(k);
}

Test(kernel, hidden_addresses)
{
    static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T _etext\n";
    struct kernel *k;
    struct profd_error e = {""};
    file_write(files.symbols, hidden, strlen(hidden));
    cr_assert_eq(kernel_open(&files, images, &k, &e), PROFD_FORBIDDEN);
    cr_assert(strstr(e.sentence, "CAP_SYSLOG"));
}

Test(kernel, without_a_build_id)
{
    struct kernel *k;
    struct profd_error e = {""};
    file_write(files.notes, "", 0);
    cr_assert_eq(kernel_open(&files, images, &k, &e), PROFD_NO_INPUT);
}
