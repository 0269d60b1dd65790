#include "profctl/profctl_csv.h"

#include <stdio.h>

void csv_print_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++) {
        if (*c == '"') {
            putchar('"');
        }
        putchar(*c);
    }
    putchar('"');
}
