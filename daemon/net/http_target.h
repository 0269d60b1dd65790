/* What a request target and a Host may look like (RFC 3986, strictly). Pure. */
#ifndef PROFD_NET_HTTP_TARGET_H
#define PROFD_NET_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/* NULL if text is a target in origin-form that may be handed on, else the rule it breaks: it begins with one '/', has
 * only characters that RFC 3986 allows in path and query, percent signs with two digits, no encoded control character,
 * and its path no encoded slash or backslash and no segment "." or "..", encoded or not. O(n). */
const char *http_target_judge(const char *text, size_t n);

/* True for host or host:port, host being a name, an IPv4 address or an IPv6 address in brackets. */
bool http_host_valid(const char *text, size_t n);

/* True if the Host names this machine's loopback at that port: localhost, 127.0.0.1 or [::1], and the port unless it
 * is 80. */
bool http_host_local(const char *text, size_t n, unsigned port);

#endif
