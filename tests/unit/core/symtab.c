/* The owner of each address: sizes, gaps, aliases, clones, cold parts, the PLT, and objects without symbols. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "core/symtab.h"
#include "tests/unit/core/fixture.h"

static struct fixture f;

static struct symtab *build(struct arena *a, const struct symtab_request *request)
{
    struct symtab *t = NULL;
    cr_assert_eq(symtab_build(a, request, &t, NULL), PROFD_OK);
    for (uint32_t i = 1; i < t->span_count; i++) {
        cr_assert_lt(t->span_low[i - 1], t->span_low[i]);
        cr_assert_neq(t->span_owner[i - 1], t->span_owner[i]);
    }
    for (uint32_t i = 1; i < t->owner_count; i++) {
        cr_assert_leq(t->owners[i - 1].address, t->owners[i].address);
    }
    return t;
}

static struct symtab *build_object(struct arena *a, bool clones)
{
    struct symtab_request request = {.object = &f.object, .build_id = "ab", .fold_clones = clones};
    return build(a, &request);
}

static const char *name_at(const struct symtab *t, uint64_t address)
{
    const struct symtab_owner *o = &t->owners[symtab_find(t, address)];
    static const char *const kinds[] = {"", "[plt]", "[gap]", "0x", "[unknown]"};
    return o->symbol == SYMTAB_NONE ? kinds[o->kind] : object_name(t->object, t->object->symbols[o->symbol].name);
}

#define AT(address, name)                                                                                              \
    cr_assert_str_eq(name_at(t, (address)), (name), "at 0x%llx: %s", (unsigned long long)(address),                    \
                     name_at(t, (address)))

Test(symtab, sizes_gaps_and_section_ends)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_function(&f, "sized", 0x100, 0x10);
    fixture_function(&f, "open", 0x120, 0);
    fixture_function(&f, "next", 0x140, 8);
    fixture_function(&f, "last", 0x1f0, 0);
    fixture_function(&f, "greedy", 0x2f0, 0x1000);
    fixture_function(&f, "elsewhere", 0x5000, 16);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x200);
    fixture_range(&f, OBJECT_RANGE_EXECUTABLE, 0x280, 0x300);
    struct symtab *t = build_object(a, false);
    AT(0, "[gap]");
    AT(0xff, "[gap]");
    AT(0x100, "sized");
    AT(0x10f, "sized");
    AT(0x110, "[gap]");
    AT(0x120, "open");
    AT(0x13f, "open");
    AT(0x140, "next");
    AT(0x147, "next");
    AT(0x148, "[gap]");
    AT(0x1ef, "[gap]");
    AT(0x1ff, "last");
    AT(0x200, "[gap]");
    AT(0x2ff, "greedy");
    AT(0x300, "[gap]");
    AT(0x5000, "[gap]"); /* no section holds it */
    AT(UINT64_MAX, "[gap]");
    arena_free(a);
}

Test(symtab, one_address_many_names)
{
    static const struct {
        const char *name;
        enum object_bind bind;
        enum object_type type;
    } in[] = {
        {"label", OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE},      {"local_f", OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION},
        {"weak_f", OBJECT_BIND_WEAK, OBJECT_TYPE_FUNCTION},   {"__global_f", OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION},
        {"_global_f", OBJECT_BIND_GLOBAL, OBJECT_TYPE_IFUNC}, {"longer_name", OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION},
        {"beta", OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION},   {"alfa", OBJECT_BIND_UNIQUE, OBJECT_TYPE_FUNCTION}};
    struct arena *a = arena_new(0);
    for (size_t n = 1; n <= sizeof in / sizeof *in; n++) { /* each further one is better than all before */
        fixture_init(&f, "ab");
        for (size_t i = 0; i < n; i++) {
            fixture_symbol(&f, in[i].name, 0x100, i == 0 ? 0 : i, in[i].bind, in[i].type);
        }
        fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x200);
        struct symtab *t = build_object(a, false);
        AT(0x100, in[n - 1].name);
        cr_assert_eq(t->owner_count, 2);
        cr_assert_eq(t->owners[1].count, n);
    }
    arena_free(a);
}

Test(symtab, who_is_no_function)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_symbol(&f, "__executable_start", 0x100, 0, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, "etext", 0x100, 0, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, "$x", 0x100, 0, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, "$d.12", 0x110, 0, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, ".L12", 0x110, 0, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, "table", 0x120, 8, OBJECT_BIND_GLOBAL, OBJECT_TYPE_DATA);
    fixture_symbol(&f, "data_start", 0x130, 0, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    fixture_symbol(&f, "real", 0x140, 0, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x200);
    struct symtab *t = build_object(a, false);
    cr_assert_eq(t->owner_count, 2);
    AT(0x13f, "[gap]");
    AT(0x140, "real");
    arena_free(a);
}

Test(symtab, overlaps_follow_the_order)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_symbol(&f, "outer", 0x100, 0x100, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    fixture_symbol(&f, "inner", 0x140, 0x20, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    fixture_symbol(&f, "label", 0x180, 0, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    fixture_symbol(&f, "tail", 0x1f0, 0x20, OBJECT_BIND_WEAK, OBJECT_TYPE_FUNCTION);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x300);
    struct symtab *t = build_object(a, false);
    AT(0x13f, "outer");
    AT(0x140, "inner");
    AT(0x15f, "inner");
    AT(0x160, "outer"); /* it goes on behind the better one */
    AT(0x180, "outer"); /* a label does not cut a function */
    AT(0x1ef, "outer");
    AT(0x1f0, "tail");
    AT(0x20f, "tail");
    AT(0x210, "[gap]");
    arena_free(a);
}

Test(symtab, cold_parts_and_clones)
{
    struct arena *a = arena_new(0);
    for (int clones = 0; clones < 2; clones++) {
        fixture_init(&f, "ab");
        fixture_function(&f, "work", 0x100, 0x10);
        fixture_symbol(&f, "work.cold", 0x200, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "work.part.0", 0x110, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "work.part.0.cold", 0x208, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "gone.isra.0", 0x118, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "gone.isra.0.cold", 0x210, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "orphan.cold.3", 0x218, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, ".cold", 0x220, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "work.constprop.1.isra.0", 0x228, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_symbol(&f, "work.partial", 0x230, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
        fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x300);
        struct symtab *t = build_object(a, clones == 1);
        AT(0x200, "work");
        AT(0x110, clones ? "work" : "work.part.0");
        AT(0x208, clones ? "work" : "work.part.0");
        AT(0x210, "gone.isra.0");
        AT(0x218, "orphan.cold.3");
        AT(0x220, ".cold");
        AT(0x228, clones ? "work" : "work.constprop.1.isra.0");
        AT(0x230, "work.partial");
    }
    arena_free(a);
}

Test(symtab, cold_parts_of_namesakes_go_home)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    uint32_t left = fixture_name(&f, "left.c"), right = fixture_name(&f, "right.c");
    struct object_symbol *s[6];
    s[0] = fixture_symbol(&f, "twin", 0x100, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s[1] = fixture_symbol(&f, "twin.cold", 0x200, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s[2] = fixture_symbol(&f, "twin.cold", 0x210, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s[3] = fixture_symbol(&f, "more", 0x120, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s[4] = fixture_symbol(&f, "more2", 0x130, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s[5] = fixture_symbol(&f, "twin", 0x110, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x300);
    for (int files = 0; files < 2; files++) {
        for (int i = 0; i < 6; i++) {
            s[i]->file = files == 0 ? 0 : i < 2 ? left : right;
        }
        struct symtab *t = build_object(a, false);
        cr_assert_eq(t->owners[symtab_find(t, 0x208)].address, 0x100);
        cr_assert_eq(t->owners[symtab_find(t, 0x218)].address, files == 0 ? 0x100 : 0x110, "file before nearness");
    }
    arena_free(a);
}

/* Names at one address that fold into each other in a circle must not hang or fold wrongly. */
Test(symtab, hostile_parts_do_not_close_a_circle)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_function(&f, "x.cold", 0x100, 8);
    fixture_symbol(&f, "y", 0x100, 0, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_function(&f, "y.cold", 0x200, 8);
    fixture_symbol(&f, "x", 0x200, 0, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_function(&f, "z.cold", 0x210, 8);
    fixture_symbol(&f, "z", 0x210, 8, OBJECT_BIND_LOCAL, OBJECT_TYPE_NONE);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x300);
    struct symtab *t = build_object(a, true);
    AT(0x100, "x.cold");
    AT(0x200, "y.cold");
    AT(0x210, "z.cold");
    arena_free(a);
}

Test(symtab, plt_and_imports)
{
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_function(&f, "main", 0x100, 0x10);
    fixture_function(&f, "low", 0x20, 0x10);
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x200);
    fixture_range(&f, OBJECT_RANGE_EXECUTABLE, 0x20, 0x30);
    fixture_range(&f, OBJECT_RANGE_PLT, 0x40, 0x80);
    fixture_plt(&f, 0x50, 16, "puts");
    fixture_plt(&f, 0x60, 16, "qsort");
    struct symtab *t = build_object(a, false);
    AT(0x20, "low");
    AT(0x40, "[plt]");
    AT(0x7f, "[plt]");
    AT(0x80, "[gap]");
    AT(0x100, "main");
    cr_assert_null(symtab_import(t, 0x40));
    cr_assert_str_eq(symtab_import(t, 0x50), "puts");
    cr_assert_str_eq(symtab_import(t, 0x5f), "puts");
    cr_assert_str_eq(symtab_import(t, 0x6f), "qsort");
    cr_assert_null(symtab_import(t, 0x70));
    arena_free(a);
}

Test(symtab, without_names)
{
    static const uint64_t entries[] = {0x50, 0x120, 0x180, 0x1f8, 0x9000};
    struct arena *a = arena_new(0);
    fixture_init(&f, "ab");
    fixture_range(&f, OBJECT_RANGE_TEXT, 0x100, 0x200);
    fixture_range(&f, OBJECT_RANGE_PLT, 0x40, 0x80);
    fixture_range(&f, OBJECT_RANGE_SEGMENT, 0, 0x300);
    struct symtab_request request = {.object = &f.object, .build_id = "ab", .entries = entries, .entry_count = 5};
    struct symtab *t = build(a, &request);
    cr_assert_not(t->named);
    cr_assert_eq(t->owners[symtab_find(t, 0x100)].address, 0x100, "before the first entry: the range's start");
    cr_assert_eq(t->owners[symtab_find(t, 0x11f)].address, 0x100);
    cr_assert_eq(t->owners[symtab_find(t, 0x17f)].address, 0x120);
    cr_assert_eq(t->owners[symtab_find(t, 0x1ff)].address, 0x1f8);
    cr_assert_eq(t->owners[symtab_find(t, 0x200)].kind, SYMTAB_GAP);
    cr_assert_eq(t->owners[symtab_find(t, 0x55)].kind, SYMTAB_PLT);
    cr_assert_eq(t->owners[symtab_find(t, 0x9000)].kind, SYMTAB_GAP);
    arena_free(a);
}

Test(symtab, unknown_builds_have_one_owner)
{
    struct arena *a = arena_new(0);
    struct symtab_request request = {.build_id = "abcd"};
    struct symtab *t = build(a, &request);
    cr_assert_eq(t->owner_count, 1);
    cr_assert_eq(symtab_find(t, 0), 0);
    cr_assert_eq(symtab_find(t, UINT64_MAX), 0);
    cr_assert_eq(t->owners[0].kind, SYMTAB_UNKNOWN);
    arena_free(a);
}

/* Against the definition: for each address, the best of the claims that hold it. */
Test(symtab, spans_agree_with_the_definition)
{
    srand(4711);
    for (int round = 0; round < 300; round++) {
        struct arena *a = arena_new(0);
        fixture_init(&f, "ab");
        fixture_range(&f, OBJECT_RANGE_TEXT, 100, 900);
        int n = rand() % 40 + 1;
        for (int i = 0; i < n; i++) {
            char name[8] = {(char)('a' + rand() % 26), (char)('a' + rand() % 26), (char)('a' + rand() % 26), 0};
            fixture_symbol(&f, name, 100 + (uint64_t)(rand() % 800), (uint64_t)(rand() % 200 + 1),
                           (enum object_bind)(rand() % 3), rand() % 3 == 0 ? OBJECT_TYPE_NONE : OBJECT_TYPE_FUNCTION);
        }
        struct symtab *t = build_object(a, false);
        for (uint64_t address = 0; address < 1000; address++) {
            uint32_t want = 0; /* [gap] */
            for (uint32_t i = 1; i < t->owner_count; i++) {
                uint64_t end = t->owners[i].address + t->owners[i].size;
                if (t->owners[i].address > address || address >= (end < 900 ? end : 900)) {
                    continue;
                }
                const struct object_symbol *s = &f.symbols[t->owners[i].symbol],
                                           *b = want == 0 ? s : &f.symbols[t->owners[want].symbol];
                const char *p = object_name(&f.object, s->name), *q = want == 0 ? "" : object_name(&f.object, b->name);
                int typed_s = s->type != OBJECT_TYPE_NONE, typed_b = want == 0 ? -1 : b->type != OBJECT_TYPE_NONE;
                int bind_s = s->bind == OBJECT_BIND_GLOBAL ? 0 : s->bind == OBJECT_BIND_WEAK ? 1 : 2;
                int bind_b = want == 0 ? 3 : b->bind == OBJECT_BIND_GLOBAL ? 0 : b->bind == OBJECT_BIND_WEAK ? 1 : 2;
                int less = typed_s != typed_b ? typed_s > typed_b
                           : bind_s != bind_b ? bind_s < bind_b
                                              : strcmp(p, q) < 0;
                bool same = want != 0 && typed_s == typed_b && bind_s == bind_b && strcmp(p, q) == 0;
                if (less || (same && t->owners[i].symbol < t->owners[want].symbol)) {
                    want = i;
                }
            }
            cr_assert_eq(symtab_find(t, address), want, "round %d address %llu: %u not %u", round,
                         (unsigned long long)address, symtab_find(t, address), want);
        }
        arena_free(a);
    }
}
