#include "core/coding.h"

#include <string.h>
#include <strings.h>

#include "proto/http_text.h"

static const char *const NAMES[] = {"identity", "gzip", "zstd", "*"};

const char *coding_name(enum coding c)
{
    return NAMES[c];
}

static size_t skip_space(const char *text, size_t at, size_t n)
{
    while (at < n && (text[at] == ' ' || text[at] == '\t')) {
        at++;
    }
    return at;
}

/* "0.125", "1", "1.000": at most three decimals, at most 1. */
static bool take_weight(const char *text, size_t *at, size_t n, int *thousandths)
{
    int value, unit = 100;
    size_t i = *at;
    if (i >= n || (text[i] != '0' && text[i] != '1')) {
        return false;
    }
    value = (text[i++] - '0') * 1000;
    if (i < n && text[i] == '.') {
        for (i++; i < n && text[i] >= '0' && text[i] <= '9' && unit > 0; i++, unit /= 10) {
            value += (text[i] - '0') * unit;
        }
    }
    *at = i;
    *thousandths = value;
    return value <= 1000;
}

/* ";q=0.5" or nothing. */
static bool take_parameter(const char *text, size_t *at, size_t n, int *thousandths)
{
    size_t i = skip_space(text, *at, n);
    *thousandths = 1000;
    if (i >= n || text[i] != ';') {
        *at = i;
        return true;
    }
    i = skip_space(text, i + 1, n);
    if (i + 1 >= n || (text[i] | 0x20) != 'q' || text[i + 1] != '=') {
        return false;
    }
    i += 2;
    if (!take_weight(text, &i, n, thousandths)) {
        return false;
    }
    *at = skip_space(text, i, n);
    return true;
}

static void note(struct coding_wish *w, const char *name, size_t n, int thousandths)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (strlen(NAMES[i]) == n && strncasecmp(NAMES[i], name, n) == 0) {
            w->thousandths[i] = (short)(thousandths + 1);
        }
    }
    if (n == 6 && strncasecmp("x-gzip", name, n) == 0) { /* its old name (RFC 9110, 8.4.1.3) */
        w->thousandths[CODING_GZIP] = (short)(thousandths + 1);
    }
}

bool coding_wish_read(struct coding_wish *w, const char *text, size_t n)
{
    for (size_t at = 0; at < n; at++) {
        at = skip_space(text, at, n);
        size_t name = at;
        int thousandths;
        while (at < n && http_is_token(text[at])) {
            at++;
        }
        size_t size = at - name;
        if (size > 0) {
            if (!take_parameter(text, &at, n, &thousandths)) {
                return false;
            }
            note(w, text + name, size, thousandths);
        }
        if (at < n && text[at] != ',') {
            return false;
        }
    }
    return true;
}

/* A coding's own weight, or that of "*"; 0 if it is neither named nor meant. */
static int find_weight(const struct coding_wish *w, enum coding c)
{
    int own = w->thousandths[c];
    return own > 0 ? own : w->thousandths[CODING_COUNT];
}

bool coding_refuses_identity(const struct coding_wish *w)
{
    return find_weight(w, CODING_IDENTITY) == 1;
}

enum coding coding_choose(const struct coding_wish *w)
{
    enum coding best = CODING_GZIP;
    if (find_weight(w, CODING_ZSTD) >= find_weight(w, CODING_GZIP)) {
        best = CODING_ZSTD;
    }
    int weight = find_weight(w, best);
    if (weight > 1 && weight >= w->thousandths[CODING_IDENTITY]) {
        return best;
    }
    return coding_refuses_identity(w) ? CODING_NONE : CODING_IDENTITY;
}
