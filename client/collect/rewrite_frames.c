#include "client/collect/rewrite_find.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>

#include "client/collect/frame_entry.h"
#include "client/collect/raw.h"

#if defined __x86_64__

#define FRAME_LEAST 16u /* bytes of one */

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

static bool image_has(const struct rewrite_image *image, uintptr_t at, uint64_t size)
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

/* Reads the function of a frame. False: unknown, or not code. */
static bool frame_read(struct rewrite_frames *f, uintptr_t frame, uintptr_t *begin, uint32_t *size)
{
    struct frame_bytes in = {f->image->low, f->image->high};
    struct frame_entry entry;
    struct frame_common common;
    if (!frame_entry_read(in, frame, &entry)) {
        return false;
    }
    if (entry.common != f->common) {
        f->common = entry.common;
        f->known = frame_common_read(in, entry.common, &common);
    }
    if (!f->known || !rewrite_image_has_code(f->image, entry.begin, entry.size)) {
        return false;
    }
    *begin = entry.begin;
    *size = entry.size;
    return true;
}

bool rewrite_frames_next(struct rewrite_frames *f, uintptr_t *begin, uint32_t *size)
{
    while (f->table && f->next < f->count) {
        const struct frame_table *t = (const void *)f->table;
        const struct frame_row *row = &t->rows[f->next++];
        uintptr_t function = f->table + (uintptr_t)(intptr_t)row->function;
        if (frame_read(f, f->table + (uintptr_t)(intptr_t)row->frame, begin, size) && *begin == function) {
            return true;
        }
    }
    while (!f->table && f->end - f->frames >= 4) {
        uintptr_t frame = f->frames;
        uint32_t length;
        raw_copy(&length, (const void *)frame, sizeof length);
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
        const struct frame_table *t = image->headers[i].p_type == PT_GNU_EH_FRAME
                                          ? frame_table_at((struct frame_bytes){image->low, image->high}, at)
                                          : NULL;
        if (!t) {
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

/* Finds .eh_frame among the sections of the program's file. */
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
    if (!found || !image_has(image, at, section.sh_size)) {
        return false;
    }
    *out = (struct rewrite_frames){
        .image = image, .frames = at, .end = at + section.sh_size, .count = (uint32_t)(section.sh_size / FRAME_LEAST)};
    return true;
}

#endif
