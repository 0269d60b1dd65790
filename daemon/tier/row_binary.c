#include "tier/row_binary.h"

#include <stdlib.h>

void rows_open(struct row_reader *r, uint8_t *bytes, size_t size)
{
    *r = (struct row_reader){.bytes = bytes, .at = bytes, .end = bytes + size};
}

void rows_close(struct row_reader *r)
{
    free(r->bytes);
    *r = (struct row_reader){.bytes = NULL};
}

void rows_fixed(struct row_reader *r, void *out, size_t n)
{
    if (r->cut || (size_t)(r->end - r->at) < n) {
        r->cut = true;
        memset(out, 0, n);
        return;
    }
    memcpy(out, r->at, n);
    r->at += n;
}

size_t rows_length(struct row_reader *r, size_t least)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 63 && !r->cut && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        n |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            if (n > (size_t)(r->end - r->at) / (least ? least : 1)) {
                break;
            }
            return (size_t)n;
        }
    }
    r->cut = true;
    return 0;
}

const uint8_t *rows_bytes(struct row_reader *r, struct arena *a, size_t *n)
{
    const char *text = rows_string(r, n);

    return (const uint8_t *)arena_copy(a, *n ? text : "", *n);
}

const char *rows_text(struct row_reader *r, struct arena *a)
{
    size_t n;
    const char *text = (const char *)rows_bytes(r, a, &n);

    r->cut = r->cut || (text && strlen(text) != n);
    return text;
}

const char **rows_texts(struct row_reader *r, struct arena *a, size_t *n)
{
    *n = rows_length(r, 1);
    const char **texts = ARENA_ARRAY(a, *n + 1, const char *);

    for (size_t i = 0; i < *n && texts; i++) {
        texts[i] = rows_text(r, a);
        texts = texts[i] ? texts : NULL;
    }
    return texts;
}

void rows_put_count(struct buffer *b, size_t n)
{
    for (; n >= 128; n >>= 7) {
        rows_put_u8(b, (uint8_t)((n & 127) | 128));
    }
    rows_put_u8(b, (uint8_t)n);
}
