/* Where an executable says its separate debug file is: the section .gnu_debuglink. For clients; the daemon looks for
 * build-ids. */
#ifndef PROFD_ELF_ELF_DEBUGLINK_H
#define PROFD_ELF_ELF_DEBUGLINK_H

#include <stdint.h>

#include "proto/status.h"

/* A file name without directories, and the CRC-32 of that file. */
struct elf_debuglink {
    char name[256];
    uint32_t crc;
};

/* NOT_FOUND: no such section. MALFORMED: not ELF, or the section breaks its rules (a name of 1–255 bytes without '/',
 * zero bytes to a multiple of 4, the CRC in the file's byte order). */
enum profd_status elf_read_debuglink(int executable, struct elf_debuglink *out, struct profd_error *e);

/* CRC-32 of the file's bytes as .gnu_debuglink counts it (the polynomial of zlib). O(size); IO, or LIMIT above max
 * bytes. */
enum profd_status elf_read_crc(int file, uint64_t max, uint32_t *crc, struct profd_error *e);

#endif
