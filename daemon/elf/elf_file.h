/* Reads an ELF file with libelf, by ELF_C_READ on the descriptor. The file is never mapped, because its owner may
 * truncate it at any time. libelf checks little, so offsets and sizes in headers are checked here before the bytes are
 * read. */
#ifndef PROFD_ELF_ELF_FILE_H
#define PROFD_ELF_ELF_FILE_H

#include <endian.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "proto/status.h"

struct elf_file {
    int fd; /* the caller's */
    uint64_t size;
    Elf *elf;
    uint8_t bits;
    bool big_endian;
    uint16_t type, machine;
    uint64_t entry; /* entry point; 0: none */
    uint32_t section_count, segment_count;
    GElf_Shdr *sections; /* sections are identified by their addresses here */
    GElf_Phdr *segments;
    size_t names; /* section of section names; SHN_UNDEF: none */
};

/* Checks the descriptor, and reads the header and both tables into the arena. elf_file_close closes the file, but not
 * the descriptor; the memory belongs to the arena. Reads nothing from a pipe or a device.
 * REFUSED: fd is not a readable regular file, or it is a memfd that is not sealed against shrinking, growing and
 * writing. TOO_LARGE: above LIMIT_OBJECT_BYTES. MALFORMED: not an ELF executable or shared object with both tables
 * inside the file. LIMIT: a table has more than LIMIT_SECTIONS entries. NO_MEMORY, IO. */
enum profd_status elf_file_open(int fd, struct arena *a, struct elf_file **out, struct profd_error *e);
/* Accepts NULL. Frees what elf_file_data and elf_file_bytes returned. */
void elf_file_close(struct elf_file *f);

/* Returns whether size bytes at the offset are inside the file. */
static inline bool elf_file_holds(const struct elf_file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->size && size <= f->size - offset;
}

/* Reads exactly size bytes from offset. MALFORMED: beyond the end of the file; IO: the read failed or the file became
 * shorter. */
enum profd_status elf_file_read(const struct elf_file *f, uint64_t offset, void *out, uint64_t size,
                                struct profd_error *e);

/* Reads the content of a section in the form that libelf translates it to, for gelf_getsym and similar functions. It is
 * valid until the file is closed. MALFORMED: the section's bytes are not inside the file or are not whole entries, or
 * its type is NULL or NOBITS, or it is compressed. NO_MEMORY. */
enum profd_status elf_file_data(const struct elf_file *f, const GElf_Shdr *s, Elf_Data **out, struct profd_error *e);
/* The same as sh_size bytes, for sections without entries. */
enum profd_status elf_file_bytes(const struct elf_file *f, const GElf_Shdr *s, const uint8_t **out,
                                 struct profd_error *e);
/* Reads the bytes of a section into a new block of the arena, followed by one NUL; fails as elf_file_data. For sections
 * of DWARF, which are large and must not stay in memory until the file is closed. */
enum profd_status elf_file_load(const struct elf_file *f, const GElf_Shdr *s, struct arena *a, uint8_t **out,
                                struct profd_error *e);

/* Returns the section's name; "" if it has none. */
const char *elf_file_section_name(const struct elf_file *f, const GElf_Shdr *s);

/* Returns the first section of that name with readable bytes (not NOBITS, not compressed, inside the file); NULL if
 * there is none. O(sections). */
const GElf_Shdr *elf_file_find(const struct elf_file *f, const char *name);

/* Lists the sections with machine code (allocated, executable, PROGBITS, not empty), ascending by address, as indexes
 * in a new block of the arena. MALFORMED: together they have more bytes than the file. NO_MEMORY. */
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

/* Reads a word of the file's class: 4 or 8 bytes. */
static inline uint64_t elf_word(const struct elf_file *f, const uint8_t *p)
{
    return f->bits == 64 ? elf_u64(f, p) : elf_u32(f, p);
}

#endif
