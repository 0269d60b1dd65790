/* Parses values of a configuration. CONFIG names key and value. */
#ifndef PROFD_BASE_CONFIG_CHECK_H
#define PROFD_BASE_CONFIG_CHECK_H

#include "base/config.h"

/* Parses "90s", "15m", "48h", "30d" or "4w" to nanoseconds, at most 100 years. "0" needs no unit. */
enum profd_status config_parse_age(const char *key, const char *text, int64_t *ns, struct profd_error *e);

/* Parses "4096", "64K", "512MiB" (powers of 1024) or "10GB" (powers of 1000) to bytes, below 2^63. */
enum profd_status config_parse_bytes(const char *key, const char *text, uint64_t *bytes, struct profd_error *e);

/* Splits HOST:PORT. HOST is a name, an IPv4 address, or an IPv6 address in brackets, of at most 255 bytes. Port 0 is
 * accepted. Returns false, with *out untouched, if text is anything else. O(n). */
bool config_parse_address(const char *text, struct config_address *out);

#endif
