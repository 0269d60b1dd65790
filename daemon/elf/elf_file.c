#include "elf/elf_file.h"

#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/sort.h"
#include "proto/limits.h"
#include "proto/whole.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_ORDER ELFDATA2LSB
#else
#define HOST_ORDER ELFDATA2MSB
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

enum profd_status elf_file_read(const struct elf_file *f, uint64_t offset, void *out, uint64_t size,
                                struct profd_error *e)
{
    FAIL_IF(!elf_file_holds(f, offset, size), e, PROFD_MALFORMED,
            "ELF data must lie inside the file of %" PRIu64 " bytes: %" PRIu64 " bytes wanted at %" PRIu64, f->size,
            size, offset);
    const ssize_t got = whole_read(f->fd, out, (size_t)size, offset);
    return got == (ssize_t)size
               ? PROFD_OK
               : profd_error_set(e, PROFD_IO, "reading %" PRIu64 " bytes of the executable at %" PRIu64 " failed: %s",
                                 size, offset, got < 0 ? "input/output error" : "the file became shorter");
}

/* Checks that the section has bytes, and that they are inside the file. */
static enum profd_status check_section(const struct elf_file *f, const GElf_Shdr *s, struct profd_error *e)
{
    FAIL_IF(s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED, e, PROFD_MALFORMED,
            "section %s has no plain bytes (type %" PRIu32 ", flags 0x%" PRIx64 ")", elf_file_section_name(f, s),
            s->sh_type, s->sh_flags);
    FAIL_IF(!elf_file_holds(f, s->sh_offset, s->sh_size), e, PROFD_MALFORMED,
            "section %s must lie inside the file of %" PRIu64 " bytes: %" PRIu64 " bytes at %" PRIu64,
            elf_file_section_name(f, s), f->size, s->sh_size, s->sh_offset);
    return PROFD_OK;
}

enum profd_status elf_file_load(const struct elf_file *f, const GElf_Shdr *s, struct arena *a, uint8_t **out,
                                struct profd_error *e)
{
    TRY(check_section(f, s, e));
    uint8_t *p = arena_take(a, (size_t)s->sh_size + 1);
    FAIL_IF(p == NULL, e, PROFD_NO_MEMORY, "out of memory for section %s of %" PRIu64 " bytes",
            elf_file_section_name(f, s), s->sh_size);
    TRY(elf_file_read(f, s->sh_offset, p, s->sh_size, e));
    p[s->sh_size] = 0;
    *out = p;
    return PROFD_OK;
}

enum profd_status elf_file_data(const struct elf_file *f, const GElf_Shdr *s, Elf_Data **out, struct profd_error *e)
{
    TRY(check_section(f, s, e));
    errno = 0;
    Elf_Data *data = elf_getdata(elf_getscn(f->elf, (size_t)(s - f->sections)), NULL);
    if (data == NULL || data->d_size != s->sh_size) {
        return errno == ENOMEM
                   ? profd_error_set(e, PROFD_NO_MEMORY, "out of memory for section %s of %" PRIu64 " bytes",
                                     elf_file_section_name(f, s), s->sh_size)
                   : profd_error_set(e, PROFD_MALFORMED,
                                     "section %s of %" PRIu64 " bytes, type %" PRIu32
                                     ", cannot be read: the file became shorter, or these are no whole "
                                     "entries",
                                     elf_file_section_name(f, s), s->sh_size, s->sh_type);
    }
    *out = data;
    return PROFD_OK;
}

enum profd_status elf_file_bytes(const struct elf_file *f, const GElf_Shdr *s, const uint8_t **out,
                                 struct profd_error *e)
{
    Elf_Data *data;
    TRY(elf_file_data(f, s, &data, e));
    *out = data->d_size > 0 ? data->d_buf : (const uint8_t *)"";
    return PROFD_OK;
}

static enum profd_status check_entry(const char *what, uint64_t size, uint64_t want, struct profd_error *e)
{
    return size == want
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED, "an ELF %s header must have %" PRIu64 " bytes, not %" PRIu64, what,
                                 want, size);
}

static enum profd_status check_count(const char *what, size_t count, struct profd_error *e)
{
    return count <= LIMIT_SECTIONS
               ? PROFD_OK
               : profd_error_set(e, PROFD_LIMIT, "an executable may have at most %u %s headers; this one has %zu",
                                 LIMIT_SECTIONS, what, count);
}

static enum profd_status table_outside(const struct elf_file *f, const char *what, uint64_t count, uint64_t offset,
                                       struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED,
                           "%s headers must lie inside the file of %" PRIu64 " bytes: %" PRIu64 " at %" PRIu64, what,
                           f->size, count, offset);
}

/* libelf silently shortens a table that does not fit into the file. Here the file is refused. */
static enum profd_status read_segments(struct elf_file *f, const GElf_Ehdr *h, struct arena *a, struct profd_error *e)
{
    size_t count = 0;
    const uint64_t wanted = h->e_phnum == PN_XNUM && f->section_count > 0 ? f->sections[0].sh_info : h->e_phnum;
    if (wanted == 0) {
        return PROFD_OK;
    }
    TRY(check_entry("program", h->e_phentsize, gelf_fsize(f->elf, ELF_T_PHDR, 1, EV_CURRENT), e));
    if (elf_getphdrnum(f->elf, &count) != 0 || count != wanted) {
        return table_outside(f, "program", wanted, h->e_phoff, e);
    }
    TRY(check_count("program", count, e));
    f->segments = ARENA_ARRAY(a, count, GElf_Phdr);
    FAIL_IF(f->segments == NULL, e, PROFD_NO_MEMORY, "out of memory for %zu program headers", count);
    for (size_t i = 0; i < count; i++) {
        if (gelf_getphdr(f->elf, (int)i, &f->segments[i]) == NULL) {
            return table_outside(f, "program", count, h->e_phoff, e);
        }
    }
    f->segment_count = (uint32_t)count;
    return PROFD_OK;
}

/* Reads the section headers, and the names of sections. */
static enum profd_status read_sections(struct elf_file *f, const GElf_Ehdr *h, struct arena *a, struct profd_error *e)
{
    size_t count = 0, names = SHN_UNDEF;
    if (h->e_shoff == 0) {
        return PROFD_OK;
    }
    TRY(check_entry("section", h->e_shentsize, gelf_fsize(f->elf, ELF_T_SHDR, 1, EV_CURRENT), e));
    /* If the header states 0, section 0 states the number. */
    if (elf_getshdrnum(f->elf, &count) != 0 || count == 0) {
        return table_outside(f, "section", h->e_shnum, h->e_shoff, e);
    }
    TRY(check_count("section", count, e));
    f->sections = ARENA_ARRAY(a, count, GElf_Shdr);
    FAIL_IF(f->sections == NULL, e, PROFD_NO_MEMORY, "out of memory for %zu section headers", count);
    for (size_t i = 0; i < count; i++) {
        if (gelf_getshdr(elf_getscn(f->elf, i), &f->sections[i]) == NULL) {
            return table_outside(f, "section", count, h->e_shoff, e);
        }
    }
    f->section_count = (uint32_t)count;

    if (elf_getshdrstrndx(f->elf, &names) != 0 || names == SHN_UNDEF) {
        return PROFD_OK;
    }
    FAIL_IF(names >= count || f->sections[names].sh_type != SHT_STRTAB, e, PROFD_MALFORMED,
            "the section of section names must be one of %" PRIu32 " and a string table, not number %zu",
            f->section_count, names);
    FAIL_IF(f->sections[names].sh_size > LIMIT_SECTION_NAMES, e, PROFD_LIMIT,
            "the names of sections may have at most %u bytes, not %" PRIu64, LIMIT_SECTION_NAMES,
            f->sections[names].sh_size);
    f->names = names;
    Elf_Data *bytes;
    return elf_file_data(f, &f->sections[names], &bytes, e);
}

/* Where the header states 0 sections, section 0 states their number, and libelf takes memory for as many: the number is
 * checked before. A table that does not fit into the file is refused later. */
static enum profd_status check_section_zero(const struct elf_file *f, struct profd_error *e)
{
    union {
        Elf64_Ehdr wide;
        Elf32_Ehdr narrow;
    } h = {.wide = {.e_shnum = 0}};
    union {
        Elf64_Shdr wide;
        Elf32_Shdr narrow;
    } s;
    TRY(elf_file_read(f, 0, &h, sizeof h.narrow, e));
    const bool wide = h.narrow.e_ident[EI_CLASS] == ELFCLASS64, swapped = h.narrow.e_ident[EI_DATA] != HOST_ORDER;
    const size_t entry = wide ? sizeof s.wide : sizeof s.narrow;
    if (wide) {
        TRY(elf_file_read(f, 0, &h, sizeof h.wide, e));
    }
    uint64_t at = wide ? h.wide.e_shoff : h.narrow.e_shoff;
    at = !swapped ? at : wide ? bswap_64(at) : bswap_32((uint32_t)at);
    if ((wide ? h.wide.e_shnum : h.narrow.e_shnum) != 0 || !elf_file_holds(f, at, entry)) {
        return PROFD_OK;
    }
    TRY(elf_file_read(f, at, &s, entry, e));
    uint64_t n = wide ? s.wide.sh_size : s.narrow.sh_size;
    n = !swapped ? n : wide ? bswap_64(n) : bswap_32((uint32_t)n);
    return n > (f->size - at) / entry ? PROFD_OK : check_count("section", n, e);
}

/* Checks the first bytes, with sentences that libelf does not have; then libelf reads the headers. */
static enum profd_status read_headers(struct elf_file *f, struct arena *a, struct profd_error *e)
{
    uint8_t first[EI_NIDENT] = {0};
    const size_t n = f->size < sizeof first ? (size_t)f->size : sizeof first;
    TRY(elf_file_read(f, 0, first, n, e));
    if (memcmp(first, ELFMAG, SELFMAG) != 0) {
        bool text = n > 0;
        for (size_t i = 0; i < n && i < SELFMAG; i++) {
            text = text && first[i] >= ' ' && first[i] < 0x7f;
        }
        return n == 0 ? profd_error_set(e, PROFD_MALFORMED, "not an executable or library (ELF): the file is empty")
               : text
                   ? profd_error_set(e, PROFD_MALFORMED, "not an executable or library (ELF): it begins with \"%.4s\"",
                                     (const char *)first)
                   : profd_error_set(e, PROFD_MALFORMED,
                                     "not an executable or library (ELF): it begins with the bytes %02x %02x %02x %02x",
                                     first[0], first[1], first[2], first[3]);
    }
    FAIL_IF(f->size < sizeof(Elf32_Ehdr), e, PROFD_MALFORMED, "an ELF file has at least %zu bytes, this one %" PRIu64,
            sizeof(Elf32_Ehdr), f->size);
    if ((first[EI_CLASS] != ELFCLASS32 && first[EI_CLASS] != ELFCLASS64) ||
        (first[EI_DATA] != ELFDATA2LSB && first[EI_DATA] != ELFDATA2MSB) || first[EI_VERSION] != EV_CURRENT) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "ELF class, byte order and version must be 1–2, 1–2 and 1, not %u, %u and %u",
                               first[EI_CLASS], first[EI_DATA], first[EI_VERSION]);
    }
    FAIL_IF(first[EI_CLASS] == ELFCLASS64 && f->size < sizeof(Elf64_Ehdr), e, PROFD_MALFORMED,
            "a 64-bit ELF file has at least %zu bytes, this one %" PRIu64, sizeof(Elf64_Ehdr), f->size);
    TRY(check_section_zero(f, e));

    GElf_Ehdr h;
    if (elf_version(EV_CURRENT) == EV_NONE || (f->elf = elf_begin(f->fd, ELF_C_READ, NULL)) == NULL) {
        return profd_error_set(e, PROFD_MALFORMED, "libelf cannot read the file's headers (error %d)", elf_errno());
    }
    FAIL_IF(elf_kind(f->elf) != ELF_K_ELF || gelf_getehdr(f->elf, &h) == NULL, e, PROFD_MALFORMED,
            "libelf cannot read the file's header (error %d)", elf_errno());
    f->bits = h.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    f->big_endian = h.e_ident[EI_DATA] == ELFDATA2MSB;
    f->type = h.e_type;
    f->machine = h.e_machine;
    f->entry = h.e_entry;
    FAIL_IF(f->type != ET_EXEC && f->type != ET_DYN, e, PROFD_MALFORMED,
            "an ELF file must be an executable (2) or a shared object (3); this one has type %u", f->type);
    TRY(read_sections(f, &h, a, e));
    return read_segments(f, &h, a, e);
}

enum profd_status elf_file_open(int fd, struct arena *a, struct elf_file **out, struct profd_error *e)
{
    /* The descriptor is checked before anything is read from it, so a pipe or a device cannot block. */
    int flags = fcntl(fd, F_GETFL);
    FAIL_IF(flags < 0, e, PROFD_REFUSED, "an executable must be an open descriptor; %d is not", fd);
    FAIL_IF(flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY, e, PROFD_REFUSED,
            "an executable's descriptor must be readable; this one was opened with %s",
            flags & O_PATH ? "O_PATH" : "O_WRONLY");
    struct stat st;
    /* ours: elf_fstat.c */
    FAIL_IF(fstat(fd, &st) != 0, e, PROFD_REFUSED, "an executable must be a regular file; fstat failed with errno %d",
            errno);
    if (!S_ISREG(st.st_mode)) {
        const mode_t m = st.st_mode;
        return profd_error_set(e, PROFD_REFUSED, "an executable must be a regular file or a sealed memfd, not %s",
                               S_ISDIR(m)                 ? "a directory"
                               : S_ISFIFO(m)              ? "a pipe"
                               : S_ISSOCK(m)              ? "a socket"
                               : S_ISCHR(m) || S_ISBLK(m) ? "a device"
                                                          : "no file");
    }
    /* Only files in memory support F_GET_SEALS, and among these only memfds and deleted files have no link. */
    int seals = fcntl(fd, F_GET_SEALS);
    FAIL_IF(seals >= 0 && st.st_nlink == 0 && (seals & SEALS) != SEALS, e, PROFD_REFUSED,
            "a memfd must be sealed against shrinking, growing and writing; its seals are 0x%x", (unsigned)seals);
    FAIL_IF(st.st_size < 0 || (uint64_t)st.st_size > LIMIT_OBJECT_BYTES, e, PROFD_TOO_LARGE,
            "an executable may have at most %llu bytes; this file has %" PRId64, LIMIT_OBJECT_BYTES,
            (int64_t)st.st_size);

    struct elf_file *f = ARENA_NEW(a, struct elf_file);
    FAIL_IF(f == NULL, e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    *f = (struct elf_file){.fd = fd, .size = (uint64_t)st.st_size, .names = SHN_UNDEF};
    enum profd_status status = read_headers(f, a, e);
    if (status) {
        elf_file_close(f);
        return status;
    }
    *out = f;
    return PROFD_OK;
}

void elf_file_close(struct elf_file *f)
{
    if (f != NULL) {
        elf_end(f->elf);
    }
}

const char *elf_file_section_name(const struct elf_file *f, const GElf_Shdr *s)
{
    const char *name = f->names != SHN_UNDEF ? elf_strptr(f->elf, f->names, s->sh_name) : NULL;
    return name != NULL ? name : "";
}

const GElf_Shdr *elf_file_find(const struct elf_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED ||
            !elf_file_holds(f, s->sh_offset, s->sh_size)) {
            continue;
        }
        if (strcmp(elf_file_section_name(f, s), name) == 0) {
            return s;
        }
    }
    return NULL;
}

/* Compares by address and section index, which makes the order total. */
struct code_key {
    uint64_t address;
    uint32_t index;
};

static int compare_keys(const void *x, const void *y)
{
    const struct code_key *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->index, b->index);
}

enum profd_status elf_file_code(const struct elf_file *f, struct arena *a, uint32_t **indexes, uint32_t *count,
                                struct profd_error *e)
{
    struct code_key *keys = ARENA_ARRAY(a, (size_t)f->section_count + 1, struct code_key);
    uint32_t *list = ARENA_ARRAY(a, (size_t)f->section_count + 1, uint32_t);
    FAIL_IF(keys == NULL || list == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " sections",
            f->section_count);
    uint32_t n = 0;
    uint64_t left = f->size; /* sections that share bytes would be read repeatedly */
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_PROGBITS && (s->sh_flags & code) == code && !(s->sh_flags & SHF_COMPRESSED) &&
            s->sh_size != 0) {
            FAIL_IF(s->sh_size > left, e, PROFD_MALFORMED,
                    "executable sections must not have more bytes than the file, which has %" PRIu64, f->size);
            left -= s->sh_size;
            keys[n++] = (struct code_key){s->sh_addr, i};
        }
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = keys[i].index;
    }
    *indexes = list;
    *count = n;
    return PROFD_OK;
}
