#include "render/name.h"

#include <inttypes.h>
#include <string.h>

#include "core/table.h"
#include "proto/utf8.h"
#include "render/name_short.h"

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
        if (length == 0 || utf8_unseen(utf8_decode(p + i, length))) {
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
        char shown[UTF8_ESCAPE_SIZE];
        size_t length;
        buffer_add(out, shown, utf8_escape(p, n, shown, &length));
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
    buffer_init_arena(&b, a);
    name_add_safe(&b, text);
    buffer_add_char(&b, '\0');
    return b.data;
}

const char *name_find_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Marks every text that occurs more than once. slots: a power of two of zeroed cells, more than 2 × n. */
static void texts_mark_equal(const char *const *text, uint32_t n, uint32_t *slots, size_t slot_count, bool *equal)
{
    const struct table t = {slots, (uint32_t)(slot_count - 1), n};
    memset(slots, 0, slot_count * sizeof *slots);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = table_slot(&t, table_hash_text(text[i], '\0', (uintptr_t)slots));
        while (slots[at] != 0 && strcmp(text[slots[at] - 1], text[i]) != 0) {
            at = (at + 1) & t.mask;
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
    return arena_format(a, "%s (%s)", name, name_make_safe(a, name_find_base(where)));
}

/* Two rounds: file or build for equal names, then the address for those that are still equal. */
static void names_tell_apart(const struct report *r, struct arena *a, const char **text, bool *equal, uint32_t *slots,
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
        }
    }
}

void name_list_make(const struct report *report, bool is_short, struct arena *a, struct name_list *out)
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
    const char *const *shorts = is_short ? name_short_functions(report, a) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        text[i] = name_make_safe(a, shorts != NULL ? shorts[i] : report->functions[i].name);
    }
    names_tell_apart(report, a, text, equal, slots, slot_count);
    for (uint32_t i = 0; i < n; i++) {
        length[i] = (uint32_t)strlen(text[i]);
    }
    *out = (struct name_list){text, length};
}
