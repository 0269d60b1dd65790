/* Sums of past days that the tier keeps: blocks, and what the database keeps of them. */
#include "store/sqlite.h"

void store_set_archive(struct store *s, const struct store_archive *archive)
{
    s->archive = archive;
}

void store_set_tier(struct store *s, bool tier)
{
    s->tier = tier;
}
