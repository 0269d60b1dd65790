/* The target of a request taken apart: path segments and parameters, percent-decoded, nothing guessed; and the times in
 * parameters. */
#ifndef PROFD_QUERY_PARAMS_H
#define PROFD_QUERY_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "proto/limits.h"
#include "proto/status.h"

#define PARAMS_SEGMENTS 8
#define PARAMS_COUNT 64

struct param {
    const char *name, *value;
};

/* Strings point into text. Not to be copied. */
struct params {
    size_t segment_count;
    const char *segments[PARAMS_SEGMENTS];
    size_t count;
    struct param items[PARAMS_COUNT];
    char text[LIMIT_QUERY_BYTES + 2];
};

/* target is origin-form: '/' segments, then optionally '?' and name=value joined by '&'. Bytes outside RFC 3986's
 * path and query characters must be percent-encoded; '+' is itself. What comes out is UTF-8 without control
 * characters. TOO_LARGE beyond LIMIT_QUERY_BYTES; NOT_FOUND beyond PARAMS_SEGMENTS; else BAD_QUERY with the offset or
 * the name. O(n). */
enum profd_status params_parse(const char *target, struct params *p, struct profd_error *e);

/* BAD_QUERY unless every parameter is in allowed (ended by NULL), or is `more` (NULL: none), and occurs once. An entry
 * "label.*" allows every name with that prefix; "match", "by", "watch" and "label.…" may be repeated, those of one side
 * ("a.match") too. */
enum profd_status params_check(const struct params *p, const char *const *allowed, const char *more,
                               struct profd_error *e);

/* Appends the path and every parameter, sorted by name: targets with the same text are the same query. build: the full
 * id for the path's segment PARAMS_BUILD; NULL: it is kept. */
#define PARAMS_BUILD 3 /* /api/v1/builds/{} */
void params_add_canonical(const struct params *p, const char *build, struct buffer *out);

/* Value of the first parameter of that name, or NULL. */
const char *params_find(const struct params *p, const char *name);

/* 1, yes, true: true; 0, no, false, or absent: false. BAD_QUERY otherwise. */
enum profd_status params_parse_flag(const struct params *p, const char *name, bool *out, struct profd_error *e);

/* A whole decimal number within [low, high]; *out keeps its value when the parameter is absent. BAD_QUERY otherwise. */
enum profd_status params_parse_number(const struct params *p, const char *name, unsigned long long low,
                                      unsigned long long high, unsigned long long *out, struct profd_error *e);

/* Times in parameters. */

/* RFC 3339 ("2026-11-21T15:48:00.5+01:00"), a date ("2026-11-21": its first moment, UTC), seconds or (from 12 digits)
 * milliseconds since the epoch, "now", and "now-1h" or "-1h" with s, m, h, d or w. name is the parameter's, for the
 * sentence. ns since the epoch, ≥ 1. BAD_QUERY otherwise. */
enum profd_status when_parse(const char *name, const char *text, int64_t now, int64_t *out, struct profd_error *e);

/* The texts of the parameters since and until; NULL, or 0 in the result: open. BAD_QUERY also if since is not before
 * until. */
enum profd_status when_parse_window(const char *since_text, const char *until_text, int64_t now, int64_t *since,
                                    int64_t *until, struct profd_error *e);

/* Returns whether the time is relative to now, so that it moves on. */
bool when_is_relative(const char *text);

#endif
