/* The comparison: what the daemon says it has against what it acknowledged. */
#ifndef PROFD_TESTS_CRASH_JUDGE_H
#define PROFD_TESTS_CRASH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/crash/daemon.h"
#include "tests/crash/stream.h"

/* Added up over a campaign. */
struct tally {
    uint64_t kills, cuts, rounds;             /* done */
    uint64_t acknowledged, repeated, refused; /* of finished databases */
    uint64_t lost, doubled;                   /* acknowledged uploads: not there; counted more than once */
    uint64_t half;                            /* uploads of which only a part is there */
    uint64_t damaged;                         /* databases that integrity_check or profctl verify finds fault with */
    uint64_t rollups, retired; /* in the end of each database: what must have happened for kills to hit it */
    uint64_t executables;      /* acknowledged, and looked for in the end */
    uint64_t checks, points, failed;
};

/* Uploads as the store has them, against what was acknowledged before it was asked. */
struct verdict {
    uint64_t present, lost, doubled, half, strange; /* strange: in the sums, never sent */
    uint64_t retired, retired_calls;                /* not there, and their day was to be removed */
    uint64_t stack_ticks;                           /* of those present, as their client sent them */
    uint64_t rollups;                               /* sums stored, by the daemon's metrics */
};

/* Asks the daemon for its sum and compares. With whole, every upload that was sent must be there; else only the
 * acknowledged ones. acked: states noted before, STREAM_IDS of them. False: it did not answer, and why says so. */
bool judge_sums(const struct daemon *d, const struct stream *s, const uint8_t *acked, bool whole, struct verdict *v,
                char why[512]);
/* The daemon's own totals, of a client that has settled: accepted = stored + retired, and these are the verdict's. */
bool judge_totals(const struct daemon *d, const struct stream *s, struct verdict *v, char why[512]);
/* The ticks of stacks by the daemon's report are the verdict's, of a client that has settled. */
bool judge_stacks(const struct daemon *d, const struct verdict *v, char why[512]);
/* An executable whose delivery was acknowledged has its names. */
bool judge_executable(const struct daemon *d, const struct stream *s, char why[512]);
/* The states as they are now; free() them. */
uint8_t *judge_note(const struct stream *s);
/* Adds a verdict up and says on standard output what is wrong; true: nothing. */
bool judge_add(struct tally *t, const struct verdict *v, const char *where);
/* PRAGMA integrity_check on a copy of a stopped daemon's files. */
bool judge_integrity(const struct daemon *d, const char *folder, char why[512]);
/* `profctl verify` against a living daemon, from the folder of the daemon's program. */
bool judge_ledger(const struct daemon *d, char why[512]);
/* One TAP point. */
void judge_point(struct tally *t, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
void judge_skip(struct tally *t, const char *what, const char *why);

#endif
