#include "client/terminal.h"

#include <stdbool.h>
#include <string.h>

/* A whole character that a terminal would obey. */
static bool is_control(const unsigned char *p)
{
    switch (p[0]) {
    case 0xc2: /* C1: U+0080–U+009F */
        return p[1] < 0xa0;
    case 0xd8: /* U+061C */
        return p[1] == 0x9c;
    case 0xe2: /* U+200E, U+200F, U+202A–U+202E; U+2066–U+2069 */
        return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    default:
        return p[0] == 0x7f || (p[0] < 0x20 && p[0] != '\n' && p[0] != '\t');
    }
}

/* Bytes of the character that begins so; 0 where none does. */
static size_t character_size(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* What was held is not UTF-8: a '?' for each byte. */
static size_t held_drop(struct terminal_filter *f, char *out)
{
    size_t n = f->held_count;
    memset(out, '?', n);
    f->held_count = 0;
    return n;
}

size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out)
{
    const unsigned char *in = bytes;
    size_t written = 0;
    if (n == 0) {
        return held_drop(f, out);
    }
    for (size_t i = 0; i < n; i++) {
        if (f->held_count > 0 && (in[i] & 0xc0) != 0x80) {
            written += held_drop(f, out + written);
        }
        f->held[f->held_count++] = in[i];
        size_t size = character_size(f->held[0]);
        if (size == 0) {
            written += held_drop(f, out + written);
        } else if (f->held_count == size) {
            if (is_control(f->held)) {
                out[written++] = '?';
            } else {
                memcpy(out + written, f->held, size);
                written += size;
            }
            f->held_count = 0;
        }
    }
    return written;
}
