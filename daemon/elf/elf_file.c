#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/limits.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "a device";
    return "no file";
}

enum profd_status elf_file_check(int fd, uint64_t *size, struct profd_error *e)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return profd_error_set(e, PROFD_REFUSED, "an executable must be an open descriptor; %d is not", fd);
    if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
        return profd_error_set(e, PROFD_REFUSED,
                               "an executable's descriptor must be readable; this one was opened with %s",
                               flags & O_PATH ? "O_PATH" : "O_WRONLY");
    struct stat st;
    /* The bare call: glibc's fstat is newfstatat, which the sandbox forbids. */
    if (syscall(SYS_fstat, fd, &st) != 0)
        return profd_error_set(e, PROFD_REFUSED, "an executable must be a regular file; fstat failed with errno %d",
                               errno);
    if (!S_ISREG(st.st_mode))
        return profd_error_set(e, PROFD_REFUSED, "an executable must be a regular file or a sealed memfd, not %s",
                               kind_name(st.st_mode));
    /* Only memory files answer, and of these only memfds (and deleted files) have no link. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals >= 0 && st.st_nlink == 0 && (seals & SEALS) != SEALS)
        return profd_error_set(e, PROFD_REFUSED,
                               "a memfd must be sealed against shrinking, growing and writing; its seals are 0x%x",
                               (unsigned)seals);
    if (st.st_size < 0 || (uint64_t)st.st_size > LIMIT_OBJECT_BYTES)
        return profd_error_set(e, PROFD_TOO_LARGE, "an executable may have at most %llu bytes; this file has %" PRId64,
                               LIMIT_OBJECT_BYTES, (int64_t)st.st_size);
    *size = (uint64_t)st.st_size;
    return PROFD_OK;
}

enum profd_status elf_file_read(const struct elf_file *f, uint64_t offset, void *out, uint64_t size,
                                struct profd_error *e)
{
    if (offset > f->size || size > f->size - offset)
        return profd_error_set(e, PROFD_MALFORMED,
                               "ELF data must lie inside the file of %" PRIu64 " bytes: %" PRIu64
                               " bytes wanted at %" PRIu64,
                               f->size, size, offset);
    uint8_t *p = out;
    for (uint64_t done = 0; done < size;) {
        ssize_t got = pread(f->fd, p + done, (size_t)(size - done), (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return profd_error_set(e, PROFD_IO, "reading the executable failed at byte %" PRIu64 ": %s", offset + done,
                                   got < 0 ? "input/output error" : "the file became shorter");
        done += (uint64_t)got;
    }
    return PROFD_OK;
}

enum profd_status elf_file_load(const struct elf_file *f, const struct elf_section *s, struct arena *a, uint8_t **out,
                                struct profd_error *e)
{
    if (s->type == SHT_NULL || s->type == SHT_NOBITS || s->flags & SHF_COMPRESSED)
        return profd_error_set(e, PROFD_MALFORMED,
                               "section %s has no plain bytes (type %" PRIu32 ", flags 0x%" PRIx64 ")",
                               elf_file_section_name(f, s), s->type, s->flags);
    if (s->offset > f->size || s->size > f->size - s->offset)
        return profd_error_set(e, PROFD_MALFORMED,
                               "section %s must lie inside the file of %" PRIu64 " bytes: %" PRIu64
                               " bytes at %" PRIu64,
                               elf_file_section_name(f, s), f->size, s->size, s->offset);
    uint8_t *p = arena_take(a, (size_t)s->size + 1);
    if (p == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for section %s of %" PRIu64 " bytes",
                               elf_file_section_name(f, s), s->size);
    enum profd_status status = elf_file_read(f, s->offset, p, s->size, e);
    if (status != PROFD_OK)
        return status;
    p[s->size] = 0;
    *out = p;
    return PROFD_OK;
}

static void decode_section(const struct elf_file *f, const uint8_t *p, struct elf_section *s)
{
    bool wide = f->bits == 64;
    s->name = elf_u32(f, p);
    s->type = elf_u32(f, p + 4);
    s->flags = elf_word(f, p + 8);
    s->address = elf_word(f, p + (wide ? 16 : 12));
    s->offset = elf_word(f, p + (wide ? 24 : 16));
    s->size = elf_word(f, p + (wide ? 32 : 20));
    s->link = elf_u32(f, p + (wide ? 40 : 24));
    s->info = elf_u32(f, p + (wide ? 44 : 28));
    s->align = elf_word(f, p + (wide ? 48 : 32));
    s->entry = elf_word(f, p + (wide ? 56 : 36));
}

static void decode_segment(const struct elf_file *f, const uint8_t *p, struct elf_segment *s)
{
    bool wide = f->bits == 64;
    s->type = elf_u32(f, p);
    s->flags = elf_u32(f, p + (wide ? 4 : 24));
    s->offset = elf_word(f, p + (wide ? 8 : 4));
    s->address = elf_word(f, p + (wide ? 16 : 8));
    s->file_size = elf_word(f, p + (wide ? 32 : 16));
    s->memory_size = elf_word(f, p + (wide ? 40 : 20));
    s->align = elf_word(f, p + (wide ? 48 : 28));
}

/* The header's fields that the tables need. */
struct tables {
    uint64_t segments, sections;
    uint32_t segment_count, segment_size, section_count, section_size, names;
};

static enum profd_status read_table(const struct elf_file *f, const char *what, uint64_t offset, uint32_t count,
                                    uint32_t size, uint32_t want, struct arena *a, uint8_t **out, struct profd_error *e)
{
    if (size != want)
        return profd_error_set(e, PROFD_MALFORMED, "an ELF %s header must have %" PRIu32 " bytes, not %" PRIu32, what,
                               want, size);
    if (count > LIMIT_SECTIONS)
        return profd_error_set(e, PROFD_LIMIT, "an executable may have at most %u %s headers; this one has %" PRIu32,
                               LIMIT_SECTIONS, what, count);
    uint8_t *p = arena_take_array(a, count, size);
    if (p == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " %s headers", count, what);
    enum profd_status status = elf_file_read(f, offset, p, (uint64_t)count * size, e);
    if (status != PROFD_OK)
        return profd_error_wrap(e, status, "%s headers", what);
    *out = p;
    return PROFD_OK;
}

static enum profd_status read_segments(struct elf_file *f, const struct tables *t, struct arena *a,
                                       struct profd_error *e)
{
    if (t->segment_count == 0)
        return PROFD_OK;
    uint8_t *raw;
    uint32_t want = f->bits == 64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    enum profd_status status =
        read_table(f, "program", t->segments, t->segment_count, t->segment_size, want, a, &raw, e);
    if (status != PROFD_OK)
        return status;
    f->segments = ARENA_ARRAY(a, t->segment_count, struct elf_segment);
    if (f->segments == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " program headers", t->segment_count);
    for (uint32_t i = 0; i < t->segment_count; i++)
        decode_segment(f, raw + (size_t)i * want, &f->segments[i]);
    f->segment_count = t->segment_count;
    return PROFD_OK;
}

/* Counts that do not fit into the header stand in section 0. */
static enum profd_status read_extended(const struct elf_file *f, struct tables *t, uint32_t want, struct profd_error *e)
{
    uint8_t raw[sizeof(Elf64_Shdr)];
    struct elf_section first;
    enum profd_status status = elf_file_read(f, t->sections, raw, want, e);
    if (status != PROFD_OK)
        return profd_error_wrap(e, status, "section headers");
    decode_section(f, raw, &first);
    if (t->section_count == 0) {
        if (first.size > UINT32_MAX)
            return profd_error_set(e, PROFD_LIMIT,
                                   "an executable may have at most %u section headers; this one has %" PRIu64,
                                   LIMIT_SECTIONS, first.size);
        t->section_count = (uint32_t)first.size;
    }
    if (t->names == SHN_XINDEX)
        t->names = first.link;
    if (t->segment_count == PN_XNUM)
        t->segment_count = first.info;
    return PROFD_OK;
}

static enum profd_status read_sections(struct elf_file *f, struct tables *t, struct arena *a, struct profd_error *e)
{
    if (t->section_count == 0)
        return PROFD_OK;
    uint8_t *raw;
    uint32_t want = f->bits == 64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    enum profd_status status =
        read_table(f, "section", t->sections, t->section_count, t->section_size, want, a, &raw, e);
    if (status != PROFD_OK)
        return status;
    f->sections = ARENA_ARRAY(a, t->section_count, struct elf_section);
    if (f->sections == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " section headers", t->section_count);
    for (uint32_t i = 0; i < t->section_count; i++)
        decode_section(f, raw + (size_t)i * want, &f->sections[i]);
    f->section_count = t->section_count;
    if (t->names == SHN_UNDEF)
        return PROFD_OK;
    if (t->names >= f->section_count || f->sections[t->names].type != SHT_STRTAB)
        return profd_error_set(e, PROFD_MALFORMED,
                               "the section of section names must be one of %" PRIu32
                               " and a string table, not number %" PRIu32,
                               f->section_count, t->names);
    const struct elf_section *s = &f->sections[t->names];
    uint8_t *names;
    status = elf_file_load(f, s, a, &names, e);
    if (status != PROFD_OK)
        return status;
    f->section_names = (char *)names;
    f->section_names_size = s->size;
    return PROFD_OK;
}

static enum profd_status read_header(struct elf_file *f, struct tables *t, struct profd_error *e)
{
    uint8_t h[sizeof(Elf64_Ehdr)] = {0};
    if (f->size < sizeof(Elf32_Ehdr))
        return profd_error_set(e, PROFD_MALFORMED, "an ELF file has at least %zu bytes, this one %" PRIu64,
                               sizeof(Elf32_Ehdr), f->size);
    enum profd_status status = elf_file_read(f, 0, h, f->size < sizeof h ? f->size : sizeof h, e);
    if (status != PROFD_OK)
        return status;
    if (memcmp(h, ELFMAG, SELFMAG) != 0)
        return profd_error_set(e, PROFD_MALFORMED,
                               "an executable must be an ELF file; this one begins with %02x %02x %02x %02x", h[0],
                               h[1], h[2], h[3]);
    if ((h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64) ||
        (h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB) || h[EI_VERSION] != EV_CURRENT)
        return profd_error_set(e, PROFD_MALFORMED,
                               "ELF class, byte order and version must be 1–2, 1–2 and 1, not %u, %u and %u",
                               h[EI_CLASS], h[EI_DATA], h[EI_VERSION]);
    bool wide = h[EI_CLASS] == ELFCLASS64;
    if (wide && f->size < sizeof(Elf64_Ehdr))
        return profd_error_set(e, PROFD_MALFORMED, "a 64-bit ELF file has at least %zu bytes, this one %" PRIu64,
                               sizeof(Elf64_Ehdr), f->size);
    f->bits = wide ? 64 : 32;
    f->big_endian = h[EI_DATA] == ELFDATA2MSB;
    f->type = elf_u16(f, h + 16);
    f->machine = elf_u16(f, h + 18);
    if (f->type != ET_EXEC && f->type != ET_DYN)
        return profd_error_set(e, PROFD_MALFORMED,
                               "an ELF file must be an executable (2) or a shared object (3); this one has type %u",
                               f->type);
    t->segments = elf_word(f, h + (wide ? 32 : 28));
    t->sections = elf_word(f, h + (wide ? 40 : 32));
    const uint8_t *rest = h + (wide ? 54 : 42);
    t->segment_size = elf_u16(f, rest);
    t->segment_count = elf_u16(f, rest + 2);
    t->section_size = elf_u16(f, rest + 4);
    t->section_count = elf_u16(f, rest + 6);
    t->names = elf_u16(f, rest + 8);
    return PROFD_OK;
}

enum profd_status elf_file_open(int fd, struct arena *a, struct elf_file **out, struct profd_error *e)
{
    uint64_t size;
    enum profd_status status = elf_file_check(fd, &size, e);
    if (status != PROFD_OK)
        return status;
    struct elf_file *f = ARENA_NEW(a, struct elf_file);
    if (f == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    static char none[1];
    *f = (struct elf_file){.fd = fd, .size = size, .section_names = none};
    struct tables t = {0};
    status = read_header(f, &t, e);
    if (status != PROFD_OK)
        return status;
    uint32_t want = f->bits == 64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (t.sections == 0)
        t.section_count = 0;
    else if (t.section_size == want && (t.section_count == 0 || t.names == SHN_XINDEX || t.segment_count == PN_XNUM))
        status = read_extended(f, &t, want, e);
    if (status == PROFD_OK)
        status = read_segments(f, &t, a, e);
    if (status == PROFD_OK)
        status = read_sections(f, &t, a, e);
    if (status == PROFD_OK)
        *out = f;
    return status;
}
