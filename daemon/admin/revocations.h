/* The file of what no restore brings back: revoked keys and used tokens, in the state directory. Append-only. */
#ifndef PROFD_ADMIN_REVOCATIONS_H
#define PROFD_ADMIN_REVOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define REVOCATIONS_HASH_SIZE 32

enum revocations_kind { REVOCATIONS_KEY, REVOCATIONS_TOKEN };
struct revocations;

/* Opens the file, made with mode 0600 if there is none, and reads it. Lines that were cut off, or not written, when
 * the power failed are ignored. CANT_CREATE, IO, NO_MEMORY; DAMAGED: a line is none. */
enum profd_status revocations_open(const char *state_dir, struct revocations **out, struct profd_error *e);
/* Accepts NULL. */
void revocations_close(struct revocations *r);

/* Writes lines of n hashes, one after the other, and syncs the file. IO or FULL: perhaps some are written. For one
 * thread at a time; the others see them after revocations_note. */
enum profd_status revocations_write(const struct revocations *r, enum revocations_kind kind, const uint8_t *hashes,
                                    size_t n, int64_t now, struct profd_error *e);

/* when: ns. For one thread, with revocations_has and revocations_keys. False when out of memory. */
bool revocations_note(struct revocations *r, enum revocations_kind kind, const uint8_t hash[REVOCATIONS_HASH_SIZE],
                      int64_t when);
bool revocations_has(const struct revocations *r, enum revocations_kind kind,
                     const uint8_t hash[REVOCATIONS_HASH_SIZE]);
/* The keys from number after on, in the order in which they came; *n of them. Borrowed until the next note. */
const uint8_t *revocations_keys(const struct revocations *r, uint64_t after, size_t *n);
/* When each of the keys from number 0 on was revoked: ns. Borrowed as they are. */
const int64_t *revocations_times(const struct revocations *r);

#endif
