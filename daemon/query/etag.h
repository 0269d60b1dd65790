/* Validators of answers: what was asked, and the state of the data it was asked of. */
#ifndef PROFD_QUERY_ETAG_H
#define PROFD_QUERY_ETAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETAG_SIZE 80

/* "<16 hex digits of SHA-256 of the canonical question>-<epoch>", quoted: a strong validator. */
void etag_make(const char *canonical, size_t n, uint64_t epoch, char out[ETAG_SIZE]);
/* True if an If-None-Match field (a list, weak or strong, or *) names the tag. Weak comparison (RFC 9110, 13.1.2). */
bool etag_match(const char *if_none_match, const char *etag);

#endif
