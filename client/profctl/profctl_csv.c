#include "profctl/profctl_csv.h"

#include <stdio.h>
#include <string.h>

static void print_inside(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"') {
            putchar('"');
        }
        putchar(*c);
    }
}

static void print_begin(const char *text)
{
    putchar('"');
    if (text[0] != '\0' && strchr("=+-@'", text[0])) {
        putchar('\'');
    }
}

void csv_print_text(const char *text)
{
    print_begin(text);
    print_inside(text);
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
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            const char *text = json_string_value(json_array_get(value, i));
            text = text != NULL ? text : "";
            if (i == 0) {
                print_begin(text);
            } else {
                putchar(' ');
            }
            print_inside(text);
        }
        if (json_array_size(value) > 0) {
            putchar('"');
        }
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
