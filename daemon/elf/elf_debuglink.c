#include "elf/elf_debuglink.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#include "elf/elf_file.h"
#include "proto/whole.h"

enum profd_status elf_read_debuglink(int executable, struct elf_debuglink *out, struct profd_error *e)
{
    struct arena *scratch = arena_new(0);
    FAIL_IF(scratch == NULL, e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    struct elf_file *f = NULL;
    const GElf_Shdr *s = NULL;
    const uint8_t *bytes = NULL;
    enum profd_status status = elf_file_open(executable, scratch, &f, e);
    if (!status) {
        s = elf_file_find(f, ".gnu_debuglink");
        status = s == NULL ? profd_error_set(e, PROFD_NOT_FOUND, "no .gnu_debuglink")
                 : s->sh_size > 4096
                     ? profd_error_set(e, PROFD_MALFORMED, ".gnu_debuglink has %" PRIu64 " bytes", s->sh_size)
                     : elf_file_bytes(f, s, &bytes, e);
    }
    if (!status) {
        const size_t n = (size_t)s->sh_size;
        const uint8_t *end = memchr(bytes, '\0', n);
        const size_t length = end ? (size_t)(end - bytes) : n, at = (length + 4) & ~(size_t)3;
        if (!end || length == 0 || length >= sizeof out->name || at > n || n - at < 4 || memchr(bytes, '/', length)) {
            status =
                profd_error_set(e, PROFD_MALFORMED, ".gnu_debuglink of %zu bytes is not a file name and a checksum", n);
        } else {
            *out = (struct elf_debuglink){.crc = elf_u32(f, bytes + at)};
            memcpy(out->name, bytes, length);
        }
    }
    elf_file_close(f);
    arena_free(scratch);
    return status;
}

enum profd_status elf_read_crc(int file, uint64_t max, uint32_t *crc, struct profd_error *e)
{
    uint32_t sum = 0;
    uint64_t at = 0;
    uint8_t bytes[16384];
    for (ssize_t n = 1; n > 0; at += (uint64_t)n) {
        FAIL_IF(at > max, e, PROFD_LIMIT, "a debug file of more than %llu bytes", (unsigned long long)max);
        n = whole_read(file, bytes, sizeof bytes, at);
        FAIL_IF(n < 0, e, PROFD_IO, "cannot read: %s", strerror(errno));
        sum = libdeflate_crc32(sum, bytes, (size_t)n);
    }
    *crc = sum;
    return PROFD_OK;
}
