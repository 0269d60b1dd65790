#include "profctl/profctl_csv.h"

#include <stdio.h>
#include <string.h>

void csv_print_text(const char *text)
{
    putchar('"');
    if (text[0] != '\0' && strchr("=+-@'", text[0])) {
        putchar('\'');
    }
    for (const char *c = text; *c; c++) {
        if (*c == '"') {
            putchar('"');
        }
        putchar(*c);
    }
    putchar('"');
}

static void print_value(const json_t *value)
{
    if (json_is_string(value)) {
        csv_print_text(json_string_value(value));
    } else if (json_is_integer(value)) {
        printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        printf("%.17g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        putchar(json_is_true(value) ? '1' : '0');
    }
}

void csv_print_fields(const json_t *row, const char *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", stdout);
        print_value(json_object_get(row, fields[i]));
    }
}

void csv_print_rows(const json_t *list, const char *const *fields, size_t count)
{
    const json_t *row;
    size_t i;
    for (i = 0; i < count; i++) {
        printf("%s%s", i > 0 ? "," : "", fields[i]);
    }
    printf("\r\n");
    json_array_foreach(list, i, row)
    {
        csv_print_fields(row, fields, count);
        printf("\r\n");
    }
}
