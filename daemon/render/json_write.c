#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/message.h"
#include "proto/utf8.h"
#include "render/render_internal.h"

#define JSON_EXACT_MAX (UINT64_C(1) << 53)

void json_next(struct buffer *out)
{
    if (out->size > 0 && out->data[out->size - 1] != '{' && out->data[out->size - 1] != '[') {
        buffer_add_char(out, ',');
    }
}

static void add_key(struct buffer *out, const char *key)
{
    json_next(out);
    JSON_ADD(out, "\"");
    buffer_add_text(out, key);
    JSON_ADD(out, "\":");
}

void json_begin(struct buffer *out, const char *key)
{
    if (key) {
        add_key(out, key);
    } else {
        json_next(out);
    }
    JSON_ADD(out, "{");
}

void json_list(struct buffer *out, const char *key)
{
    add_key(out, key);
    JSON_ADD(out, "[");
}

void json_add_item(struct buffer *out, const char *text)
{
    json_next(out);
    render_json_string(out, text);
}

void json_add_fields(struct buffer *out, const struct json_field *fields, size_t count, const void *row)
{
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)row + fields[i].at;
        switch (fields[i].kind) {
        case JSON_UINT32:
            json_add_count(out, fields[i].key, *(const uint32_t *)at);
            break;
        case JSON_UINT64:
            json_add_count(out, fields[i].key, *(const uint64_t *)at);
            break;
        case JSON_DOUBLE:
            json_add_number(out, fields[i].key, *(const double *)at);
            break;
        case JSON_BOOL:
            json_add_flag(out, fields[i].key, *(const bool *)at);
            break;
        case JSON_TIME:
            json_add_time(out, fields[i].key, *(const int64_t *)at);
            break;
        case JSON_TEXT:
            json_add_text(out, fields[i].key, *(const char *const *)at);
            break;
        }
    }
}

void json_add_count(struct buffer *out, const char *key, uint64_t value)
{
    add_key(out, key);
    buffer_add_u64(out, value, 0);
    if (value > JSON_EXACT_MAX) {
        JSON_ADD(out, ",\"");
        buffer_add_text(out, key);
        JSON_ADD(out, "_str\":\"");
        buffer_add_u64(out, value, 0);
        JSON_ADD(out, "\"");
    }
}

void json_add_number(struct buffer *out, const char *key, double value)
{
    add_key(out, key);
    buffer_add_shortest(out, value);
}

void json_add_known(struct buffer *out, const char *key, double value, bool known)
{
    if (known && isfinite(value)) {
        json_add_number(out, key, value);
    } else {
        json_add_text(out, key, NULL);
    }
}

void json_add_times(struct buffer *out, double self, double children)
{
    json_add_number(out, "self_seconds", self);
    json_add_number(out, "children_seconds", children);
    json_add_number(out, "total_seconds", self + children);
}

void json_add_text(struct buffer *out, const char *key, const char *text)
{
    add_key(out, key);
    if (!text) {
        JSON_ADD(out, "null");
    } else {
        render_json_string(out, text);
    }
}

void json_add_flag(struct buffer *out, const char *key, bool value)
{
    add_key(out, key);
    buffer_add_text(out, value ? "true" : "false");
}

void json_add_time(struct buffer *out, const char *key, int64_t nanoseconds)
{
    char text[40];
    if (nanoseconds != 0) {
        render_time(nanoseconds, text);
    }
    json_add_text(out, key, nanoseconds != 0 ? text : NULL);
}

void json_add_seconds(struct buffer *out, const char *key, int64_t nanoseconds)
{
    json_add_count(out, key, (uint64_t)nanoseconds / 1000000000u);
}

void json_add_window(struct buffer *out, int64_t since, int64_t until)
{
    json_begin(out, "window");
    json_add_time(out, "since", since);
    json_add_time(out, "until", until);
    JSON_ADD(out, "}");
}

void json_add_address(struct buffer *out, const char *key, uint64_t address)
{
    static const char DIGITS[] = "0123456789abcdef";
    char text[20] = "\"0x";
    size_t n = 3;
    int shift = 60;
    while (shift > 0 && (address >> shift & 15) == 0) {
        shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
        text[n++] = DIGITS[address >> shift & 15];
    }
    text[n++] = '"';
    add_key(out, key);
    buffer_add(out, text, n);
}

void json_add_exact(struct buffer *out, uint32_t inexact)
{
    json_add_flag(out, "exact", inexact == 0);
    json_list(out, "inexact_reasons");
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        const char *name = (inexact & bit) != 0 ? message_inexact_name(bit) : NULL;
        if (name) {
            json_add_item(out, name);
        }
    }
    JSON_ADD(out, "]");
}

void json_add_meanings(struct buffer *out, uint32_t inexact)
{
    json_list(out, "inexact_meanings");
    for (uint32_t bit = 1; bit != 0 && bit <= INEXACT_ALL; bit <<= 1) {
        if ((inexact & bit) != 0) {
            json_add_item(out, message_inexact_meaning(bit));
        }
    }
    JSON_ADD(out, "]");
}

void json_add_exact_parts(struct buffer *out, uint32_t inexact)
{
    json_add_flag(out, "calls_exact", (inexact & INEXACT_CALLS) == 0);
    json_add_flag(out, "ticks_exact", (inexact & INEXACT_TICKS) == 0);
}

/* Bytes that go out as they are: printable ASCII but what HTML gives a meaning, and outside of quoted text ", \\. */
static bool byte_plain(uint8_t c, bool quoted)
{
    return c >= 0x20 && c < 0x7f && c != '<' && c != '>' && c != '&' && (quoted || (c != '"' && c != '\\'));
}

static size_t add_special(struct buffer *out, const uint8_t *p, size_t n)
{
    if (*p < 0x80) {
        buffer_add_format(out, *p == '"' || *p == '\\' ? "\\%c" : "\\u%04x", *p);
        return 1;
    }
    size_t length = utf8_length(p, n);
    if (length == 0) {
        JSON_ADD(out, "\xef\xbf\xbd");
        return 1;
    }
    uint32_t code = utf8_decode(p, length);
    if (!utf8_unseen(code)) {
        buffer_add(out, p, length);
    } else if (code <= 0xffff) {
        buffer_add_format(out, "\\u%04" PRIx32, code);
    } else { /* as a pair of surrogates */
        buffer_add_format(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    }
    return length;
}

static void add_escaped(struct buffer *out, const char *text, size_t n, bool quoted)
{
    const uint8_t *p = (const uint8_t *)text;
    while (n > 0) {
        size_t run = 0;
        while (run < n && byte_plain(p[run], quoted)) {
            run++;
        }
        buffer_add(out, p, run);
        if (run < n) {
            run += add_special(out, p + run, n - run);
        }
        p += run;
        n -= run;
    }
}

void render_json_string(struct buffer *out, const char *text)
{
    buffer_add_char(out, '"');
    add_escaped(out, text, strlen(text), false);
    buffer_add_char(out, '"');
}

void json_add_document(struct buffer *out, const char *text, size_t n)
{
    add_escaped(out, text, n, true);
}

void json_add_end(struct buffer *out, const char *next)
{
    JSON_ADD(out, "]");
    json_add_text(out, "next", next);
    JSON_ADD(out, "}\n");
}
