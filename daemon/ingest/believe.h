/* An upload as a stranger sent it becomes one that may be stored, or a sentence. */
#ifndef PROFD_INGEST_BELIEVE_H
#define PROFD_INGEST_BELIEVE_H

#include <stdint.h>

#include "core/arena.h"
#include "ingest/known.h"
#include "proto/counts.h"
#include "proto/message.h"
#include "proto/status.h"
#include "store/store.h"

/* Judges everything an upload says but its counts: ids, host, builds, labels, window (DECISIONS 30), bits. Labels come
 * out sorted and without empty values (an absent label equals ""). Arrays live in the arena; strings and counts stay
 * the message's. *builds is u->builds, for believe_counts to fill in the shares. */
enum profd_status believe_upload(uint32_t uid, int64_t received, const struct message_upload *m, struct arena *a,
                                 struct store_upload *u, struct store_build **builds, struct profd_error *e);

/* Decodes the counts, checks them against the stored executables, and fills in totals and the builds' shares. builds
 * are those of believe_upload. WRONG_BUILD depends on what is stored by now: the same upload may have been accepted
 * before. */
enum profd_status believe_counts(struct known *known, struct store_build *builds, struct store_upload *u,
                                 struct profd_error *e);
/* The same of counts that need not be decoded; u->counts is not looked at. */
enum profd_status believe_decoded(struct known *known, struct store_build *builds, struct store_upload *u,
                                  const struct counts *c, struct profd_error *e);

#endif
