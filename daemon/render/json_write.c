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
    for (const struct json_field *f = fields; f < fields + count; f++) {
        const void *at = (const char *)row + f->at;
        switch (f->kind) {
        case JSON_UINT32:
            json_add_count(out, f->key, *(const uint32_t *)at);
            break;
        case JSON_UINT64:
            json_add_count(out, f->key, *(const uint64_t *)at);
            break;
        case JSON_DOUBLE:
            json_add_number(out, f->key, *(const double *)at);
            break;
        case JSON_BOOL:
            json_add_flag(out, f->key, *(const bool *)at);
            break;
        case JSON_TIME:
            json_add_time(out, f->key, *(const int64_t *)at);
            break;
        case JSON_TEXT:
            json_add_text(out, f->key, *(const char *const *)at);
            break;
        case JSON_CHARS:
            json_add_text(out, f->key, at);
            break;
        case JSON_NAMED:
            json_add_text(out, f->key, **(const char *const *)at != '\0' ? *(const char *const *)at : NULL);
            break;
        case JSON_ADDRESS:
            json_add_address(out, f->key, *(const uint64_t *)at);
            break;
        case JSON_SECONDS:
            json_add_seconds(out, f->key, *(const int64_t *)at);
            break;
        case JSON_NANOSECONDS:
            json_add_number(out, f->key, (double)*(const uint64_t *)at / 1e9);
            break;
        case JSON_KNOWN:
            json_add_known(out, f->key, *(const double *)at, *(const double *)at >= 0);
            break;
        case JSON_POSITIVE:
            json_add_known(out, f->key, *(const double *)at, *(const double *)at > 0);
            break;
        case JSON_EXACT:
            json_add_exact(out, *(const uint32_t *)at);
            break;
        case JSON_BY:
            f->add(out, f->key, row);
            break;
        }
    }
}

void json_add_rows(struct buffer *out, bool lines, const struct json_field *fields, size_t count, const void *rows,
                   size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        json_next(out);
        buffer_add_text(out, lines ? "\n{" : "{");
        json_add_fields(out, fields, count, (const char *)rows + i * size);
        JSON_ADD(out, "}");
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

/* Printable ASCII goes out as it is, but what HTML gives a meaning, and outside of quoted text also " and \\. */
static void add_escaped(struct buffer *out, const char *text, size_t n, bool quoted)
{
    const uint8_t *p = (const uint8_t *)text;
    while (n > 0) {
        size_t run = 0;
        while (run < n && p[run] >= 0x20 && p[run] < 0x7f && p[run] != '<' && p[run] != '>' && p[run] != '&' &&
               (quoted || (p[run] != '"' && p[run] != '\\'))) {
            run++;
        }
        buffer_add(out, p, run);
        p += run;
        n -= run;
        if (n == 0) {
            return;
        }

        size_t length = *p < 0x80 ? 1 : utf8_length(p, n);
        uint32_t code = length > 0 ? utf8_decode(p, length) : 0;
        if (*p < 0x80) {
            buffer_add_format(out, *p == '"' || *p == '\\' ? "\\%c" : "\\u%04x", *p);
        } else if (length == 0) {
            JSON_ADD(out, "\xef\xbf\xbd");
            length = 1;
        } else if (!utf8_unseen(code)) {
            buffer_add(out, p, length);
        } else if (code <= 0xffff) {
            buffer_add_format(out, "\\u%04" PRIx32, code);
        } else { /* as a pair of surrogates */
            buffer_add_format(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
        }
        p += length;
        n -= length;
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

const char *json_find_build(const struct report *report, uint32_t build)
{
    return build < report->build_count ? report->builds[build] : "";
}

void json_add_place(struct buffer *out, const struct report *report, const struct report_function *f)
{
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(report, f->build));
    json_add_address(out, "address", f->address);
}

void json_add_identity(struct buffer *out, const struct report *report, const struct report_function *f)
{
    json_add_text(out, "name", f->name);
    json_add_place(out, report, f);
}

void json_add_measured(struct buffer *out, const struct report_measured *m)
{
    if (!m) {
        return;
    }
    json_add_number(out, "measured_self", m->self);
    json_add_number(out, "measured_total", m->total);
    json_add_number(out, "measured_low", m->low);
    json_add_number(out, "measured_high", m->high);
    json_add_count(out, "measured_samples", m->samples);
    json_add_text(out, "measured_by", m->by_groups ? "groups" : "samples");
    json_add_flag(out, "measured_differs", m->differs);
}

void json_add_stacks(struct buffer *out, const struct report *report)
{
    const struct report_stack_facts *s = report->stacks;
    if (!s) {
        return;
    }
    json_add_text(out, "time", report->time_measured ? "measured" : "calls");
    json_begin(out, "stacks");
    json_add_number(out, "coverage", s->coverage);
    json_add_count(out, "count", s->ticks);
    json_add_count(out, "inferred", s->inferred);
    json_add_count(out, "cut", s->cut);
    json_add_count(out, "folded", s->folded);
    json_add_count(out, "incomplete", s->incomplete);
    json_add_flag(out, "by_groups", s->by_groups);
    json_add_count(out, "groups", s->groups);
    json_add_number(out, "overdispersion", s->overdispersion);
    JSON_ADD(out, "}");
}
