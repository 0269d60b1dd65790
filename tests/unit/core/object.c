/* The stored form of symbols: encoding is lossless, and truncated, changed or lying bytes are refused without harm. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "core/object.h"
#include "proto/limits.h"
#include "tests/rounds.h"
#include "tests/unit/core/fixture.h"

static struct fixture f;
static uint32_t inlined[2];
static struct object_line lines[3];
static struct object_digest digests[3];
static uint64_t returns[] = {11, 12, 0xffffffff80000010, UINT64_MAX};

static void setup(void)
{
    fixture_init(&f, "0123456789abcdef");
    f.object.machine = 183;
    f.object.big_endian = f.object.position_independent = f.object.only_dynamic = true;
    f.object.has_executable_start = f.object.has_etext = true;
    f.object.executable_start = 0xffffffff80000000;
    f.object.etext = UINT64_MAX;
    f.object.note = "three symbols were left out";
    uint32_t file = fixture_name(&f, "src/a.c");
    struct object_symbol *s = fixture_symbol(&f, "_Z1fv", 0xffffffff80000010, 7, OBJECT_BIND_UNIQUE, OBJECT_TYPE_IFUNC);
    s->demangled = fixture_name(&f, "f()");
    s->file = file;
    s->line = 42;
    s->flags = OBJECT_SYMBOL_EXECUTABLE | OBJECT_SYMBOL_DYNAMIC | OBJECT_SYMBOL_DEBUG | OBJECT_SYMBOL_UNLISTED;
    fixture_symbol(&f, "data", 0, UINT64_MAX, OBJECT_BIND_WEAK, OBJECT_TYPE_OTHER)->flags = 0;
    fixture_range(&f, OBJECT_RANGE_TEXT, 0xffffffff80000000, UINT64_MAX);
    fixture_range(&f, OBJECT_RANGE_EXECUTABLE, 0x10, 0x10);
    fixture_range(&f, OBJECT_RANGE_EXECUTABLE, 0x20, 0x30);
    fixture_range(&f, OBJECT_RANGE_SEGMENT, 0, UINT64_MAX);
    fixture_plt(&f, 0x20, 16, "puts");
    fixture_plt(&f, 0x20, 0, "again");
    fixture_arc(&f, 5, 0xffffffff80000010, NULL);
    fixture_arc(&f, 5, 0, "puts");
    fixture_arc(&f, UINT64_MAX, 1, NULL);
    f.arcs[2].kind = OBJECT_ARC_TAIL;
    f.object.knows_returns = true;
    f.object.return_count = f.object.signal_return_count = 3;
    f.object.returns = returns;
    f.object.signal_returns = returns + 1;
    f.object.knows_inlined = true;
    f.symbols[0].code = (UINT64_C(1) << 56) - 1;
    inlined[0] = fixture_name(&f, "also");
    inlined[1] = file;
    f.object.inlined = inlined;
    f.object.inlined_count = 2;
    lines[0] = (struct object_line){.low = 0x10, .high = 0x18, .file = file, .line = 7};
    lines[1] = (struct object_line){.low = 0x10, .high = 0x14, .file = inlined[0], .line = UINT32_MAX};
    lines[2] = (struct object_line){.low = 0x18, .high = UINT64_MAX, .file = file, .line = 1};
    f.object.lines = lines;
    f.object.line_count = 3;
    digests[0] = (struct object_digest){file, {1}};
    digests[1] = (struct object_digest){file, {1, [15] = 255}};
    digests[2] = (struct object_digest){inlined[0], {0}};
    f.object.digests = digests;
    f.object.digest_count = 3;
}

static uint8_t *encode(size_t *size)
{
    uint8_t *bytes = NULL;
    cr_assert_eq(object_encode(&f.object, &bytes, size, NULL), PROFD_OK);
    return bytes;
}

static enum profd_status decode(struct arena *a, const uint8_t *bytes, size_t n, struct object **o,
                                struct profd_error *e)
{
    uint8_t *exact = malloc(n == 0 ? 1 : n); /* so that reading behind the end is seen */
    memcpy(exact, bytes, n);
    enum profd_status status = object_decode(a, exact, n, o, e);
    free(exact);
    return status;
}

Test(object, comes_back_as_it_went, .init = setup)
{
    size_t n, again;
    uint8_t *bytes = encode(&n), *second = NULL;
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    struct profd_error e;
    cr_assert_eq(decode(a, bytes, n, &o, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(o->id.text, f.object.id.text);
    cr_assert_str_eq(o->variant, f.object.variant);
    cr_assert_str_eq(o->note, f.object.note);
    cr_assert(o->machine == 183 && o->bits == 64 && o->big_endian && o->position_independent && o->has_names);
    cr_assert(o->only_dynamic && o->has_executable_start && o->has_etext);
    cr_assert(o->executable_start == 0xffffffff80000000 && o->etext == UINT64_MAX);
    cr_assert(o->name_bytes == f.object.name_bytes && memcmp(o->names, f.names, o->name_bytes) == 0);
    cr_assert(o->symbol_count == 2 && o->range_count == 4 && o->plt_count == 2 && o->arc_count == 3);
    for (uint32_t i = 0; i < 2; i++) {
        const struct object_symbol *x = &o->symbols[i], *y = &f.symbols[i];
        cr_assert(x->address == y->address && x->size == y->size && x->name == y->name && x->demangled == y->demangled);
        cr_assert(x->file == y->file && x->line == y->line && x->bind == y->bind && x->type == y->type &&
                  x->flags == y->flags && x->code == y->code);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(o->ranges[i].low == f.ranges[i].low && o->ranges[i].high == f.ranges[i].high &&
                  o->ranges[i].kind == f.ranges[i].kind);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(o->plt[i].address == f.plt[i].address && o->plt[i].size == f.plt[i].size &&
                  o->plt[i].import == f.plt[i].import);
    }
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(o->arcs[i].from == f.arcs[i].from && o->arcs[i].to == f.arcs[i].to &&
                  o->arcs[i].import == f.arcs[i].import && o->arcs[i].kind == f.arcs[i].kind);
    }
    cr_assert(o->knows_inlined && o->inlined_count == 2 && o->inlined[0] == inlined[0] && o->inlined[1] == inlined[1]);
    cr_assert_eq(object_encode(o, &second, &again, NULL), PROFD_OK);
    cr_assert(again == n && memcmp(bytes, second, n) == 0, "the same bytes again");
    free(bytes);
    free(second);
    arena_free(a);
}

Test(object, another_version_is_refused, .init = setup)
{
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    struct profd_error e = {""};
    size_t n;
    uint8_t *bytes = encode(&n);
    bytes[3] = 2;
    cr_assert_eq(decode(a, bytes, n, &o, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "version 2: must be 1"), "%s", e.sentence);
    free(bytes);
    arena_free(a);
}

/* Of an object whose code was not read, a return address may be anywhere. */
Test(object, return_addresses, .init = setup)
{
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    const struct object_arc *arc = NULL;
    for (int known = 1; known >= 0; known--) {
        f.object.knows_returns = known;
        size_t n;
        uint8_t *bytes = encode(&n);
        cr_assert_eq(bytes[3], 1);
        cr_assert_eq(decode(a, bytes, n, &o, NULL), PROFD_OK);
        cr_expect_eq(o->knows_returns, known);
        cr_expect_eq(o->return_count, known ? 3 : 0);
        cr_expect_eq(object_find_call(o, 9, &arc), OBJECT_CALL_DIRECT);
        cr_expect_eq(arc->to, 0xffffffff80000010);
        cr_expect_eq(object_find_call(o, 3, &arc), known ? OBJECT_CALL_NONE : OBJECT_CALL_POSSIBLE, "a jump");
        cr_expect_eq(object_find_call(o, 10, &arc), known ? OBJECT_CALL_NONE : OBJECT_CALL_POSSIBLE);
        cr_expect_eq(object_find_call(o, 12, &arc), OBJECT_CALL_POSSIBLE);
        cr_expect_eq(object_find_call(o, UINT64_MAX, &arc), known ? OBJECT_CALL_SIGNAL : OBJECT_CALL_POSSIBLE);
        free(bytes);
    }
    arena_free(a);
}

Test(object, truncated_at_every_byte, .init = setup)
{
    size_t n;
    uint8_t *bytes = encode(&n);
    for (size_t cut = 0; cut < n; cut++) {
        struct arena *a = arena_new(0);
        struct object *o = NULL;
        struct profd_error e = {{0}};
        cr_assert_eq(decode(a, bytes, cut, &o, &e), PROFD_MALFORMED, "cut at %zu", cut);
        cr_assert(o == NULL && strstr(e.sentence, "byte") != NULL, "%s", e.sentence);
        arena_free(a);
    }
    free(bytes);
}

/* Decodes the object and reads its lines in [low, high). */
static enum profd_status find_lines(struct arena *a, uint64_t low, uint64_t high, struct object_line **out,
                                    uint32_t *count, struct profd_error *e)
{
    size_t n;
    uint8_t *bytes = encode(&n);
    struct object *o = NULL;
    enum profd_status status = decode(a, bytes, n, &o, e);
    free(bytes);
    return status == PROFD_OK ? object_lines_find(o, a, low, high, out, count, e) : status;
}

Test(object, lines_of_a_range, .init = setup)
{
    struct arena *a = arena_new(0);
    struct object_line *found = NULL;
    struct profd_error e;
    uint32_t n;
    static const struct {
        uint64_t low, high;
        uint32_t first, count;
    } cases[] = {{0, UINT64_MAX, 0, 3}, {0x14, 0x15, 0, 1}, {0, 0x10, 0, 0}, {0x17, 0x19, 0, 2}, {0x30, 0x31, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(find_lines(a, cases[i].low, cases[i].high, &found, &n, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(n, cases[i].count, "case %zu: %u", i, n);
        const struct object_line *want = &lines[cases[i].first];
        cr_expect(n == 0 || (found->low == want->low && found->high == want->high && found->file == want->file &&
                             found->line == want->line));
    }
    arena_free(a);
}

Test(object, digests_of_files, .init = setup)
{
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    struct profd_error e = {""};
    size_t n, shorter;
    uint8_t *bytes = encode(&n);
    cr_assert_eq(decode(a, bytes, n, &o, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(o->digest_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(o->digests[i].file, digests[i].file);
        cr_expect_eq(memcmp(o->digests[i].md5, digests[i].md5, OBJECT_DIGEST_BYTES), 0);
    }
    free(bytes);
    f.object.digest_count = 0;
    bytes = encode(&shorter);
    cr_expect_lt(shorter, n);
    free(bytes);
    arena_free(a);
}

Test(object, rules_of_digests, .init = setup)
{
    static const struct {
        uint32_t file, at;
    } cases[] = {{UINT32_MAX, 0}, {0, 1}, {0, 2}};
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setup();
        digests[cases[i].at].file = cases[i].file; /* outside the names, or before its neighbour */
        size_t n;
        uint8_t *bytes = encode(&n);
        cr_expect_eq(decode(a, bytes, n, &o, NULL), PROFD_MALFORMED, "case %zu", i);
        free(bytes);
    }
    setup();
    digests[1] = digests[0];
    size_t n;
    uint8_t *bytes = encode(&n);
    cr_expect_eq(decode(a, bytes, n, &o, NULL), PROFD_MALFORMED, "one stands twice");
    free(bytes);
    arena_free(a);
}

static const char texts[] = "\0call \0nop";

static void instruct(const struct object_instruction *list, uint32_t n, struct buffer *rows)
{
    struct object_instruction last = {0};
    buffer_init(rows, SIZE_MAX);
    for (uint32_t i = 0; i < n; i++) {
        object_instructions_add(rows, &last, &list[i]);
    }
    f.object.instruction_texts = texts;
    f.object.instruction_text_bytes = sizeof texts;
    f.object.instruction_bytes = (const uint8_t *)rows->data;
    f.object.instruction_size = rows->size;
    f.object.instruction_count = n;
}

static enum profd_status find_instructions(struct arena *a, uint64_t low, uint64_t high,
                                           struct object_instruction **found, uint32_t *count)
{
    struct object *o = NULL;
    size_t n;
    uint8_t *bytes = encode(&n);
    cr_assert_eq(decode(a, bytes, n, &o, NULL), PROFD_OK);
    free(bytes);
    return object_instructions_find(o, a, low, high, found, count, NULL);
}

Test(object, instructions, .init = setup)
{
    static const struct object_instruction list[] = {
        {0x10, 5, 1, true, 0xffffffff80000010}, {0x15, 1, 7, false, 0}, {UINT64_MAX - 4, 4, 1, true, 0}};
    struct arena *a = arena_new(0);
    struct object_instruction *found = NULL;
    struct buffer rows;
    uint32_t n;
    instruct(list, 3, &rows);
    f.object.line_count = f.object.digest_count = 0; /* they need neither */
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(find_instructions(a, 0, UINT64_MAX, &found, &n), PROFD_OK);
        cr_assert_eq(n, 3);
        for (uint32_t k = 0; k < n; k++) {
            cr_expect(found[k].address == list[k].address && found[k].size == list[k].size &&
                          found[k].text == list[k].text && found[k].targeted == list[k].targeted &&
                          found[k].target == list[k].target,
                      "%u", k);
        }
        f.object.line_count = f.object.digest_count = 3;
    }
    cr_assert_eq(find_instructions(a, 0x11, 0x16, &found, &n), PROFD_OK);
    cr_expect(n == 1 && found->address == 0x15);
    size_t with, without, bare;
    uint8_t *bytes = encode(&with), *less = NULL;
    cr_assert_eq(object_instructions_remove(bytes, with, &less, &without, NULL), PROFD_OK);
    f.object.instruction_count = 0;
    free(bytes);
    bytes = encode(&bare);
    cr_expect(without == bare && memcmp(less, bytes, bare) == 0, "as if there had been none");
    free(less);
    free(bytes);
    buffer_done(&rows);
    arena_free(a);
}

Test(object, rules_of_instructions, .init = setup)
{
    static const struct object_instruction bad[][2] = {
        {{0x10, 0, 1, false, 0}, {0x20, 1, 1, false, 0}},            /* no byte */
        {{0x10, 5, 1, false, 0}, {0x14, 1, 1, false, 0}},            /* inside the one before */
        {{0x10, 5, 1, false, 0}, {0xf, 1, 1, false, 0}},             /* before it */
        {{0x10, 5, sizeof texts, false, 0}, {0x20, 1, 1, false, 0}}, /* no such text */
        {{0x10, 5, 1, false, 0}, {UINT64_MAX, 1, 1, false, 0}},      /* behind the last address */
    };
    struct arena *a = arena_new(0);
    struct object_instruction *found = NULL;
    struct buffer rows;
    uint32_t n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        instruct(bad[i], 2, &rows);
        cr_expect_eq(find_instructions(a, 0, 1, &found, &n), PROFD_MALFORMED, "case %zu", i);
        buffer_done(&rows);
    }
    instruct(&(struct object_instruction){0x10, 5, 1, false, 0}, 1, &rows);
    buffer_add(&rows, "\0\0\0\0", 4); /* surplus */
    f.object.instruction_bytes = (const uint8_t *)rows.data;
    f.object.instruction_size = rows.size;
    cr_expect_eq(find_instructions(a, 0, 1, &found, &n), PROFD_MALFORMED);
    buffer_done(&rows);
    arena_free(a);
}

static void lines_refused(void)
{
    struct arena *a = arena_new(0);
    struct object_line *found = NULL;
    struct profd_error e = {""};
    uint32_t n;
    cr_expect_eq(find_lines(a, 0, 1, &found, &n, &e), PROFD_MALFORMED);
    cr_expect(strstr(e.sentence, "source line") != NULL, "%s", e.sentence);
    arena_free(a);
    setup();
}

Test(object, rules_of_lines, .init = setup)
{
    lines[1].line = 0;
    lines_refused();
    lines[1].file = f.object.name_bytes;
    lines_refused();
    lines[0].high = lines[0].low;
    lines_refused();
    lines[2].low = 0; /* goes back */
    lines_refused();
    struct object_line one = lines[0];
    f.object.line_bytes = (const uint8_t *)"\1\1\2\2\1\1\2\2\1\1\2\2\1"; /* a byte too many */
    f.object.line_size = 13;
    lines_refused();
    f.object.line_bytes = NULL;
    f.object.lines = &one;
    f.object.line_count = 1;
    struct arena *a = arena_new(0);
    struct object_line *found = NULL;
    uint32_t n;
    cr_expect_eq(find_lines(a, 0, UINT64_MAX, &found, &n, NULL), PROFD_OK);
    cr_expect_eq(n, 1);
    arena_free(a);
}

static void refused(const char *what)
{
    size_t n;
    uint8_t *bytes = encode(&n);
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    struct profd_error e = {{0}};
    cr_assert_eq(decode(a, bytes, n, &o, &e), PROFD_MALFORMED, "%s", what);
    cr_assert(o == NULL && strstr(e.sentence, what) != NULL, "'%s' does not say '%s'", e.sentence, what);
    free(bytes);
    arena_free(a);
    setup();
}

Test(object, rules, .init = setup)
{
    f.object.variant[10] = 'X';
    refused("variant");
    f.object.variant[0] = '\0';
    refused("variant");
    memcpy(f.object.id.text, "01Z", 4);
    refused("id");
    f.object.bits = 16;
    refused("bits 16");
    f.symbols[0].name = f.object.name_bytes;
    refused("outside the names");
    f.symbols[1].demangled = UINT32_MAX;
    refused("outside the names");
    f.symbols[1].type = OBJECT_TYPE_OTHER + 1;
    refused("type of a symbol");
    f.ranges[1].low = 0x21;
    f.ranges[1].high = 0x22;
    refused("ascend");
    f.ranges[0].kind = OBJECT_RANGE_SEGMENT + 1;
    refused("kind of a range");
    f.ranges[2].high = 1; /* ends before it begins */
    refused("ends behind");
    f.plt[1].address = 0x10; /* goes back */
    refused("PLT slot");
    f.plt[1].import = f.object.name_bytes;
    refused("import");
    f.arcs[1].from = 4;
    refused("static arc");
    f.arcs[1].import = f.object.name_bytes;
    refused("import");
    f.names[f.object.name_bytes - 1] = 'x';
    refused("NUL");
    f.names[0] = 'x';
    refused("NUL");
    memset(f.names + 1, 'n', LIMIT_SYMBOL_NAME + 1);
    f.object.name_bytes = LIMIT_SYMBOL_NAME + 3;
    f.names[f.object.name_bytes - 1] = '\0';
    refused("longer than a name");
}

Test(object, surplus_bytes_and_magic, .init = setup)
{
    size_t n;
    uint8_t *bytes = encode(&n), *more = malloc(n + 1);
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    memcpy(more, bytes, n);
    more[n] = 0;
    cr_assert_eq(decode(a, more, n + 1, &o, NULL), PROFD_MALFORMED);
    more[3]++;
    cr_assert_eq(decode(a, more, n, &o, NULL), PROFD_MALFORMED);
    free(bytes);
    free(more);
    arena_free(a);
}

/* Counts that lie cost nothing: memory is taken only for what the bytes can hold. */
Test(object, mutations_never_harm, .init = setup)
{
    static const struct object_instruction list[] = {{0x10, 5, 1, true, 0x40}, {0x15, 1, 7, false, 0}};
    struct object_instruction *found = NULL;
    struct buffer rows;
    uint32_t count;
    size_t n;
    instruct(list, 2, &rows);
    uint8_t *bytes = encode(&n), *bad = malloc(n);
    srand(99);
    int accepted = 0;
    for (uint32_t i = 0; i < rounds(20000); i++) {
        memcpy(bad, bytes, n);
        for (int k = rand() % 4; k >= 0; k--) {
            bad[(size_t)rand() % n] = (uint8_t)(rand() % 3 == 0 ? 0xff : rand());
        }
        struct arena *a = arena_new(1 << 20);
        struct object *o = NULL;
        enum profd_status status = decode(a, bad, n, &o, NULL);
        cr_assert(status == PROFD_OK || status == PROFD_MALFORMED, "status %d", status);
        for (uint32_t s = 0; status == PROFD_OK && s < o->symbol_count; s++) {
            cr_assert_leq(strlen(object_name(o, o->symbols[s].name)), LIMIT_SYMBOL_NAME);
        }
        accepted += status == PROFD_OK;
        if (status == PROFD_OK && object_instructions_find(o, a, 0, UINT64_MAX, &found, &count, NULL) == PROFD_OK) {
            cr_assert(count == 0 || strlen(o->instruction_texts + found->text) <= LIMIT_INSTRUCTION_TEXT);
        }
        arena_free(a);
    }
    buffer_done(&rows);
    cr_assert_gt(accepted, 0);
    free(bytes);
    free(bad);
}

Test(object, notes_are_made_fit_for_terminals, .init = setup)
{
    f.object.note = "bad\033[31m\nline";
    size_t n;
    uint8_t *bytes = encode(&n);
    struct arena *a = arena_new(0);
    struct object *o = NULL;
    cr_assert_eq(decode(a, bytes, n, &o, NULL), PROFD_OK);
    cr_assert_str_eq(o->note, "bad?[31m?line");
    free(bytes);
    arena_free(a);
}

Test(object, holds, .init = setup)
{
    f.object.range_count = 3;
    cr_assert(object_holds(&f.object, 0xffffffff80000000) && object_holds(&f.object, 0x2f));
    cr_assert(!object_holds(&f.object, 0x10) && !object_holds(&f.object, 0x30) && !object_holds(&f.object, UINT64_MAX));
}
