#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"

enum profd_status list_run(const struct profctl_call *call, const struct list *list, struct profd_error *e)
{
    struct list_view l = {.list = *list, .call = call};
    const bool of_build = strstr(list->route, "{}") != NULL;
    char id[160] = "";
    TRY(profctl_choose_format(call, &l.format, e));
    if (of_build) {
        TRY(build_find(call, call->arguments[0], id, e));
    }
    ask_target_init(&l.target, list->route, id);
    const bool whole = profctl_value(call, "limit") || (list->limit_is_text && l.format != FORMAT_TEXT);
    if (list->ask) {
        TRY(list->ask(&l, e));
    }
    ask_target_add(&l.target, "limit", whole ? NULL : list->limit);
    TRY(ask_target_add_given(&l.target, call, list->parameters, e));
    TRY((list->is_one_page ? ask_fetch_object : ask_fetch_rows)(call, &l.target, &l.answer, e));
    FAIL_IF(!json_is_array(l.answer.rows), e, PROFD_MALFORMED, "malformed list from the daemon: no rows");
    TRY(list->prepare ? list->prepare(&l, e) : PROFD_OK);
    if (l.format == FORMAT_JSON) {
        return answer_print_json(&l.answer, e);
    }
    if (l.format == FORMAT_CSV && l.list.csv) {
        const json_t *row;
        size_t i;
        printf("%s\r\n", l.list.csv);
        json_array_foreach(l.answer.rows, i, row)
        {
            csv_print_row(row, l.list.csv);
            printf("\r\n");
        }
    } else if (l.list.empty && json_array_size(l.answer.rows) == 0) {
        puts(l.list.empty);
    } else if (l.list.print) {
        l.list.print(&l);
    } else {
        list_print_table(l.answer.rows, l.list.columns, l.list.column_count, l.list.tail);
    }
    return PROFD_OK;
}

void list_print_table(json_t *rows, const struct list_column *columns, size_t n, void (*tail)(json_t *row))
{
    int widths[LIST_COLUMNS_MOST];
    char out[LIST_CELL];
    json_t *row;
    size_t i;
    for (size_t k = 0; k < n; k++) {
        size_t width = strlen(columns[k].title);
        json_array_foreach(columns[k].width == LIST_FIT ? rows : NULL, i, row)
        {
            const size_t size = strlen(columns[k].cell(row, columns[k].field, out));
            width = size > width ? size : width;
        }
        widths[k] = columns[k].width != LIST_FIT ? columns[k].width
                    : width < LIST_FIT_MOST      ? -(int)width
                                                 : -LIST_FIT_MOST;
        printf("%s%*s", k > 0 ? " " : "", widths[k], columns[k].title);
    }
    printf("\n");
    json_array_foreach(rows, i, row)
    {
        for (size_t k = 0; k < n && columns[k].cell; k++) {
            printf("%s%*.*s", k > 0 ? " " : "", widths[k], columns[k].cut ? abs(widths[k]) : INT_MAX,
                   columns[k].cell(row, columns[k].field, out));
        }
        if (tail) {
            tail(row);
        }
        printf("\n");
    }
}

const char *cell_text(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_text(row, field);
}

const char *cell_base(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_base(row, field)[0] ? row_base(row, field) : row_text(row, field);
}

const char *cell_dash(json_t *row, const char *field, char out[LIST_CELL])
{
    const char *text = cell_text(row, field, out);
    return text[0] ? text : "-";
}

const char *cell_number(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, "%" PRIu64, row_number(row, field));
    return out;
}

const char *cell_amount(json_t *row, const char *field, char out[LIST_CELL])
{
    show_amount(row_real(row, field), out, LIST_CELL);
    return out;
}

const char *cell_yes(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_flag(row, field) ? "yes" : "no";
}

const char *cell_join(json_t *row, const char *field, char out[LIST_CELL])
{
    row_join(row, field, out, LIST_CELL);
    return out;
}

const char *cell_calls(json_t *row, const char *field, char out[LIST_CELL])
{
    const bool sampled = row_is_sampled(row);
    (void)snprintf(out, LIST_CELL, "%s%" PRIu64, sampled ? "~" : "", row_number(row, field));
    return sampled && row_number(row, field) == 0 ? "-" : out;
}

const char *cell_counted(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, "%s%" PRIu64, row_flag(row, "calls_sampled") ? "~" : "", row_number(row, field));
    return row_number(row, field) == 0 ? "-" : out;
}

static void csv_print_inside(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"') {
            putchar('"');
        }
        putchar(*c);
    }
}

static void csv_print_begin(const char *text)
{
    putchar('"');
    if (text[0] != '\0' && strchr("=+-@'", text[0])) {
        putchar('\'');
    }
}

void csv_print_text(const char *text)
{
    csv_print_begin(text);
    csv_print_inside(text);
    putchar('"');
}

void csv_print_row(const json_t *row, const char *members)
{
    for (const char *at = members; *at;) {
        char name[LIST_CELL];
        const size_t n = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        fputs(at > members ? "," : "", stdout);
        const json_t *value = json_object_get(row, name);
        if (json_is_string(value)) {
            csv_print_text(json_string_value(value));
        } else if (json_is_integer(value)) {
            printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        } else if (json_is_real(value)) {
            printf("%.17g", json_real_value(value));
        } else if (json_is_boolean(value)) {
            putchar(json_is_true(value) ? '1' : '0');
        } else if (json_is_array(value)) {
            for (size_t k = 0; k < json_array_size(value); k++) {
                const char *part = json_string_value(json_array_get(value, k));
                part = part != NULL ? part : "";
                if (k == 0) {
                    csv_print_begin(part);
                } else {
                    putchar(' ');
                }
                csv_print_inside(part);
            }
            if (json_array_size(value) > 0) {
                putchar('"');
            }
        }
        at += n + (at[n] == ',');
    }
}
