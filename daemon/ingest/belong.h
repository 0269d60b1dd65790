/* Do these counts belong to the executables that are stored for their builds? (DECISIONS 13) */
#ifndef PROFD_INGEST_BELONG_H
#define PROFD_INGEST_BELONG_H

#include <stdint.h>

#include "ingest/known.h"
#include "proto/counts.h"
#include "proto/status.h"
#include "store/store.h"

/* Checks the counts of an upload against the bounds of every build whose object is known to its uid:
 * - of an imported gmon.out (INEXACT_CALLER_BUCKET): the program's histograms span exactly __executable_start, rounded
 * down to 4, to etext, rounded up to 4, where the program has these symbols;
 * - every histogram overlaps code, and so does every bin with ticks;
 * - every arc end is in code; a caller may be the address behind it, to which its last call would return. The caller of
 * an imported arc is rounded down to 16, so up to 15 bytes more are allowed. The callee of an imported arc may lie
 * outside when the symbols have proven the file to belong: glibc records calls into shared libraries built with -pg at
 * addresses outside the executable. WRONG_BUILD with the values otherwise. O((bins + arcs) log ranges), in practice
 * O(bins + arcs). */
enum profd_status belong_check(struct known *known, const struct store_upload *u, const struct counts *c,
                               struct profd_error *e);

#endif
