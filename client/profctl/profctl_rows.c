#include "profctl/profctl_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl_output.h"
#include "profctl/terminal.h"

#define PAGE_MAX ((size_t)64 << 20)
#define PAGES_MAX 100000

struct rows {
    json_t *list;
    char *single; /* the daemon's own bytes where one page was all */
    size_t single_size;
};

static enum profd_status page_take(struct rows *r, const char *text, size_t n, char next[512], struct profd_error *e)
{
    json_error_t where;
    json_t *page = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    json_t *rows = json_object_get(page, "rows");
    if (!json_is_array(rows)) {
        json_decref(page);
        return profd_error_set(e, PROFD_MALFORMED, "malformed list from the daemon: %s", page ? "no rows" : where.text);
    }
    size_t count = json_array_size(rows);
    bool good = json_array_extend(r->list, rows) == 0;
    const char *cursor = json_string_value(json_object_get(page, "next"));
    (void)snprintf(next, 512, "%s", cursor ? cursor : "");
    json_decref(page);
    if (count == 0) {
        next[0] = '\0'; /* a cursor that leads nowhere */
    }
    return good ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu rows", count);
}

/* Strings of a row are cleaned in place, once: what is printed later needs no more care. */
static void row_clean(json_t *row)
{
    const char *key;
    json_t *value;
    json_object_foreach(row, key, value)
    {
        const char *text = json_string_value(value);
        size_t n = json_string_length(value);
        char *clean = text && n > 0 ? malloc(TERMINAL_BOUND(n)) : NULL;
        if (clean) {
            struct terminal_filter f = {.one_line = true};
            size_t size = terminal_filter_run(&f, text, n, clean);
            (void)json_string_setn(value, clean, size);
            free(clean);
        }
    }
}

static struct rows *rows_new(void)
{
    struct rows *r = calloc(1, sizeof *r);
    if (r && !(r->list = json_array())) {
        free(r);
        r = NULL;
    }
    return r;
}

enum profd_status rows_read(struct profd_conn *c, const struct ask_target *t, struct rows **out, struct profd_error *e)
{
    struct rows *r = rows_new();
    if (!r) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list");
    }
    enum profd_status status = PROFD_OK;
    char next[512] = "";
    for (int page = 0; status == PROFD_OK && (page == 0 || next[0]) && page < PAGES_MAX; page++) {
        struct ask_target target = *t;
        char *text = NULL;
        size_t n = 0;
        ask_target_add(&target, "cursor", next[0] ? next : NULL);
        status = ask_read(c, &target, PAGE_MAX, &text, &n, e);
        if (status == PROFD_OK) {
            status = page_take(r, text ? text : "", n, next, e);
        }
        if (status == PROFD_OK && page == 0 && !next[0]) {
            r->single = text;
            r->single_size = n;
            text = NULL;
        }
        free(text);
    }
    if (status != PROFD_OK) {
        rows_free(r);
        return status;
    }
    *out = r;
    return PROFD_OK;
}

enum profd_status rows_parse(const char *text, size_t n, struct rows **out, struct profd_error *e)
{
    struct rows *r = rows_new();
    char next[512];
    enum profd_status status =
        r ? page_take(r, text, n, next, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list");
    if (status != PROFD_OK) {
        rows_free(r);
        return status;
    }
    *out = r;
    return PROFD_OK;
}

enum profd_status rows_parse_object(const char *text, size_t n, struct rows **out, struct profd_error *e)
{
    struct rows *r = rows_new();
    json_error_t where;
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (!r || !json_is_object(object) || json_array_append(r->list, object) != 0) {
        const char *why = object ? "no object" : where.text;
        json_decref(object);
        rows_free(r);
        return profd_error_set(e, PROFD_MALFORMED, "malformed answer from the daemon: %s", why);
    }
    json_decref(object);
    *out = r;
    return PROFD_OK;
}

enum profd_status rows_read_object(struct profd_conn *c, const struct ask_target *t, struct rows **out,
                                   struct profd_error *e)
{
    char *text = NULL;
    size_t n = 0;
    enum profd_status status = ask_read(c, t, PAGE_MAX, &text, &n, e);
    if (status == PROFD_OK) {
        status = rows_parse_object(text ? text : "", n, out, e);
    }
    free(text);
    return status;
}

void rows_free(struct rows *r)
{
    if (r) {
        json_decref(r->list);
        free(r->single);
        free(r);
    }
}

size_t rows_count(const struct rows *r)
{
    return json_array_size(r->list);
}

const json_t *rows_list(const struct rows *r)
{
    return r->list;
}

const char *rows_text(const struct rows *r, size_t i, const char *field)
{
    json_t *row = json_array_get(r->list, i);
    if (!json_object_get(row, "\ncleaned")) {
        row_clean(row);
        (void)json_object_set_new(row, "\ncleaned", json_true());
    }
    const char *text = json_string_value(json_object_get(row, field));
    return text ? text : "";
}

const char *rows_pairs(const struct rows *r, size_t i, const char *field)
{
    json_t *row = json_array_get(r->list, i), *object = json_object_get(row, field), *value;
    char shown[256];
    const char *key;
    (void)snprintf(shown, sizeof shown, "\n%.200s", field); /* no field of the daemon's begins so */
    if (json_is_object(object) && !json_object_get(row, shown)) {
        char *text = NULL;
        size_t n = 0;
        FILE *stream = open_memstream(&text, &n);
        row_clean(object);
        json_object_foreach(object, key, value)
        {
            if (stream && json_is_string(value)) {
                (void)fprintf(stream, "%s%s=%s", ftell(stream) > 0 ? " " : "", key, json_string_value(value));
            }
        }
        if (stream && fclose(stream) == 0) {
            (void)json_object_set_new(row, shown, json_string(text));
        }
        free(text);
    }
    return rows_text(r, i, shown);
}

void rows_join(const struct rows *r, size_t i, const char *field, char *out, size_t size)
{
    const json_t *list = json_object_get(json_array_get(r->list, i), field);
    size_t used = 0;
    *out = '\0';
    for (size_t k = 0; k < json_array_size(list) && used < size; k++) {
        const char *text = json_string_value(json_array_get(list, k));
        used += (size_t)snprintf(out + used, size - used, "%s%s", k ? ", " : "", text ? text : "");
    }
}

uint64_t rows_number(const struct rows *r, size_t i, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(json_array_get(r->list, i), field));
    return value > 0 ? (uint64_t)value : 0;
}

double rows_real(const struct rows *r, size_t i, const char *field)
{
    return json_number_value(json_object_get(json_array_get(r->list, i), field));
}

bool rows_flag(const struct rows *r, size_t i, const char *field)
{
    return json_is_true(json_object_get(json_array_get(r->list, i), field));
}

void rows_set_flag(struct rows *r, const char *field, bool value)
{
    for (size_t i = 0; i < rows_count(r); i++) {
        (void)json_object_set_new(json_array_get(r->list, i), field, json_boolean(value));
    }
}

void rows_calls(const struct rows *r, size_t i, char *out, size_t size)
{
    const json_t *reasons = json_object_get(json_array_get(r->list, i), "inexact_reasons");
    const char *mark = "";
    for (size_t k = 0; k < json_array_size(reasons); k++) {
        const char *reason = json_string_value(json_array_get(reasons, k));
        mark = reason && strcmp(reason, "sampled") == 0 ? "~" : mark;
    }
    const uint64_t calls = rows_number(r, i, "calls");
    if (*mark != '\0' && calls == 0) { /* none was counted */
        (void)snprintf(out, size, "-");
    } else {
        (void)snprintf(out, size, "%s%" PRIu64, mark, calls);
    }
}

enum profd_status rows_print_json(const struct rows *r, struct profd_error *e)
{
    struct output out;
    json_t *whole = r->single ? NULL : json_pack("{s:O,s:n}", "rows", r->list, "next");
    char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
    json_decref(whole);
    if (!r->single && !text) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu rows", rows_count(r));
    }
    enum profd_status status = output_open(NULL, &out, e);
    if (status == PROFD_OK) {
        status =
            r->single ? output_write(&out, r->single, r->single_size, e) : output_write(&out, text, strlen(text), e);
        if (status == PROFD_OK && !r->single) {
            status = output_write(&out, "\n", 1, e);
        }
        enum profd_status closed = output_close(&out, true, e);
        status = status == PROFD_OK ? closed : status;
    }
    free(text);
    return status;
}

struct key {
    json_t *row;
    size_t place;
    const char *field;
    bool descending;
};

static int key_compare(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    json_t *x = json_object_get(a->row, a->field), *y = json_object_get(b->row, b->field);
    int order;
    if (json_is_string(x) && json_is_string(y)) {
        const char *p = json_string_value(x), *q = json_string_value(y), *slash;
        if (strcmp(a->field, "name") == 0) { /* of a path its last part, as it is shown */
            p = (slash = strrchr(p, '/')) != NULL ? slash + 1 : p;
            q = (slash = strrchr(q, '/')) != NULL ? slash + 1 : q;
        }
        order = strcmp(p, q);
    } else {
        double p = json_number_value(x), q = json_number_value(y);
        order = (p > q) - (p < q);
    }
    order = a->descending ? -order : order;
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

enum profd_status rows_sort(struct rows *r, const char *field, bool descending, struct profd_error *e)
{
    size_t n = rows_count(r);
    struct key *keys = calloc(n + 1, sizeof *keys);
    json_t *sorted = json_array();
    bool good = keys && sorted;
    for (size_t i = 0; good && i < n; i++) {
        keys[i] = (struct key){json_array_get(r->list, i), i, field, descending};
    }
    if (good) {
        qsort(keys, n, sizeof *keys, key_compare);
    }
    for (size_t i = 0; good && i < n; i++) {
        good = json_array_append(sorted, keys[i].row) == 0;
    }
    free(keys);
    if (!good) {
        json_decref(sorted);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu rows", n);
    }
    json_decref(r->list);
    free(r->single);
    r->list = sorted;
    r->single = NULL;
    return PROFD_OK;
}
