#include "elf/elf_debuglink.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

static enum profd_status debuglink_parse(const uint8_t *bytes, size_t n, bool big_endian, struct elf_debuglink *out,
                                         struct profd_error *e)
{
    const uint8_t *end = memchr(bytes, '\0', n);
    size_t length = end ? (size_t)(end - bytes) : n;
    size_t at = (length + 4) & ~(size_t)3;
    if (!end || length == 0 || length >= sizeof out->name || at > n || n - at < 4 || memchr(bytes, '/', length)) {
        return profd_error_set(e, PROFD_MALFORMED, ".gnu_debuglink of %zu bytes is not a file name and a checksum", n);
    }
    const uint8_t *c = bytes + at;
    struct elf_debuglink link = {.name = ""};
    memcpy(link.name, bytes, length);
    link.crc = big_endian ? (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3]
                          : (uint32_t)c[3] << 24 | (uint32_t)c[2] << 16 | (uint32_t)c[1] << 8 | c[0];
    *out = link;
    return PROFD_OK;
}

enum profd_status elf_read_debuglink(int executable, struct elf_debuglink *out, struct profd_error *e)
{
    if (elf_version(EV_CURRENT) == EV_NONE) {
        return profd_error_set(e, PROFD_INTERNAL, "libelf is too old");
    }
    Elf *elf = elf_begin(executable, ELF_C_READ, NULL);
    GElf_Ehdr header;
    size_t names;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) || elf_getshdrstrndx(elf, &names) != 0) {
        elf_end(elf);
        return profd_error_set(e, PROFD_MALFORMED, "not an ELF file");
    }
    enum profd_status status = PROFD_NOT_FOUND;
    Elf_Scn *section = NULL;
    while (status == PROFD_NOT_FOUND && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr s;
        if (!gelf_getshdr(section, &s) || s.sh_type != SHT_PROGBITS || s.sh_size > 4096) {
            continue;
        }
        const char *name = elf_strptr(elf, names, s.sh_name);
        if (!name || strcmp(name, ".gnu_debuglink") != 0) {
            continue;
        }
        Elf_Data *data = elf_rawdata(section, NULL);
        status = data && data->d_buf
                     ? debuglink_parse(data->d_buf, data->d_size, header.e_ident[EI_DATA] == ELFDATA2MSB, out, e)
                     : profd_error_set(e, PROFD_MALFORMED, ".gnu_debuglink lies outside the file");
    }
    elf_end(elf);
    return status == PROFD_NOT_FOUND ? profd_error_set(e, status, "no .gnu_debuglink") : status;
}

enum profd_status elf_read_crc(int file, uint64_t max, uint32_t *crc, struct profd_error *e)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int bit = 0; bit < 8; bit++) {
            v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
        }
        table[i] = v;
    }
    uint32_t sum = 0xffffffffu;
    uint64_t at = 0;
    uint8_t bytes[16384];
    for (;;) {
        ssize_t n = pread(file, bytes, sizeof bytes, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return profd_error_set(e, PROFD_IO, "cannot read: %s", strerror(errno));
        }
        if (n == 0) {
            break;
        }
        at += (uint64_t)n;
        if (at > max) {
            return profd_error_set(e, PROFD_LIMIT, "a debug file of more than %llu bytes", (unsigned long long)max);
        }
        for (ssize_t i = 0; i < n; i++) {
            sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 255];
        }
    }
    *crc = ~sum;
    return PROFD_OK;
}
