#include "proto/name_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const char OPERATOR[] = "operator";

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Bytes of a name such as "operator<<" or "operator()" at the beginning of the text; 0 if there is none. */
static size_t find_operator(const char *text, size_t n)
{
    size_t end = sizeof OPERATOR - 1;
    if (n <= end || memcmp(text, OPERATOR, end) != 0) {
        return 0;
    }
    if (n - end >= 2 && (memcmp(text + end, "()", 2) == 0 || memcmp(text + end, ",(", 2) == 0)) {
        return end + (text[end] == ',' ? 1 : 2);
    }
    while (end < n && strchr("<>=-", text[end]) && text[end] != '\0') {
        end++;
    }
    return end;
}

size_t name_list_end(const char *text, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        i += i == 0 || !is_word(text[i - 1]) ? find_operator(text + i, n - i) : 0;
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
