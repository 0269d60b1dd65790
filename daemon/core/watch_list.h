/* The watch list of a configuration names uploads and functions that are counted for Prometheus. A line is
 * NAME=VALUE[,NAME=VALUE...]:FUNCTION[,FUNCTION...], as in service=api:parse,render. */
#ifndef PROFD_CORE_WATCH_LIST_H
#define PROFD_CORE_WATCH_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "proto/status.h"

#define WATCH_LIST_MOST 20u      /* watches */
#define WATCH_LIST_LABELS 8u     /* of one watch */
#define WATCH_LIST_FUNCTIONS 20u /* of one watch */
#define WATCH_LIST_BYTES 1024u   /* of one line */
#define WATCH_LIST_FUNCTION_BYTES 256u

struct watch {
    const char *name; /* the labels as they were written: "service=api" */
    size_t label_count, function_count;
    const char *labels[WATCH_LIST_LABELS]; /* "service=api" */
    const char *functions[WATCH_LIST_FUNCTIONS];
};

struct watch_list {
    size_t count;
    struct watch *watches;
};

/* Parses lines, one watch each, which end with a line feed or the text; NULL: no watches. Commas between parentheses or
 * angle brackets are part of a function. Everything lives in the arena. CONFIG with the rule and the value: a line that
 * is no watch or exceeds a limit, labels that occur in two lines, a function twice in one. NO_MEMORY. O(n). */
enum profd_status watch_list_parse(const char *text, struct arena *a, struct watch_list *out, struct profd_error *e);

/* True if a function that is shown by this name is meant by wanted: its whole name, or what stands before its first
 * parenthesis. O(n). */
bool watch_list_means(const char *wanted, const char *name);

#endif
