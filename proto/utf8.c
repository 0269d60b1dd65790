#include "proto/utf8.h"

#include <string.h>

static bool utf8_continues(uint8_t byte)
{
    return (byte & 0xc0u) == 0x80u;
}

static size_t utf8_length_long(const uint8_t *t, size_t n)
{
    if (t[0] < 0xf0) {
        if (n < 3 || !utf8_continues(t[1]) || !utf8_continues(t[2]))
            return 0;
        if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f))
            return 0;
        return 3;
    }
    if (t[0] > 0xf4 || n < 4 || !utf8_continues(t[1]) || !utf8_continues(t[2]) || !utf8_continues(t[3]))
        return 0;
    if ((t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f))
        return 0;
    return 4;
}

size_t utf8_length(const uint8_t *text, size_t n)
{
    if (n == 0)
        return 0;
    if (text[0] < 0x80)
        return 1;
    if (text[0] < 0xc2)
        return 0;
    if (text[0] < 0xe0)
        return n >= 2 && utf8_continues(text[1]) ? 2 : 0;
    return utf8_length_long(text, n);
}

bool utf8_valid(const uint8_t *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t length = utf8_length(text + at, n - at);
        if (length == 0 || text[at] == 0)
            return false;
        at += length;
    }
    return true;
}

static bool utf8_control(const uint8_t *t, size_t length)
{
    if (length == 1)
        return t[0] < 0x20 || t[0] == 0x7f;
    return length == 2 && t[0] == 0xc2 && t[1] < 0xa0;
}

void utf8_scrub(char *text)
{
    size_t n = strlen(text);
    for (size_t at = 0; at < n;) {
        const uint8_t *t = (const uint8_t *)text + at;
        size_t length = utf8_length(t, n - at);
        if (length == 0)
            length = 1;
        else if (!utf8_control(t, length)) {
            at += length;
            continue;
        }
        memset(text + at, '?', length);
        at += length;
    }
}
