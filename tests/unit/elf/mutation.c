/* 2,000 damaged copies of a small program: each is read or refused in a sentence, none crashes, and what is read is
 * believed by object_decode. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "tests/unit/elf/tools.h"

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void mutate(uint8_t *bytes, size_t n)
{
    static const uint64_t interesting[] = {0,          1,          0x7f,      0xff,       0x7fff, 0xffff,
                                           0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX, 0xfff1, 0xff00};
    unsigned changes = 1 + (unsigned)(next_random() % 8);
    for (unsigned i = 0; i < changes; i++) {
        /* Half of them in the headers, at both ends of the file. */
        uint64_t choice = next_random() % 4;
        size_t at = choice == 0   ? next_random() % 0x400
                    : choice == 1 ? n - 1 - next_random() % 0x800
                                  : next_random() % n;
        uint64_t value = next_random() % 2 ? interesting[next_random() % 12] : next_random();
        size_t width = (size_t)1 << next_random() % 4;
        if (at + width <= n) {
            memcpy(bytes + at, &value, width);
        }
    }
}

static int memory_of(const uint8_t *bytes, size_t n)
{
    int fd = memfd_create("mutation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    return fd;
}

static bool read_one(int fd, uint64_t seed)
{
    struct elf_read_options all = {
        .static_arcs = true, .demangle = true, .lines = true, .rows = true, .instructions = true};
    struct arena *a = arena_new((size_t)256 << 20);
    struct object *o, *back;
    struct profd_error e = {""};
    enum profd_status status = elf_read(fd, -1, &all, a, &o, &e);
    if (status == PROFD_OK) {
        uint8_t *bytes;
        size_t size;
        cr_assert_eq(object_encode(o, &bytes, &size, NULL), PROFD_OK);
        cr_assert_eq(object_decode(a, bytes, size, &back, &e), PROFD_OK, "seed %llu: %s", (unsigned long long)seed,
                     e.sentence);
        free(bytes);
    } else {
        cr_assert(strlen(e.sentence) > 10, "seed %llu: %s", (unsigned long long)seed, profd_status_name(status));
    }
    arena_free(a);
    return status == PROFD_OK;
}

static void run(const char *file, unsigned rounds, uint64_t seed)
{
    uint8_t *original = malloc(1 << 20), *copy = malloc(1 << 20);
    int fd = tools_open(file);
    ssize_t n = read(fd, original, 1 << 20);
    cr_assert(n > 1000 && n < 1 << 20);
    close(fd);
    unsigned good = 0;
    for (unsigned i = 0; i < rounds; i++) {
        state = seed + i * 0x9e3779b97f4a7c15u + 1;
        memcpy(copy, original, (size_t)n);
        mutate(copy, (size_t)n);
        fd = memory_of(copy, (size_t)n);
        good += read_one(fd, seed + i);
        close(fd);
    }
    cr_expect(good > rounds / 50 && good < rounds, "%u of %u were read", good, rounds);
    free(original);
    free(copy);
}

Test(elf_mutation, damaged_copies)
{
    tools_write("a.cc", "int away(int);\nstatic int __attribute__((noipa)) h(int x) { return away(x) + 1; }\nint f(int "
                        "x) { return h(x) * h(x + 1); }\n");
    tools_run("g++ -g -O2 -fPIC -shared -nostdlib a.cc -o a.so && aarch64-linux-gnu-gcc -x c -g -O2 -fPIC -shared "
              "-nostdlib a.cc -o b.so && gcc -m32 -x c -O2 -shared -fPIC -nostdlib a.cc -o c.so");
    run("a.so", 1200, 1);
    run("b.so", 400, 100000);
    run("c.so", 400, 200000);
}
