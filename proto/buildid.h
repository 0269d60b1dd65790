/* The name of a build: its GNU build-id, or a hash of its executable sections where it has none. */
#ifndef PROFD_PROTO_BUILDID_H
#define PROFD_PROTO_BUILDID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define BUILDID_BYTES_MAX 64
#define BUILDID_TEXT_SIZE (2 * BUILDID_BYTES_MAX + 1)

/* text is 2–128 lowercase hexadecimal digits (an even number), or "sha256-" and 64 of them. Compare with strcmp. */
struct buildid {
    char text[BUILDID_TEXT_SIZE];
};

/* Makes a build-id of the n descriptor bytes of an NT_GNU_BUILD_ID note. REFUSED unless 1 ≤ n ≤ 64. */
enum profd_status buildid_from_note(const uint8_t *bytes, size_t n, struct buildid *id, struct profd_error *e);

/* Makes "sha256-…" of the hash of address, size and bytes of each executable PROGBITS section. */
void buildid_from_sha256(const uint8_t hash[32], struct buildid *id);

/* Parses a text of n bytes, which needs no NUL; upper case is folded. REFUSED, with the reason, if it is no build-id.
 */
enum profd_status buildid_parse(const char *text, size_t n, struct buildid *id, struct profd_error *e);

/* Returns whether a prefix may be searched: at least 4 characters of the alphabet above, "sha256-" included. */
bool buildid_prefix_valid(const char *text, size_t n);

#endif
