/* Validators of answers: what was asked, and the state of the data it was asked of. */
#ifndef PROFD_QUERY_ETAG_H
#define PROFD_QUERY_ETAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/coding.h"
#include "store/store.h"

#define ETAG_SIZE 80

/* 32 hex digits, quoted: a strong validator. They are HMAC-SHA-256 of the epoch's number and the canonical question,
 * keyed with the epoch's salt: a reader cannot compute the number, which counts what all users have stored. */
void etag_make(const char *canonical, size_t n, const struct store_epoch *epoch, char out[ETAG_SIZE]);
/* True if an If-None-Match field (a list, weak or strong, or *) names the tag. Weak comparison (RFC 9110, 13.1.2). */
bool etag_match(const char *if_none_match, const char *etag);

/* The tag of the same answer in a coding: each has one of its own (RFC 9110, 8.8.3), "…-gzip". out may be etag. An etag
 * that is too long for that becomes "". */
void etag_code(const char *etag, enum coding coding, char out[ETAG_SIZE]);
/* As etag_match, for an answer that may be held in any coding: out is the tag that was named, the wanted coding's if
 * that was. "*" is whatever would be sent: out is etag. */
bool etag_match_coded(const char *if_none_match, const char *etag, enum coding wanted, char out[ETAG_SIZE]);

#endif
