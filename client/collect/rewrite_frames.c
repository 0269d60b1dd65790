#include "client/collect/rewrite_frames.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>

#include "client/collect/raw.h"

#if defined __x86_64__

#define ENCODED_TABLE 0x3b   /* signed 32 bits, above the table */
#define ENCODED_COUNT 0x03   /* unsigned 32 bits */
#define ENCODED_POINTER 0x1b /* signed 32 bits, above the field: the only one that gas writes */
#define FRAME_LEAST 12u      /* bytes behind its length: the way to the common entry, function, size */

/* .eh_frame_hdr */
struct unwind_table {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    int32_t pointer;
    uint32_t count;
    struct unwind_row {
        int32_t function, frame;
    } rows[];
};

bool rewrite_image_fill(const ElfW(Phdr) * headers, unsigned count, uintptr_t bias, struct rewrite_image *out)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type != PT_LOAD) {
            continue;
        }
        uintptr_t from = headers[i].p_vaddr + bias, to = from + headers[i].p_memsz;
        low = from < low ? from : low;
        high = to > high ? to : high;
    }
    if (high <= low || high - low > UINT32_MAX) {
        return false;
    }
    *out = (struct rewrite_image){headers, count, bias, low, high};
    return true;
}

bool rewrite_image_has(const struct rewrite_image *image, uintptr_t at, uint64_t size)
{
    return at >= image->low && at < image->high && size <= image->high - at;
}

bool rewrite_image_has_code(const struct rewrite_image *image, uintptr_t at, uint64_t size)
{
    for (unsigned i = 0; i < image->count; i++) {
        const ElfW(Phdr) *p = &image->headers[i];
        uintptr_t low = p->p_vaddr + image->bias;
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && at >= low && at - low < p->p_filesz &&
            size <= p->p_filesz - (at - low)) {
            return true;
        }
    }
    return false;
}

static uint32_t read32(uintptr_t at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uintptr_t relative32(uintptr_t at)
{
    return at + (uintptr_t)(intptr_t)(int32_t)read32(at);
}

static void leb_skip(const uint8_t **at, const uint8_t *end)
{
    while (*at < end && *(*at)++ & 0x80) {
    }
}

/* Whether the pointers of frames with this common entry are encoded as is known here. */
static bool common_read(const struct rewrite_image *image, uintptr_t common)
{
    if (!rewrite_image_has(image, common, 12) || read32(common) < 8 ||
        !rewrite_image_has(image, common + 4, read32(common)) || read32(common + 4) != 0) {
        return false;
    }
    const uint8_t *at = (const uint8_t *)common + 8, *end = (const uint8_t *)common + 4 + read32(common);
    uint8_t version = *at++;
    const uint8_t *augmentation = at;
    while (at < end && *at) {
        at++;
    }
    if (at++ >= end || augmentation[0] != 'z' || (version != 1 && version != 3)) {
        return false;
    }
    leb_skip(&at, end);
    leb_skip(&at, end);
    if (version == 1) {
        at++;
    } else {
        leb_skip(&at, end);
    }
    leb_skip(&at, end);
    for (const uint8_t *letter = augmentation + 1; *letter && at < end; letter++) {
        if (*letter == 'R') {
            return *at == ENCODED_POINTER;
        }
        if (*letter == 'P') { /* the encoding and a pointer: of 4 bytes, or of 8 */
            uint8_t size = *at & 0x0f;
            at += 1 + (size == 0x03 || size == 0x0b ? 4 : size == 0x00 || size == 0x04 || size == 0x0c ? 8 : end - at);
        } else if (*letter == 'L') {
            at++;
        } else if (*letter != 'S' && *letter != 'B') {
            return false;
        }
    }
    return false;
}

/* The function of a frame. False: unknown, or not code. */
static bool frame_read(struct rewrite_frames *f, uintptr_t frame, uintptr_t *begin, uint32_t *size)
{
    uint32_t length = rewrite_image_has(f->image, frame, 4 + FRAME_LEAST) ? read32(frame) : 0;
    if (length < FRAME_LEAST || length > UINT32_MAX - 16 || read32(frame + 4) == 0) {
        return false;
    }
    uintptr_t common = frame + 4 - read32(frame + 4);
    if (common != f->common) {
        f->common = common;
        f->known = common_read(f->image, common);
    }
    if (!f->known || !rewrite_image_has_code(f->image, relative32(frame + 8), read32(frame + 12))) {
        return false;
    }
    *begin = relative32(frame + 8);
    *size = read32(frame + 12);
    return *size > 0;
}

bool rewrite_frames_next(struct rewrite_frames *f, uintptr_t *begin, uint32_t *size)
{
    while (f->table && f->next < f->count) {
        const struct unwind_table *t = (const void *)f->table;
        const struct unwind_row *row = &t->rows[f->next++];
        uintptr_t function = f->table + (uintptr_t)(intptr_t)row->function;
        if (frame_read(f, f->table + (uintptr_t)(intptr_t)row->frame, begin, size) && *begin == function) {
            return true;
        }
    }
    while (!f->table && f->end - f->frames >= 4) {
        uintptr_t frame = f->frames;
        uint32_t length = read32(frame);
        if (length == 0 || length > f->end - frame - 4) {
            break; /* the end, or the form for more than 4 GiB */
        }
        f->frames += 4 + length;
        if (frame_read(f, frame, begin, size)) {
            return true;
        }
    }
    return false;
}

static bool table_find(const struct rewrite_image *image, struct rewrite_frames *out)
{
    for (unsigned i = 0; i < image->count; i++) {
        uintptr_t at = image->headers[i].p_vaddr + image->bias;
        const struct unwind_table *t = (const void *)at;
        if (image->headers[i].p_type != PT_GNU_EH_FRAME || !rewrite_image_has(image, at, sizeof *t) ||
            t->version != 1 || t->count_encoding != ENCODED_COUNT || t->table_encoding != ENCODED_TABLE ||
            t->count > (image->high - at - sizeof *t) / sizeof t->rows[0]) {
            continue;
        }
        *out = (struct rewrite_frames){.image = image, .table = at, .count = t->count};
        return true;
    }
    return false;
}

static bool file_read(long fd, uint64_t at, void *to, size_t n)
{
    return raw_call(SYS_pread64, fd, to, n, at) == (long)n;
}

/* .eh_frame among the sections of the program's file. */
static bool section_find(long fd, ElfW(Shdr) * out)
{
    static const char wanted[] = ".eh_frame";
    ElfW(Ehdr) h;
    ElfW(Shdr) names;
    char name[sizeof wanted];
    if (!file_read(fd, 0, &h, sizeof h) || h.e_shentsize != sizeof *out ||
        !file_read(fd, h.e_shoff + (uint64_t)h.e_shstrndx * sizeof names, &names, sizeof names)) {
        return false;
    }
    for (unsigned i = 1; i < h.e_shnum; i++) {
        if (!file_read(fd, h.e_shoff + (uint64_t)i * sizeof *out, out, sizeof *out)) {
            return false;
        }
        if (out->sh_flags & SHF_ALLOC && file_read(fd, names.sh_offset + out->sh_name, name, sizeof name) &&
            name[sizeof name - 1] == '\0' && raw_after(name, wanted)) {
            return true;
        }
    }
    return false;
}

bool rewrite_frames_find(const struct rewrite_image *image, bool program, struct rewrite_frames *out)
{
    static const char exe[] = "/proc/self/exe";
    ElfW(Shdr) section;
    if (table_find(image, out)) {
        return true;
    }
    long fd = program ? raw_call(SYS_openat, AT_FDCWD, exe, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return false;
    }
    bool found = section_find(fd, &section);
    raw_call(SYS_close, fd, 0, 0, 0);
    uintptr_t at = found ? section.sh_addr + image->bias : 0;
    if (!found || !rewrite_image_has(image, at, section.sh_size)) {
        return false;
    }
    *out = (struct rewrite_frames){.image = image,
                                   .frames = at,
                                   .end = at + section.sh_size,
                                   .count = (uint32_t)(section.sh_size / (4 + FRAME_LEAST))};
    return true;
}

#endif
