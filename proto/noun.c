#include "proto/noun.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define OPERATOR "operator"
#define OPERATOR_SIZE (sizeof OPERATOR - 1)

size_t noun_list_end(const char *text, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        const bool inside = i > 0 && (isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_');
        const size_t left = n - i;
        if (!inside && left > OPERATOR_SIZE && memcmp(text + i, OPERATOR, OPERATOR_SIZE) == 0) {
            /* A name such as "operator<<" or "operator()". */
            i += OPERATOR_SIZE;
            if (n - i >= 2 && (memcmp(text + i, "()", 2) == 0 || memcmp(text + i, ",(", 2) == 0)) {
                i += text[i] == ',' ? 1 : 2;
            } else {
                while (i < n && strchr("<>=-", text[i]) && text[i] != '\0') {
                    i++;
                }
            }
        }
        if (i >= n) {
            break;
        }
        depth += text[i] == '(' || text[i] == '<';
        depth -= text[i] == ')' || text[i] == '>';
        if (text[i] == ',' && depth <= 0) {
            return i;
        }
    }
    return n;
}
