#include "client/collect/leave_out.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "client/collect/raw.h"

#define FILE_MAX (1u << 20)

static const char *text; /* never freed: objects may be loaded later */
static uint32_t text_size;

void leave_out_read(const char *path)
{
    long fd = path && *path ? raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0) : -1, got = 0;
    if (fd < 0) {
        return;
    }
    long at = raw_call6(SYS_mmap, 0, FILE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t size = 0;
    if (at > 0 || at <= -4096) {
        while (size < FILE_MAX && (got = raw_call(SYS_read, fd, at + size, FILE_MAX - size, 0)) > 0) {
            size += (uint32_t)got;
        }
        bool whole = got == 0 && size < FILE_MAX;
        text = whole ? (const char *)at : NULL;
        text_size = whole ? size : 0;
        if (!whole) {
            raw_call(SYS_munmap, at, FILE_MAX, 0, 0);
        }
    }
    raw_call(SYS_close, fd, 0, 0, 0);
}

/* Value of a hexadecimal digit, or -1. */
static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Compares a build-id with the text at *at, which is moved behind it and the space. valid: a build-id stands there. */
static bool take_id(const char **at, const char *end, const uint8_t *id, unsigned id_size, bool *valid)
{
    unsigned n = 0;
    bool same = true;
    const char *p = *at;
    for (; end - p >= 2 && digit(p[0]) >= 0 && digit(p[1]) >= 0; p += 2, n++) {
        same = same && n < id_size && id[n] == (uint8_t)(digit(p[0]) * 16 + digit(p[1]));
    }
    *valid = n > 0 && p < end && *p == ' ';
    *at = p + *valid;
    return same && n == id_size;
}

/* "0x401230 ", or without "0x". False: there is no number. */
static bool take_number(const char **at, const char *end, uint64_t *out)
{
    const char *p = end - *at > 2 && (*at)[0] == '0' && (*at)[1] == 'x' ? *at + 2 : *at, *first = p;
    uint64_t value = 0;
    for (; p < end && digit(*p) >= 0 && p - first < 16; p++) {
        value = value << 4 | (unsigned)digit(*p);
    }
    if (p == first || p == end || *p != ' ') {
        return false;
    }
    *at = p + 1;
    *out = value;
    return true;
}

void leave_out_each(const uint8_t *id, unsigned id_size, void (*each)(void *context, uint64_t at, uint64_t size),
                    void *context)
{
    for (const char *p = text, *end = text + text_size; text && p < end;) {
        const char *stop = p;
        uint64_t address, size;
        bool valid = true;
        while (stop < end && *stop != '\n') {
            stop++;
        }
        if (*p != '#' && stop > p) {
            bool same = take_id(&p, stop, id, id_size, &valid);
            if (!valid || !take_number(&p, stop, &address) || !take_number(&p, stop, &size)) {
                return;
            }
            if (same) {
                each(context, address, size);
            }
        }
        p = stop + 1;
    }
}
