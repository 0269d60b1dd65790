#include "proto/utf8.h"

#include <string.h>

#include "proto/sort.h"

bool utf8_valid(const uint8_t *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t length = utf8_length(text + at, n - at);
        if (length == 0 || text[at] == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

uint32_t utf8_decode(const uint8_t *text, size_t length)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = text[0] & first_bits[length];

    for (size_t i = 1; i < length; i++) {
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code;
}

bool utf8_unseen(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x0600, 0x0605},
        {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},
        {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };
    uint32_t i;
    SORT_SEARCH(i, 0, sizeof ranges / sizeof *ranges, code > ranges[i].last);
    return (code < 0x20 || code >= 0x7f) && i < sizeof ranges / sizeof *ranges && code >= ranges[i].first;
}

size_t utf8_escape(const uint8_t *text, size_t n, char out[UTF8_ESCAPE_SIZE], size_t *taken)
{
    static const char digits[] = "0123456789abcdef";
    const size_t length = utf8_length(text, n);
    const uint32_t code = length ? utf8_decode(text, length) : text[0];
    size_t at = 0;

    *taken = length ? length : 1;
    if (length && !utf8_unseen(code)) {
        memcpy(out, text, length);
        return length;
    }
    out[at++] = '\\';
    if (length <= 1) {
        out[at++] = 'x';
    } else {
        out[at++] = 'u';
        out[at++] = '{';
        for (unsigned shift = code > 0xffff ? 16 : 12; shift > 4; shift -= 4) {
            out[at++] = digits[code >> shift & 15];
        }
    }
    out[at++] = digits[code >> 4 & 15];
    out[at++] = digits[code & 15];
    if (length > 1) {
        out[at++] = '}';
    }
    return at;
}

void utf8_scrub(char *text)
{
    size_t n = strlen(text);

    for (size_t at = 0; at < n;) {
        const uint8_t *t = (const uint8_t *)text + at;
        size_t length = utf8_length(t, n - at);

        if (!length) {
            length = 1;
        } else if (!utf8_unseen(utf8_decode(t, length))) {
            at += length;
            continue;
        }
        memset(text + at, '?', length);
        at += length;
    }
}
