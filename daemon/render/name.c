#include "render/name.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "proto/utf8.h"

/* The scalar value of a valid sequence of 1–4 bytes. */
static uint32_t code_point(const uint8_t *p, size_t n)
{
    static const uint8_t FIRST_BITS[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = p[0] & FIRST_BITS[n];
    for (size_t i = 1; i < n; i++) {
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code;
}

/* C1; marks, embeddings, overrides and isolates of bidirectional text; line and paragraph separators. */
static bool code_hidden(uint32_t code)
{
    return (code >= 0x80 && code <= 0x9f) || code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

/* Bytes from the start of text that may go out as they are. */
static size_t safe_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (p[i] >= 0x20 && p[i] < 0x7f) {
            i++;
            continue;
        }
        size_t length = p[i] < 0x80 ? 0 : utf8_length(p + i, n - i);
        if (length == 0 || code_hidden(code_point(p + i, length))) {
            break;
        }
        i += length;
    }
    return i;
}

void name_add_safe(struct buffer *out, const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t n = strlen(text);
    while (n > 0) {
        size_t run = safe_run(p, n);
        buffer_add(out, p, run);
        p += run;
        n -= run;
        if (n == 0) {
            return;
        }
        size_t length = *p < 0x80 ? 1 : utf8_length(p, n);
        if (length > 1) {
            buffer_add_format(out, "\\u{%04" PRIx32 "}", code_point(p, length));
        } else {
            buffer_add_format(out, "\\x%02x", *p);
            length = 1;
        }
        p += length;
        n -= length;
    }
}

const char *name_make_safe(struct arena *a, const char *text)
{
    size_t n = strlen(text);
    if (safe_run((const uint8_t *)text, n) == n) {
        return text;
    }
    struct buffer b;
    buffer_init(&b, 16 * n + 16);
    name_add_safe(&b, text);
    const char *copy = b.failed ? NULL : arena_copy(a, b.data, b.size);
    buffer_done(&b);
    return copy;
}

const char *name_find_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static uint64_t text_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (const char *p = text; *p != '\0'; p++) {
        h = (h ^ (uint8_t)*p) * 1099511628211u;
    }
    return h ^ h >> 32;
}

/* Marks every text that occurs more than once. slots: a power of two of zeroed cells, more than 2 × n. */
static void texts_mark_equal(const char *const *text, uint32_t n, uint32_t *slots, size_t slot_count, bool *equal)
{
    memset(slots, 0, slot_count * sizeof *slots);
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (size_t)text_hash(text[i]) & (slot_count - 1);
        while (slots[at] != 0 && strcmp(text[slots[at] - 1], text[i]) != 0) {
            at = (at + 1) & (slot_count - 1);
        }
        if (slots[at] == 0) {
            slots[at] = i + 1;
        }
        equal[i] = slots[at] != i + 1;
        equal[slots[at] - 1] |= equal[i];
    }
}

static const char *name_qualify(struct arena *a, const struct report *r, const struct report_function *f,
                                const char *name)
{
    const char *where = f->file != NULL && f->file[0] != '\0' ? f->file : NULL;
    if (where == NULL && r->build_count > 1 && f->build < r->build_count && r->build_names[f->build] != NULL) {
        where = r->build_names[f->build];
    }
    if (where == NULL) {
        return name;
    }
    where = name_make_safe(a, name_find_base(where));
    return where == NULL ? NULL : arena_format(a, "%s (%s)", name, where);
}

/* Two rounds: file or build for equal names, then the address for those that are still equal. */
static bool names_tell_apart(const struct report *r, struct arena *a, const char **text, bool *equal, uint32_t *slots,
                             size_t slot_count)
{
    for (int round = 0; round < 2; round++) {
        texts_mark_equal(text, r->function_count, slots, slot_count, equal);
        for (uint32_t i = 0; i < r->function_count; i++) {
            const struct report_function *f = &r->functions[i];
            if (equal[i]) {
                text[i] = round == 0 ? name_qualify(a, r, f, text[i])
                                     : arena_format(a, "%s [0x%" PRIx64 "]", text[i], f->address);
            }
            if (text[i] == NULL) {
                return false;
            }
        }
    }
    return true;
}

enum profd_status name_list_make(const struct report *report, struct arena *a, struct name_list *out,
                                 struct profd_error *e)
{
    uint32_t n = report->function_count;
    size_t slot_count = 16;
    while (slot_count < 2 * (size_t)n + 1) {
        slot_count *= 2;
    }
    const char **text = ARENA_ARRAY(a, (size_t)n + 1, const char *);
    uint32_t *length = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    uint32_t *slots = ARENA_ARRAY(a, slot_count, uint32_t);
    bool *equal = ARENA_ARRAY(a, (size_t)n + 1, bool);
    bool ok = text != NULL && length != NULL && slots != NULL && equal != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        text[i] = name_make_safe(a, report->functions[i].name);
        ok = text[i] != NULL;
    }
    if (!ok || !names_tell_apart(report, a, text, equal, slots, slot_count)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the names of %u functions", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        length[i] = (uint32_t)strlen(text[i]);
    }
    *out = (struct name_list){text, length};
    return PROFD_OK;
}
