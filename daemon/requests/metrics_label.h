/* A label's value in the text format of Prometheus. */
#ifndef PROFD_REQUESTS_METRICS_LABEL_H
#define PROFD_REQUESTS_METRICS_LABEL_H

/* Writes text with backslash, quote and line feed escaped, at most 2 bytes for each of its own; returns the end. */
static inline char *metrics_put_value(char *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n') {
            *to++ = '\\';
        }
        *to++ = *text == '\n' ? 'n' : *text;
    }
    return to;
}

#endif
