/* An ELF file seen through pread: headers, section and segment tables in host order. Never mapped, because the owner
 * may truncate it at any time; never libelf's descriptor mode, because that wants newfstatat, which takes a path and is
 * not allowed in the sandbox. */
#ifndef PROFD_ELF_ELF_FILE_H
#define PROFD_ELF_ELF_FILE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "proto/status.h"

struct elf_section {
    uint64_t flags, address, offset, size, entry, align;
    uint32_t name, type, link, info;
};

struct elf_segment {
    uint64_t offset, address, file_size, memory_size, align;
    uint32_t type, flags;
};

struct elf_file {
    int fd; /* the caller's */
    uint64_t size;
    uint8_t bits;
    bool big_endian;
    uint16_t type, machine;
    uint32_t section_count, segment_count;
    struct elf_section *sections;
    struct elf_segment *segments;
    char *section_names; /* NUL-terminated; "" when there are none */
    uint64_t section_names_size;
};

/* REFUSED unless fd is a readable regular file or a memfd sealed against shrinking, growing and writing; TOO_LARGE
 * above LIMIT_OBJECT_BYTES. Reads nothing, so that no pipe or device can make it wait. */
enum profd_status elf_file_check(int fd, uint64_t *size, struct profd_error *e);

/* Checks the descriptor, reads the header and both tables into the arena. MALFORMED unless it is an ELF executable or
 * shared object whose tables lie inside the file; LIMIT above LIMIT_SECTIONS. */
enum profd_status elf_file_open(int fd, struct arena *a, struct elf_file **out, struct profd_error *e);

/* Exactly size bytes from offset. MALFORMED beyond the end of the file, IO when the read fails or the file shrank. */
enum profd_status elf_file_read(const struct elf_file *f, uint64_t offset, void *out, uint64_t size,
                                struct profd_error *e);

/* A section's bytes in a new block of the arena, and one NUL behind them. NULL-typed, NOBITS and compressed sections
 * are MALFORMED. */
enum profd_status elf_file_load(const struct elf_file *f, const struct elf_section *s, struct arena *a, uint8_t **out,
                                struct profd_error *e);

/* "" if it has none. */
const char *elf_file_section_name(const struct elf_file *f, const struct elf_section *s);

/* First section of that name whose bytes can be read (not NOBITS, not compressed, inside the file); NULL if none.
 * O(sections). */
const struct elf_section *elf_file_find(const struct elf_file *f, const char *name);

/* The sections that hold machine code (allocated, executable, PROGBITS, not empty), ascending by address, as indexes in
 * a new block of the arena. NO_MEMORY. */
enum profd_status elf_file_code(const struct elf_file *f, struct arena *a, uint32_t **indexes, uint32_t *count,
                                struct profd_error *e);

static inline uint16_t elf_u16(const struct elf_file *f, const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return f->big_endian ? be16toh(v) : le16toh(v);
}

static inline uint32_t elf_u32(const struct elf_file *f, const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return f->big_endian ? be32toh(v) : le32toh(v);
}

static inline uint64_t elf_u64(const struct elf_file *f, const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return f->big_endian ? be64toh(v) : le64toh(v);
}

/* 4 or 8 bytes by class. */
static inline uint64_t elf_word(const struct elf_file *f, const uint8_t *p)
{
    return f->bits == 64 ? elf_u64(f, p) : elf_u32(f, p);
}

#endif
