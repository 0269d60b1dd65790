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

/* ";q=0.5" or nothing. A weight has at most three decimals, and is at most 1. */
static bool take_parameter(const char *text, size_t *at, size_t n, int *thousandths)
{
    size_t i = skip_space(text, *at, n);
    *thousandths = 1000;
    if (i >= n || text[i] != ';') {
        *at = i;
        return true;
    }
    i = skip_space(text, i + 1, n);
    if (i + 2 >= n || (text[i] | 0x20) != 'q' || text[i + 1] != '=' || (text[i + 2] != '0' && text[i + 2] != '1')) {
        return false;
    }
    *thousandths = (text[i + 2] - '0') * 1000;
    i += 3;
    if (i < n && text[i] == '.') {
        int unit = 100;
        for (i++; i < n && text[i] >= '0' && text[i] <= '9' && unit > 0; i++, unit /= 10) {
            *thousandths += (text[i] - '0') * unit;
        }
    }
    *at = skip_space(text, i, n);
    return *thousandths <= 1000;
}

bool coding_wish_read(struct coding_wish *w, const char *text, size_t n)
{
    for (size_t at = 0; at < n; at++) {
        at = skip_space(text, at, n);
        const char *name = text + at;
        int thousandths;
        while (at < n && http_is_token(text[at])) {
            at++;
        }
        const size_t size = (size_t)(text + at - name);
        if (size > 0 && !take_parameter(text, &at, n, &thousandths)) {
            return false;
        }
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && size > 0; i++) {
            /* "x-gzip" is the old name of gzip (RFC 9110, 8.4.1.3). */
            const bool old = i == CODING_GZIP && size == 6 && strncasecmp("x-gzip", name, size) == 0;
            if (old || (strlen(NAMES[i]) == size && strncasecmp(NAMES[i], name, size) == 0)) {
                w->thousandths[i] = (short)(thousandths + 1);
            }
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
