/* Whatever bytes the object worker answers: refused in a sentence, or an object that can be encoded to the same
 * meaning, and whose symbol table gives every address one owner. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_table(struct arena *a, const struct object *o, bool clones)
{
    static const uint64_t entries[] = {0x10, 0x1000, 0x401000};
    struct symtab_request request = {o, "ab", entries, 3, clones};
    struct symtab *t;
    if (symtab_build(a, &request, &t, NULL) != PROFD_OK) {
        return;
    }
    if (t->span_count == 0 || t->span_low[0] != 0) {
        abort();
    }
    for (uint32_t i = 0; i < t->span_count; i++) {
        if (i > 0 && t->span_low[i] <= t->span_low[i - 1]) {
            abort();
        }
        if (symtab_find_span(t, t->span_low[i]) != i || t->span_owner[i] >= t->owner_count) {
            abort();
        }
        if (i + 1 < t->span_count && symtab_find_span(t, t->span_low[i + 1] - 1) != i) {
            abort();
        }
        symtab_import(t, t->span_low[i]);
    }
}

/* All lines: in order, or refused. */
static void check_lines(struct arena *a, const struct object *o)
{
    struct object_line *lines = NULL;
    uint32_t n = 0;
    struct profd_error e;
    if (object_lines_find(o, a, 0, UINT64_MAX, &lines, &n, &e) != PROFD_OK) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (lines[i].low >= lines[i].high || lines[i].file >= o->name_bytes || lines[i].line == 0) {
            abort();
        }
    }
}

/* All instructions, too. */
static void check_instructions(struct arena *a, const struct object *o)
{
    struct object_instruction *all = NULL;
    uint32_t n = 0;
    struct profd_error e;
    if (object_instructions_find(o, a, 0, UINT64_MAX, &all, &n, &e) != PROFD_OK) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].size == 0 || all[i].text >= o->instruction_text_bytes ||
            (i > 0 && all[i].address < all[i - 1].address + all[i - 1].size)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct object *o = NULL, *back = NULL;
    struct profd_error e;
    if (object_decode(a, data, size, &o, &e) == PROFD_OK) {
        uint8_t *bytes = NULL, *again = NULL;
        size_t n = 0, m = 0;
        if (object_encode(o, &bytes, &n, &e) != PROFD_OK || object_decode(a, bytes, n, &back, &e) != PROFD_OK ||
            object_encode(back, &again, &m, &e) != PROFD_OK || n != m || memcmp(bytes, again, n) != 0) {
            abort();
        }
        free(bytes);
        free(again);
        check_table(a, o, false);
        check_table(a, o, true);
        check_lines(a, o);
        check_instructions(a, o);
        for (uint32_t i = 0; i < o->range_count; i++) {
            object_holds(o, o->ranges[i].low);
        }
    } else if (o != NULL || memchr(e.sentence, '\0', sizeof e.sentence) == NULL) {
        abort();
    }
    arena_free(a);
    return 0;
}
