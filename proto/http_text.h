/* Characters of HTTP messages and URIs. Pure. */
#ifndef PROFD_PROTO_HTTP_TEXT_H
#define PROFD_PROTO_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool http_is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A character of a token (RFC 9110, 5.6.2). */
static inline bool http_is_token(char c)
{
    return http_is_alphanumeric(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* A character that stands for itself in a path (RFC 3986, 3.3), or a slash. A query may also have '?'. */
static inline bool http_is_path(char c)
{
    return http_is_alphanumeric(c) || (c != '\0' && strchr("-._~!$&'()*+,;=:@/", c) != NULL);
}

/* The value of a hexadecimal digit, or −1. */
static inline int http_hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a percent sign at text, of n bytes, encodes; −1 without two hexadecimal digits. */
static inline int http_percent_value(const char *text, size_t n)
{
    int high = n < 3 ? -1 : http_hex_value(text[1]), low = n < 3 ? -1 : http_hex_value(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Returns whether a Content-Type of n bytes is of a type, with parameters or without. */
static inline bool http_type_is(const char *field, size_t n, const char *type)
{
    const size_t size = strlen(type);
    return n >= size && memcmp(field, type, size) == 0 && (n == size || field[size] == ';');
}

/* Reason phrases of HTTP statuses (RFC 9110, 15): in the status line, and as titles of problem documents. */

/* "Not Found" for 404; "Error" for a status that profd does not send. Static. */
const char *http_phrase(int http_status);

#endif
