#include "core/diff.h"

#include <string.h>

#include "proto/sort.h"
#include "core/names.h"
#include "core/object.h"
#include "core/row_table.h"

/* A function of one side. */
struct match_item {
    uint64_t hash; /* of object and name */
    uint64_t code; /* of the function, 0 if unknown */
    const char *object, *name, *file;
    size_t object_length, name_length;
    uint32_t side, function;
    uint32_t row; /* DIFF_NONE: not matched yet */
    bool renamed;
    bool idle;        /* the other side's object has the function */
    bool common_code; /* an object has another function of the same code */
    uint64_t twin;    /* address of the function with the same code in the other side's object, 0: none */
};

typedef int match_order(const struct match_item *a, const struct match_item *b);

struct match_work {
    const struct diff_side *const *sides;
    const char *const *programs;
    struct match_item *items;
    uint32_t count;
    uint32_t *order;
    struct diff_match *out;
};

/* The name of a shared object without its directory and version: "libc" of "/lib/libc.so.6". */
static void match_name_object(const struct diff_side *side, uint32_t build, const char *program,
                              struct match_item *item)
{
    const char *id = side->builds[build], *path = side->build_names[build], *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path, *version = strstr(base, ".so");
    if (strcmp(id, program) == 0 || build == side->build_count) {
        item->object = "";
        item->object_length = 0;
    } else if (base[0] == '\0') {
        item->object = id;
        item->object_length = strlen(id);
    } else {
        item->object = base;
        item->object_length = version != NULL && version > base ? (size_t)(version - base) : strlen(base);
    }
}

static uint64_t match_hash(const struct match_item *x)
{
    return table_hash_bytes(x->name, x->name_length, table_hash_bytes(x->object, x->object_length, 0));
}

static void match_make_item(const struct match_work *w, uint32_t s, uint32_t function, struct match_item *item)
{
    const struct diff_side *side = w->sides[s];
    const struct report_function *f = &side->functions[function];
    *item = (struct match_item){
        .side = s, .function = function, .row = DIFF_NONE, .name = f->raw, .file = f->file, .code = f->code};
    match_name_object(side, f->build, w->programs[s], item);
    item->name_length = f->kind == REPORT_FUNCTION ? clone_base(f->raw) : strlen(f->raw);
    if (f->kind == REPORT_ADDRESS) { /* an address says nothing about another build */
        item->object = side->builds[f->build];
        item->object_length = strlen(item->object);
    } else if (f->kind == REPORT_UNKNOWN && f->build < side->build_count) {
        item->name = "[unknown]";
        item->name_length = strlen(item->name);
    }
    item->hash = match_hash(item);
}

static const struct report_function *match_function(const struct match_work *w, const struct match_item *item)
{
    return &w->sides[item->side]->functions[item->function];
}

static int match_compare_texts(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : compare_u64(a_length, b_length);
}

static int match_compare_names(const struct match_item *a, const struct match_item *b)
{
    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }
    int order = match_compare_texts(a->object, a->object_length, b->object, b->object_length);
    return order != 0 ? order : match_compare_texts(a->name, a->name_length, b->name, b->name_length);
}

static int match_compare_files(const struct match_item *a, const struct match_item *b)
{
    int order = match_compare_names(a, b);
    return order != 0 ? order : strcmp(a->file, b->file);
}

static int match_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct match_work *w = context;
    const struct match_item *a = &w->items[x], *b = &w->items[y];
    int order = match_compare_files(a, b);
    return order != 0 ? order : compare_pairs(a->side, b->side, a->function, b->function);
}

static struct match_item *match_at(const struct match_work *w, uint32_t i)
{
    return &w->items[w->order[i]];
}

/* Names of directories that two paths have in common at their ends, the base name being the first; 0: not even that. */
static uint32_t match_common(const char *a, const char *b)
{
    size_t i = strlen(a), k = strlen(b);
    uint32_t common = 0;
    if (i == 0 || k == 0) {
        return 0;
    }
    while (i > 0 && k > 0 && a[i - 1] == b[k - 1]) {
        common += a[i - 1] == '/';
        i--;
        k--;
    }
    bool whole = (i == 0 || a[i - 1] == '/') && (k == 0 || b[k - 1] == '/');
    return common + whole;
}

/* Gives a row to all items of the range that have the file and the side of item i and have none. */
static void match_give(struct match_work *w, uint32_t first, uint32_t end, uint32_t i, uint32_t row)
{
    const struct match_item *like = match_at(w, i);
    for (uint32_t k = first; k < end; k++) {
        struct match_item *item = match_at(w, k);
        if (item->side == like->side && item->row == DIFF_NONE && strcmp(item->file, like->file) == 0) {
            item->row = row;
        }
    }
}

/* The first item of a side without a row; end if there is none. *files: how many files such items have. */
static uint32_t match_left(const struct match_work *w, uint32_t first, uint32_t end, uint32_t side, uint32_t *files)
{
    uint32_t found = end, last = end;
    *files = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct match_item *item = match_at(w, i);
        if (item->side != side || item->row != DIFF_NONE) {
            continue;
        }
        if (last == end || strcmp(match_at(w, last)->file, item->file) != 0) {
            ++*files;
        }
        last = i;
        found = found == end ? i : found;
    }
    return found;
}

#define MATCH_SEVERAL 64u /* of more functions of one name the files must be equal */

/* Gives rows to the items of one name, which are those from first up to end. */
static void match_name(struct match_work *w, uint32_t first, uint32_t end)
{
    uint32_t files[2], left[2], before = w->out->row_count;
    /* Files that are equal on both sides: such items stand next to each other. */
    for (uint32_t i = first, next; i < end; i = next) {
        for (next = i + 1; next < end && strcmp(match_at(w, i)->file, match_at(w, next)->file) == 0; next++) {
            continue;
        }
        const bool both = match_at(w, i)->side != match_at(w, next - 1)->side;
        for (uint32_t k = i; both && k < next; k++) {
            match_at(w, k)->row = w->out->row_count;
        }
        w->out->row_count += both;
    }
    /* The pair of files with the most in common, until there is none. */
    for (uint32_t most = end - first <= MATCH_SEVERAL; most > 0;) {
        uint32_t best[2] = {first, first};
        most = 0;
        for (uint32_t i = first; i < end; i++) {
            for (uint32_t k = first; k < end; k++) {
                const struct match_item *x = match_at(w, i), *y = match_at(w, k);
                bool open = x->side == 0 && y->side == 1 && x->row == DIFF_NONE && y->row == DIFF_NONE;
                uint32_t common = open ? match_common(x->file, y->file) : 0;
                if (common > most) {
                    most = common;
                    best[0] = i;
                    best[1] = k;
                }
            }
        }
        if (most > 0) {
            match_give(w, first, end, best[0], w->out->row_count);
            match_give(w, first, end, best[1], w->out->row_count++);
        }
    }
    left[0] = match_left(w, first, end, 0, &files[0]);
    left[1] = match_left(w, first, end, 1, &files[1]);
    bool single = files[0] == 1 && files[1] == 1;
    if (single && (w->out->row_count == before || match_at(w, left[0])->file[0] == '\0' ||
                   match_at(w, left[1])->file[0] == '\0')) {
        match_give(w, first, end, left[0], w->out->row_count);
        match_give(w, first, end, left[1], w->out->row_count++);
        return;
    }
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t i; (i = match_left(w, first, end, s, &files[s])) < end;) {
            match_give(w, first, end, i, w->out->row_count++);
        }
    }
}

/* A side's functions in a row. */
struct match_sides {
    uint32_t count[2];
    uint32_t number; /* of the row, when some are empty */
};

static int match_compare_codes(const struct match_item *a, const struct match_item *b)
{
    int order = compare_u64(a->code, b->code);
    return order != 0 ? order : match_compare_texts(a->object, a->object_length, b->object, b->object_length);
}

static int match_compare_code(const void *context, uint32_t x, uint32_t y)
{
    const struct match_work *w = context;
    const struct match_item *a = &w->items[x], *b = &w->items[y];
    int order = match_compare_codes(a, b);
    return order != 0 ? order : compare_pairs(a->side, b->side, a->function, b->function);
}

/* The first of n items, which are in this order, that is not before like. */
static uint32_t match_find(const struct match_work *w, const uint32_t *order, uint32_t n, const struct match_item *like,
                           match_order *compare)
{
    uint32_t i;
    SORT_SEARCH(i, 0, n, compare(&w->items[order[i]], like) < 0);
    return i;
}

/* What a symbol says about the items of its name and its code. like: the symbol, on its side; order: n items, by code.
 * Of many items of one name it says something about those of its file only: else the time would grow with the square of
 * their number. */
static void match_symbol(const struct match_work *w, const struct match_item *like, uint64_t address,
                         const uint32_t *order, uint32_t n)
{
    match_order *compare = match_compare_names;
    uint32_t i = match_find(w, w->order, w->count, like, compare);
    if (i + MATCH_SEVERAL < w->count && compare(match_at(w, i + MATCH_SEVERAL), like) == 0) {
        compare = match_compare_files;
        i = match_find(w, w->order, w->count, like, compare);
    }
    for (; i < w->count && compare(match_at(w, i), like) == 0; i++) {
        struct match_item *item = match_at(w, i);
        item->idle |= item->side != like->side &&
                      (item->file[0] == '\0' || like->file[0] == '\0' || match_common(item->file, like->file) > 0);
    }
    /* More than two items of one code are not joined, and thousands of functions may have one. */
    i = like->code != 0 ? match_find(w, order, n, like, match_compare_codes) : n;
    if (i + 2 < n && match_compare_codes(&w->items[order[i + 2]], like) == 0) {
        return;
    }
    for (; i < n && match_compare_codes(&w->items[order[i]], like) == 0; i++) {
        struct match_item *item = &w->items[order[i]];
        uint64_t known = item->side == like->side ? match_function(w, item)->address : item->twin;
        item->common_code |= known != 0 && known != address;
        item->twin = item->side == like->side ? item->twin : address;
    }
}

/* Pairs what is left by code, and leaves out the rows that have become empty. */
static void match_renamed(struct arena *a, struct match_work *w)
{
    struct match_sides *rows = ARENA_ARRAY(a, (size_t)w->out->row_count + 1, struct match_sides);
    uint32_t *order = ARENA_ARRAY(a, (size_t)w->count * 2, uint32_t), n = 0, used = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        rows[w->items[i].row].count[w->items[i].side]++;
        if (w->items[i].code != 0) {
            order[n++] = i;
        }
    }
    sort_merge(order, order + w->count, n, match_compare_code, w);

    /* Items are looked up in the symbol tables of both sides. */
    for (uint32_t s = 0; s < 2; s++) {
        const struct diff_side *side = w->sides[s];
        for (uint32_t b = 0; b < side->build_count; b++) {
            const struct object *o = side->objects[b];
            struct match_item like = {.side = s};
            match_name_object(side, b, w->programs[s], &like);
            for (uint32_t i = 0; o != NULL && i < o->symbol_count; i++) {
                const struct object_symbol *symbol = &o->symbols[i];
                if (symbol->type == OBJECT_TYPE_FUNCTION || symbol->type == OBJECT_TYPE_IFUNC) {
                    like.name = object_name(o, symbol->name);
                    like.name_length = clone_base(like.name);
                    like.file = object_name(o, symbol->file);
                    like.hash = match_hash(&like);
                    like.code = symbol->code;
                    match_symbol(w, &like, symbol->address, order, n);
                }
            }
        }
    }

    /* Of the items of one code, a row of A and one of B become one. */
    for (uint32_t i = 0, next; i < n; i = next) {
        struct match_item *x = &w->items[order[i]], *y = x;
        for (next = i + 1; next < n && match_compare_codes(x, &w->items[order[next]]) == 0; next++) {
            y = &w->items[order[next]];
        }
        struct match_sides *to = &rows[x->row], *from = &rows[y->row];
        if (next - i == 2 && x->side != y->side && !x->idle && !y->idle && !x->common_code && !y->common_code &&
            to->count[0] + to->count[1] == 1 && from->count[0] + from->count[1] == 1) {
            from->count[y->side] = 0;
            to->count[y->side] = 1;
            y->row = x->row;
            x->renamed = y->renamed = true;
        }
    }
    for (uint32_t r = 0; r < w->out->row_count; r++) {
        rows[r].number = used;
        used += rows[r].count[0] + rows[r].count[1] > 0;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        w->items[i].row = rows[w->items[i].row].number;
    }
    w->out->row_count = used;
}

/* Returns whether the object of this name on a side has inlined the function. except: a build that is not looked at, or
 * NULL. */
static bool match_has_inlined(const struct match_work *w, const struct match_item *item, uint32_t s, const char *except)
{
    const struct diff_side *side = w->sides[s];
    for (uint32_t i = 0; i < side->build_count; i++) {
        struct match_item named;
        match_name_object(side, i, w->programs[s], &named);
        if (side->objects[i] != NULL && match_function(w, item)->kind == REPORT_FUNCTION &&
            (except == NULL || strcmp(side->builds[i], except) != 0) &&
            match_compare_texts(named.object, named.object_length, item->object, item->object_length) == 0 &&
            object_has_inlined(side->objects[i], item->name, item->name_length)) {
            return true;
        }
    }
    return false;
}

bool diff_match_has_inlined(const struct diff_match *m, const struct diff_side *const sides[2],
                            const char *const programs[2], uint32_t row, uint32_t side)
{
    const struct match_work w = {.sides = sides, .programs = programs};
    const uint32_t from = m->rows[row].count[side] > 0 ? side : 1 - side;
    struct match_item item;
    match_make_item(&w, from, m->member[from][m->rows[row].first[from]], &item);
    return match_has_inlined(&w, &item, side, NULL);
}

void diff_match_make(struct arena *a, const struct diff_side *const sides[2], const char *const programs[2],
                     struct diff_match *out)
{
    struct match_work w = {.sides = sides, .programs = programs, .out = out};
    uint32_t n = sides[0]->function_count + sides[1]->function_count;
    *out = (struct diff_match){.row_count = 0};
    w.items = ARENA_ARRAY(a, n, struct match_item);
    w.order = ARENA_ARRAY(a, (size_t)n * 2, uint32_t);
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < sides[s]->function_count; i++) {
            match_make_item(&w, s, i, &w.items[w.count]);
            w.order[w.count] = w.count;
            w.count++;
        }
    }
    sort_merge(w.order, w.order + n, n, match_compare, &w);
    for (uint32_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && match_compare_names(match_at(&w, i), match_at(&w, next)) == 0; next++) {
            continue;
        }
        match_name(&w, i, next);
    }
    match_renamed(a, &w);

    /* The members of each row, by a counting sort. */
    out->rows = ARENA_ARRAY(a, (size_t)out->row_count + 1, struct diff_row);
    for (uint32_t s = 0; s < 2; s++) {
        out->member[s] = ARENA_ARRAY(a, sides[s]->function_count, uint32_t);
        out->row_of[s] = ARENA_ARRAY(a, sides[s]->function_count, uint32_t);
    }
    for (uint32_t i = 0; i < n; i++) {
        out->rows[w.items[i].row].count[w.items[i].side]++;
    }
    for (uint32_t r = 1; r < out->row_count; r++) {
        for (uint32_t s = 0; s < 2; s++) {
            out->rows[r].first[s] = out->rows[r - 1].first[s] + out->rows[r - 1].count[s];
        }
    }
    uint32_t *filled = ARENA_ARRAY(a, (size_t)out->row_count * 2, uint32_t);
    for (uint32_t i = 0; i < n; i++) { /* by side and function: members ascend */
        const struct match_item *item = &w.items[i];
        const uint32_t s = item->side;
        struct diff_row *row = &out->rows[item->row];
        row->renamed |= item->renamed;
        if (row->count[1 - s] == 0) {
            /* One build has inlined the same on both sides. */
            const struct report_function *f = match_function(&w, item);
            const char *own = sides[s]->builds[f->build];
            row->idle |= item->idle || report_kind_is_class(f->kind);
            row->inlined |= match_has_inlined(&w, item, 1 - s, own);
        }
        out->member[s][row->first[s] + filled[item->row * 2 + s]++] = item->function;
        out->row_of[s][item->function] = item->row;
    }
}
