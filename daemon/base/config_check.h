/* Parses values of a configuration. CONFIG names key and value. */
#ifndef PROFD_BASE_CONFIG_CHECK_H
#define PROFD_BASE_CONFIG_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "proto/status.h"

/* "90s", "15m", "48h", "30d", "4w" as nanoseconds, at most 100 years; "0" needs no unit. */
enum profd_status config_parse_age(const char *key, const char *text, int64_t *ns, struct profd_error *e);

/* "4096", "64K", "512MiB" (powers of 1024), "10GB" (powers of 1000) as bytes, below 2^63. */
enum profd_status config_parse_bytes(const char *key, const char *text, uint64_t *bytes, struct profd_error *e);

/* Takes HOST:PORT apart: a name, an IPv4 address, or an IPv6 address in brackets; at most 255 bytes; port 0 is one.
 * False: text is not that; *out is untouched. O(n). */
bool config_parse_address(const char *text, struct config_address *out);

#endif
