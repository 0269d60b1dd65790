/* Moves the sums of past days to ClickHouse, one block after the other. A thread of its own talks to
 * ClickHouse; the database changes in jobs of the writer. Killed anywhere, it goes on at the next start. */
#ifndef PROFD_TIER_SEAL_H
#define PROFD_TIER_SEAL_H

#include "tier/steps.h"

struct sealer;

/* All parts of the config outlive the sealer. */
enum profd_status sealer_start(const struct sealer_config *config, struct sealer **out, struct profd_error *e);
bool sealer_is_idle(const struct sealer *s);
/* Begins nothing more, and ends the statement that runs. */
void sealer_stop(struct sealer *s);
/* After the writer. Accepts NULL. */
void sealer_free(struct sealer *s);

/* As of the latest step. */
struct sealer_counts {
    struct store_tier_totals totals;
    uint64_t failures; /* since the start */
    double lag;        /* seconds since the oldest day that waits could have been sealed */
    char failure[512]; /* why the latest step failed; "": it did not */
};
void sealer_get_counts(const struct sealer *s, struct sealer_counts *out);

#endif
