/* Harvests of processes that live. */
#ifndef PROFD_TESTS_STORE_HARVEST_FIXTURE_H
#define PROFD_TESTS_STORE_HARVEST_FIXTURE_H

#include "proto/counts.h"
#include "tests/contract/store/upkeep_fixture.h"

#define MINUTE (HOUR / 60)
#define START (MIDNIGHT + 12 * HOUR)

struct made_harvest {
    struct made m;
    struct store_upload h;
    char snapshot[64];
};

/* The harvest of a process that follows generation base: counts as make_counted's for n, snapshot "UID/PROCESS/base +
 * 1". n 0: nothing new. Freed by harvest. */
void make_harvest(struct made_harvest *x, uint32_t uid, unsigned process, uint64_t base, int64_t end, uint64_t n);
/* Puts other counts in. */
void replace_counts(struct made_harvest *x, const struct counts *c);
enum store_outcome harvest(struct fixture *f, struct made_harvest *x);
/* make_harvest and harvest, which must be HARVESTED. */
void harvest_one(struct fixture *f, uint32_t uid, unsigned process, uint64_t base, int64_t end, uint64_t n);
void free_harvest(struct made_harvest *x);

/* As the writing handle has them; as the reading one sees it. */
struct store_totals totals(struct fixture *f);
uint64_t epoch_of(struct fixture *f, struct store_scope scope, const char *id);
/* "GENERATION SNAPSHOT" of a process, "0" if there is none. */
const char *durable(struct fixture *f, uint32_t uid, unsigned process);
/* "UID/PROCESS " of those that live, ascending. */
const char *list_living(struct fixture *f);
/* What the only single upload of the usual program holds: "BIN=TICKS … | TO:CALLS …" */
const char *show_counts(struct fixture *f);

#endif
