#include "profctl/terminal.h"

#include <string.h>

#include "proto/utf8.h"

/* Bytes of the character that begins so; 0 where none does. */
static size_t character_size(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Writes what was held: a whole character, or bytes that are none. */
static size_t held_write(struct terminal_filter *f, char *out)
{
    size_t written = 0, taken;
    if (!f->one_line && f->held_count == 1 && (f->held[0] == '\n' || f->held[0] == '\t')) {
        out[written++] = (char)f->held[0];
        f->held_count = 0;
    } else if (!f->one_line && f->held_count == 1 && f->held[0] == '\f') {
        f->held_count = 0;
    }
    for (size_t at = 0; at < f->held_count; at += taken) {
        char shown[UTF8_ESCAPE_SIZE];
        size_t n = utf8_escape(f->held + at, f->held_count - at, shown, &taken);
        memcpy(out + written, shown, n);
        written += n;
    }
    f->held_count = 0;
    return written;
}

size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out)
{
    const unsigned char *in = bytes;
    size_t written = 0;
    if (n == 0) {
        return held_write(f, out);
    }
    for (size_t i = 0; i < n; i++) {
        if (f->held_count > 0 && (in[i] & 0xc0) != 0x80) {
            written += held_write(f, out + written);
        }
        f->held[f->held_count++] = in[i];
        size_t size = character_size(f->held[0]);
        if (size == 0 || f->held_count == size) {
            written += held_write(f, out + written);
        }
    }
    return written;
}
