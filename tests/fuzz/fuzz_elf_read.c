/* Law: any bytes are read or refused; what is read encodes, and decodes to the same encoding. In process, by a sealed
 * memfd as in life. The first byte chooses: bit 0 demangling off, bit 1 the rest serves as its own debug file too. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf_debuglink.h"
#include "elf/elf_read.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        abort();
    }
    return fd;
}

static void check(const struct object *o, struct arena *a)
{
    uint8_t *bytes, *again;
    size_t n, m;
    struct object *back;
    struct profd_error e;
    if (object_encode(o, &bytes, &n, &e) != PROFD_OK || object_decode(a, bytes, n, &back, &e) != PROFD_OK ||
        object_encode(back, &again, &m, &e) != PROFD_OK || n != m || memcmp(bytes, again, n) != 0) {
        abort();
    }
    free(bytes);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    int fd = memory_of(data + 1, size - 1);
    struct elf_read_options options = {.static_arcs = true,
                                       .instructions = true,
                                       .demangle = (data[0] & 1) == 0,
                                       .lines = true,
                                       .rows = true,
                                       .inlined = true,
                                       .all_lines = (data[0] & 2) != 0,
                                       .line_table = (data[0] & 4) != 0,
                                       .text = (data[0] & 8) != 0};
    struct arena *a = arena_new((size_t)256 << 20);
    struct object *o;
    struct profd_error e = {""};
    struct buildid id;
    if (elf_read(fd, data[0] & 2 ? fd : -1, &options, a, &o, &e) == PROFD_OK) {
        check(o, a);
    } else if (e.sentence[0] == '\0') {
        abort();
    }
    if (elf_read_id(fd, LIMIT_OBJECT_BYTES, &id, NULL) == PROFD_OK &&
        buildid_parse(id.text, strlen(id.text), &id, NULL) != PROFD_OK) {
        abort();
    }
    struct elf_debuglink link;
    if (elf_read_debuglink(fd, &link, NULL) == PROFD_OK &&
        (link.name[0] == '\0' || memchr(link.name, '\0', sizeof link.name) == NULL || strchr(link.name, '/') != NULL)) {
        abort();
    }
    arena_free(a);
    close(fd);
    return 0;
}
