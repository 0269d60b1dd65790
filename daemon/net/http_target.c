#include "net/http_target.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/http_text.h"

#define HTTP_HOST_MAX 255

/* One character or encoded byte at text; *size is how long it is. */
static const char *target_judge_one(const char *text, size_t n, bool query, char *byte, size_t *size)
{
    if (*text != '%') {
        *byte = *text;
        *size = 1;
        return http_is_path(*text) || (query && *text == '?')
                   ? NULL
                   : "the request target contains a character that must be percent-encoded";
    }
    int value = http_percent_value(text, n);
    if (value < 0) {
        return "the request target contains a percent sign without two hexadecimal digits";
    }
    if (value < 0x20 || value == 0x7f) {
        return "the request target contains an encoded control character";
    }
    if (!query && (value == '/' || value == '\\')) {
        return "the request path contains an encoded slash";
    }
    *byte = (char)value;
    *size = 3;
    return NULL;
}

const char *http_target_judge(const char *text, size_t n)
{
    bool query = false;
    size_t segment = 0, dots = 0; /* bytes of the current path segment, and how many of them are dots */
    if (n == 0 || text[0] != '/' || (n > 1 && text[1] == '/')) {
        return "the request target must begin with one slash";
    }
    for (size_t at = 1, size = 0; at <= n; at += size) {
        char byte = '/';
        size = 1;
        bool ends = at == n || (!query && (text[at] == '/' || text[at] == '?'));
        if (!query && ends && dots == segment && (dots == 1 || dots == 2)) {
            return "the request path has a segment of dots";
        }
        if (at == n) {
            break;
        }
        if (ends) {
            query = text[at] == '?';
            segment = dots = 0;
            continue;
        }
        const char *fault = target_judge_one(text + at, n - at, query, &byte, &size);
        if (fault != NULL) {
            return fault;
        }
        segment++;
        dots += byte == '.';
    }
    return NULL;
}

/* ":" and 1–5 digits up to 65535, or nothing. */
static bool host_port_valid(const char *text, size_t n)
{
    uint32_t port = 0;
    if (n == 0) {
        return true;
    }
    if (n < 2 || n > 6 || text[0] != ':') {
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    return port <= 65535;
}

bool http_host_valid(const char *text, size_t n)
{
    size_t i = 0;
    if (n == 0 || n > HTTP_HOST_MAX) {
        return false;
    }
    if (text[0] == '[') {
        for (i = 1; i < n && (http_hex_value(text[i]) >= 0 || text[i] == ':' || text[i] == '.'); i++) {
        }
        return i > 2 && i < n && text[i] == ']' && host_port_valid(text + i + 1, n - i - 1);
    }
    while (i < n && (http_is_alphanumeric(text[i]) || text[i] == '.' || text[i] == '-' || text[i] == '_')) {
        i++;
    }
    return i > 0 && host_port_valid(text + i, n - i);
}

bool http_host_local(const char *text, size_t n, unsigned port)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char full[32];
        int size = snprintf(full, sizeof full, "%s:%u", names[i], port);
        if (size > 0 && (size_t)size == n && strncasecmp(text, full, n) == 0) {
            return true;
        }
        if (port == 80 && strlen(names[i]) == n && strncasecmp(text, names[i], n) == 0) {
            return true;
        }
    }
    return false;
}
