/* Parses durations, sizes and percentages of a configuration. */
#ifndef PROFD_DAEMON_CONFIG_UNITS_H
#define PROFD_DAEMON_CONFIG_UNITS_H

#include <stdint.h>

#include "proto/status.h"

/* "90s", "15m", "48h", "30d", "4w" as nanoseconds, at most 100 years; "0" needs no unit. CONFIG names key and value. */
enum profd_status config_parse_age(const char *key, const char *text, int64_t *ns, struct profd_error *e);

/* "4096", "64K", "512MiB" (powers of 1024), "10GB" (powers of 1000) as bytes, below 2^63. CONFIG names key and value.
 */
enum profd_status config_parse_bytes(const char *key, const char *text, uint64_t *bytes, struct profd_error *e);

/* "50%", from 1% to 100%. CONFIG names key and value. */
enum profd_status config_parse_percent(const char *key, const char *text, unsigned *percent, struct profd_error *e);

#endif
