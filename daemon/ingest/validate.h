/* Validates an upload from an untrusted sender, or explains in a sentence why it is refused. */
#ifndef PROFD_INGEST_VALIDATE_H
#define PROFD_INGEST_VALIDATE_H

#include <stdint.h>

#include "core/arena.h"
#include "ingest/build_cache.h"
#include "proto/counts.h"
#include "proto/message.h"
#include "proto/status.h"
#include "store/store.h"

/* Validates everything in an upload but its counts: ids, host, builds, labels, window, bits. Labels are
 * sorted, and empty values are removed (an absent label equals ""). Arrays live in the arena; strings and counts stay
 * the message's. *builds is u->builds, in which the validation of the counts fills in the shares. */
enum profd_status validate_upload(uint32_t uid, int64_t received, const struct message_upload *m, struct arena *a,
                                  struct store_upload *u, struct store_build **builds, struct profd_error *e);

/* Decodes the counts, checks them against the stored executables, and fills in totals and the builds' shares. builds
 * are those of validate_upload. WRONG_BUILD depends on what is stored by now: the same upload may have been accepted
 * before. If stacks have return addresses that cannot be (bounds_cut_stacks), the counts without these are encoded into
 * *cut, a new block that the caller frees, and u refers to it. */
enum profd_status validate_counts(struct build_cache *cache, struct store_build *builds, struct store_upload *u,
                                  uint8_t **cut, struct profd_error *e);
/* The same of counts that need not be decoded; u->counts is not looked at. Return addresses of stacks that cannot be
 * are cut in c, and *cut becomes true. */
enum profd_status validate_decoded(struct build_cache *cache, struct store_build *builds, struct store_upload *u,
                                   struct counts *c, bool *cut, struct profd_error *e);

#endif
