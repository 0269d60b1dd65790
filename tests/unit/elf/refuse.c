/* What is no executable gets one sentence, at once, and nothing half-done. */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "tests/unit/elf/tools.h"
#include "proto/limits.h"

static void refuse(int fd, enum profd_status want, const char *word)
{
    struct arena *a = arena_new(0);
    struct elf_read_options all = {.static_arcs = true, .demangle = true, .lines = true, .rows = true};
    struct profd_error e = {""}, f = {""};
    struct object *untouched = (struct object *)&e, *o = untouched;
    struct buildid id = {"kept"};
    enum profd_status status = elf_read(fd, -1, &all, a, &o, &e);
    cr_expect_eq(status, want, "%s: %s, wanted %s", profd_status_name(status), e.sentence, word);
    cr_expect(strstr(e.sentence, word) != NULL, "'%s' does not say '%s'", e.sentence, word);
    cr_expect_eq(o, untouched);
    cr_expect_eq(elf_read_id(fd, LIMIT_OBJECT_BYTES, &id, &f), want, "%s", f.sentence);
    cr_expect_str_eq(id.text, "kept");
    arena_free(a);
}

static int memory_of(const void *bytes, size_t n, unsigned seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    if (seals != 0) {
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

Test(elf_refuse, kinds_of_descriptors)
{
    int two[2];
    cr_assert_eq(pipe(two), 0);
    refuse(two[0], PROFD_REFUSED, "pipe");
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
    refuse(two[0], PROFD_REFUSED, "socket");
    refuse(open("/dev/zero", O_RDONLY), PROFD_REFUSED, "device");
    refuse(open("/", O_RDONLY | O_DIRECTORY), PROFD_REFUSED, "directory");
    refuse(open("/proc/self/exe", O_PATH), PROFD_REFUSED, "O_PATH");
    refuse(-1, PROFD_REFUSED, "open");
    refuse(12345, PROFD_REFUSED, "12345");
    char path[256];
    snprintf(path, sizeof path, "%s/fifo", tools_dir());
    cr_assert_eq(mkfifo(path, 0600), 0);
    refuse(open(path, O_RDWR), PROFD_REFUSED, "pipe");
    snprintf(path, sizeof path, "%s/w", tools_dir());
    refuse(open(path, O_WRONLY | O_CREAT, 0600), PROFD_REFUSED, "O_WRONLY");
}

Test(elf_refuse, memory_files_must_be_sealed)
{
    char *bytes = malloc(100000);
    tools_write("a.c", "int f(int x) { return x; }\n");
    tools_run("gcc -shared -nostdlib a.c -o a.so");
    ssize_t n = read(tools_open("a.so"), bytes, 100000);
    refuse(memory_of(bytes, (size_t)n, 0), PROFD_REFUSED, "seal");
    refuse(memory_of(bytes, (size_t)n, F_SEAL_SHRINK | F_SEAL_GROW), PROFD_REFUSED, "seal");
    struct buildid id;
    cr_expect_eq(elf_read_id(memory_of(bytes, (size_t)n, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
                             LIMIT_OBJECT_BYTES, &id, NULL),
                 PROFD_OK);
    free(bytes);
}

Test(elf_refuse, five_sparse_gigabytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/large", tools_dir());
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_eq(ftruncate(fd, (off_t)5 << 30), 0);
    refuse(fd, PROFD_TOO_LARGE, "5368709120");
    cr_assert_eq(ftruncate(fd, (off_t)1 << 30), 0);
    refuse(fd, PROFD_MALFORMED, "00 00 00 00");
}

static int sealed(const void *bytes, size_t n)
{
    return memory_of(bytes, n, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

Test(elf_refuse, headers)
{
    refuse(sealed("", 0), PROFD_MALFORMED, "the file is empty");
    refuse(sealed("\177ELF", 4), PROFD_MALFORMED, "bytes");
    char text[512];
    memset(text, 'x', sizeof text);
    refuse(sealed(text, sizeof text), PROFD_MALFORMED, "begins with \"xxxx\"");
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_REL,
                    .e_machine = EM_X86_64};
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "type 1");
    h.e_type = ET_CORE;
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "type 4");
    h.e_type = ET_DYN;
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "neither");
    h.e_shoff = 1000;
    h.e_shnum = 2;
    h.e_shentsize = sizeof(Elf64_Shdr);
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "section headers");
    h.e_shentsize = 63;
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "63");
    h.e_shoff = UINT64_MAX - 10;
    h.e_shentsize = sizeof(Elf64_Shdr);
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "18446744073709551605");
    h.e_shoff = 0;
    h.e_phoff = 1u << 30;
    h.e_phnum = 5;
    h.e_phentsize = sizeof(Elf64_Phdr);
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "program headers");
    h.e_ident[EI_CLASS] = 3;
    refuse(sealed(&h, sizeof h), PROFD_MALFORMED, "class");
}

/* An image of our own: null section, names, and one more. */
struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    char bytes[256];
};

static struct image *image(void)
{
    static struct image m;
    memset(&m, 0, sizeof m);
    m.header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                            .e_type = ET_DYN,
                            .e_machine = EM_X86_64,
                            .e_shoff = offsetof(struct image, sections),
                            .e_shnum = 4,
                            .e_shentsize = sizeof(Elf64_Shdr),
                            .e_shstrndx = 1};
    m.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, bytes), .sh_size = 64};
    m.sections[2] = (Elf64_Shdr){.sh_name = 1,
                                 .sh_type = SHT_PROGBITS,
                                 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                 .sh_addr = 0x1000,
                                 .sh_offset = offsetof(struct image, bytes) + 64,
                                 .sh_size = 64};
    strcpy(m.bytes + 1, ".text");
    memset(m.bytes + 64, 0x90, 64);
    return &m;
}

Test(elf_refuse, tables)
{
    struct image *m = image();
    struct buildid id;
    cr_assert_eq(elf_read_id(sealed(m, sizeof *m), LIMIT_OBJECT_BYTES, &id, NULL), PROFD_OK);
    cr_expect_eq(strncmp(id.text, "sha256-", 7), 0);
    m->sections[2].sh_size = 1u << 20;
    refuse(sealed(m, sizeof *m), PROFD_MALFORMED, m->sections[2].sh_size > sizeof *m ? "bytes" : "");
    m = image();
    m->header.e_shstrndx = 9;
    refuse(sealed(m, sizeof *m), PROFD_MALFORMED, "9");
    m = image();
    m->sections[1].sh_offset = UINT64_MAX;
    refuse(sealed(m, sizeof *m), PROFD_MALFORMED, "inside the file");
    /* Extended numbering that claims four billion sections. */
    m = image();
    m->header.e_shnum = 0;
    m->sections[0].sh_size = UINT32_MAX;
    refuse(sealed(m, sizeof *m), PROFD_MALFORMED, "section headers");
}

static void refuse_object(const void *bytes, size_t n, enum profd_status want, const char *word)
{
    struct arena *a = arena_new(0);
    struct elf_read_options all = {.static_arcs = true, .demangle = true, .lines = true, .rows = true};
    struct profd_error e = {""};
    struct object *o;
    enum profd_status status = elf_read(sealed(bytes, n), -1, &all, a, &o, &e);
    cr_expect_eq(status, want, "%s %s", profd_status_name(status), e.sentence);
    cr_expect(strstr(e.sentence, word) != NULL, "'%s' does not say '%s'", e.sentence, word);
    arena_free(a);
}

Test(elf_refuse, symbol_tables)
{
    struct image *m = image();
    m->sections[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                  .sh_link = 1,
                                  .sh_entsize = 24,
                                  .sh_offset = offsetof(struct image, bytes) + 128,
                                  .sh_size = 48};
    m->sections[3].sh_entsize = 16;
    refuse_object(m, sizeof *m, PROFD_MALFORMED, "16");
    m->sections[3].sh_entsize = 24;
    m->sections[3].sh_link = 2;
    refuse_object(m, sizeof *m, PROFD_MALFORMED, "string table");
    m->sections[3].sh_link = 1;
    m->sections[3].sh_size = 24 * UINT64_C(4000001);
    refuse_object(m, sizeof *m, PROFD_LIMIT, "4000001");
    m->sections[3].sh_size = 24 * 100;
    refuse_object(m, sizeof *m, PROFD_MALFORMED, "inside the file");
    /* Two code sections on the same bytes count twice and may not exceed the file. */
    m = image();
    m->sections[2].sh_offset = 0;
    m->sections[2].sh_size = sizeof *m;
    m->sections[3] = m->sections[2];
    refuse_object(m, sizeof *m, PROFD_MALFORMED, "executable sections");
}

/* A bomb: millions of symbols that share one long name must fail by the limit of names, without the memory. */
Test(elf_refuse, shared_long_names)
{
    size_t symbols = 200000, name = 4000, size = 4096 + 24 * symbols + name + 64;
    uint8_t *bytes = calloc(1, size);
    struct image *m = image();
    memcpy(bytes, m, sizeof *m);
    Elf64_Shdr *s = (Elf64_Shdr *)(void *)(bytes + offsetof(struct image, sections));
    s[3] =
        (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = 1, .sh_entsize = 24, .sh_offset = 4096, .sh_size = 24 * symbols};
    s[1].sh_offset = 4096 + 24 * symbols;
    s[1].sh_size = name + 2;
    memset(bytes + s[1].sh_offset + 1, 'n', name);
    for (size_t i = 1; i < symbols; i++) {
        memcpy(bytes + 4096 + 24 * i,
               &(Elf64_Sym){
                   .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 2, .st_value = 0x1000},
               24);
    }
    refuse_object(bytes, size, PROFD_LIMIT, "names");
    free(bytes);
}

/* The owner truncates the file between the check and the read: a sentence, no SIGBUS. */
Test(elf_refuse, file_that_shrinks)
{
    tools_write("a.c", "int f(int x) { return x; }\n");
    tools_run("gcc -shared -nostdlib a.c -o a.so && truncate -s 5000 a.so");
    refuse(tools_open("a.so"), PROFD_MALFORMED, "section headers");
}
