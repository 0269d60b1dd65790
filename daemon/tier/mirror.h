/* Mirrors what other centres have sealed, and what this one had sealed before it was restored from a backup: the
 * database gets a stub of each sum of their blocks, one block after the other, and reports read the sums as they read
 * those of this centre. A thread of its own talks to ClickHouse; the database changes in small jobs of the writer. What
 * ClickHouse says may be false: a block that breaks a rule is refused as a whole, and named. Killed anywhere, it goes
 * on at the next start. */
#ifndef PROFD_TIER_MIRROR_H
#define PROFD_TIER_MIRROR_H

#include "tier/seal.h"

#define MIRROR_CENTRES_SHOWN 32u

struct mirror;

/* archive: reads the counts of days. All parts outlive the mirror. */
enum profd_status mirror_start(const struct sealer_config *config, const struct store_archive *archive,
                               struct mirror **out, struct profd_error *e);
bool mirror_is_idle(const struct mirror *m);
/* Begins nothing more, and ends the statement that runs. */
void mirror_stop(struct mirror *m);
/* After the writer. Accepts NULL. */
void mirror_free(struct mirror *m);

/* As of the latest look at the manifest. */
struct mirror_counts {
    size_t centre_count;
    struct store_tier_centre centres[MIRROR_CENTRES_SHOWN];
    bool adopting;     /* this centre was restored, and reads what it had sealed: uploads of hosts wait */
    uint64_t failures; /* since the start */
    char failure[512], refused[512], twins[256]; /* why the latest step failed, a block was refused; centres of one
                                                    name. "": not so */
};
void mirror_get_counts(const struct mirror *m, struct mirror_counts *out);

#endif
