/* The section .gnu_debuglink, which names the separate debug file of an executable. For clients; the daemon searches by
 * build-id. */
#ifndef PROFD_ELF_ELF_DEBUGLINK_H
#define PROFD_ELF_ELF_DEBUGLINK_H

#include <stdint.h>

#include "proto/status.h"

/* A file name without directories, and the CRC-32 of that file. */
struct elf_debuglink {
    char name[256];
    uint32_t crc;
};

/* Reads the section. NOT_FOUND: there is none. MALFORMED: the file is not ELF, or the section breaks its rules (a name
 * of 1–255 bytes without '/', zero bytes to a multiple of 4, the CRC in the file's byte order). */
enum profd_status elf_read_debuglink(int executable, struct elf_debuglink *out, struct profd_error *e);

/* Computes the CRC-32 of the file's bytes as used in .gnu_debuglink (the polynomial of zlib). LIMIT: above max bytes;
 * IO. O(size). */
enum profd_status elf_read_crc(int file, uint64_t max, uint32_t *crc, struct profd_error *e);

#endif
