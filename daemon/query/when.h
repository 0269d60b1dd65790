/* Times in parameters. */
#ifndef PROFD_QUERY_WHEN_H
#define PROFD_QUERY_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

/* RFC 3339 ("2026-11-21T15:48:00.5+01:00"), a date ("2026-11-21": its first moment, UTC), seconds or (from 12 digits)
 * milliseconds since the epoch, "now", and "now-1h" or "-1h" with s, m, h, d or w. name is the parameter's, for the
 * sentence. ns since the epoch, ≥ 1. BAD_QUERY otherwise. */
enum profd_status when_parse(const char *name, const char *text, int64_t now, int64_t *out, struct profd_error *e);

/* The texts of the parameters since and until; NULL, or 0 in the result: open. BAD_QUERY also if since is not before
 * until. */
enum profd_status when_parse_window(const char *since_text, const char *until_text, int64_t now, int64_t *since,
                                    int64_t *until, struct profd_error *e);

/* Is it a time that moves on: now, or before it? */
bool when_is_relative(const char *text);

#endif
