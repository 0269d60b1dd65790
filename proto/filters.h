/* The seccomp filters of a process, as /proc/PID/status shows those of its first thread. */
#ifndef PROFD_PROTO_FILTERS_H
#define PROFD_PROTO_FILTERS_H

#include <stdint.h>

/* Returns the number in the line that begins with name; 0 if there is no such line. */
static inline uint32_t filters_number(const char *status, const char *name)
{
    for (const char *line = status; *line; line++) {
        const char *at = line, *word = name;
        uint32_t value = 0;

        while (*word && *at == *word) {
            at++;
            word++;
        }
        while (!*word && (*at == '\t' || *at == ' ')) {
            at++;
        }
        for (; !*word && *at >= '0' && *at <= '9' && value < UINT32_MAX / 10 - 1; at++) {
            value = value * 10 + (uint32_t)(*at - '0');
        }
        if (!*word) {
            return value;
        }
        while (*line && *line != '\n') {
            line++;
        }
        if (!*line) {
            return 0;
        }
    }
    return 0;
}

/* Returns the number of filters; strict mode is one more. Linux before 5.9 does not state the number, and a process
 * with filters then has one. status ends with a NUL. */
static inline uint32_t filters_count(const char *status)
{
    const uint32_t n = filters_number(status, "Seccomp_filters:"), mode = filters_number(status, "Seccomp:");

    return n + (mode == 1 || (mode == 2 && n == 0));
}

#endif
