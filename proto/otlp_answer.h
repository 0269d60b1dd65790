/* Reads what a receiver of OTLP/HTTP answers to profiles. Pure. */
#ifndef PROFD_PROTO_OTLP_ANSWER_H
#define PROFD_PROTO_OTLP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define OTLP_PATH "/v1development/profiles"

/* Returns whether the same request may be sent again later. */
bool otlp_is_busy(long http_status);

/* Judges an answer; n bytes of its body are known. from names the receiver in the sentences.
 * PROFD_OK: the receiver has all profiles, and warning has its warning, "" if there is none. REFUSED: it rejected
 * profiles, or the request, and sending them again does not help. UNAVAILABLE: otlp_is_busy. FORBIDDEN: 401 or 403.
 * TOO_LARGE: 413. PROTOCOL: this is not an answer of a receiver. */
enum profd_status otlp_judge(const char *from, long http_status, const uint8_t *body, size_t n, char *warning,
                             size_t warning_size, struct profd_error *e);

#endif
