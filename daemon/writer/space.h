/* Disk space of the state directory: whether uploads may be stored, the reserve for removals, and what pages show about
 * both. */
#ifndef PROFD_WRITER_SPACE_H
#define PROFD_WRITER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/reserve.h"
#include "proto/status.h"
#include "store/store.h"

struct health;
struct space;

struct space_config {
    const char *state_dir; /* must outlive the space */
    uint64_t keep_bytes;   /* 0: no limit */
    unsigned user_share;   /* percent; 100: no bound */
};

/* Called before the database is opened, which needs some pages of disk: gives up the reserve of an earlier process if
 * the disk is full. */
enum profd_status space_open(const struct space_config *config, struct space **out, struct profd_error *e);
/* Accepts NULL. */
void space_close(struct space *p);
/* Creates the reserve if there is space. Called when the database is open and before the first answer, because a
 * missing reserve means a full disk. */
void space_keep(struct space *p);

/* On the writer's thread. */
/* Whether data may be stored now. FULL while the reserve is given up, because its space is for removals. Creates the
 * reserve again if there is space. */
enum profd_status space_admit(struct space *p, struct store *store, struct profd_error *e);
/* After a removal found no space: true if the reserve was given up, so that the removal should be tried again. */
bool space_give_up(struct space *p);

/* On the loop. */
/* Changes the limits of the configuration; the writer uses them for the next batch. */
void space_set_limits(struct space *p, uint64_t keep_bytes, unsigned user_share);
/* Checks the disk, once a second. True if the writer should check, too, because the reserve was given up and may be
 * created again. */
bool space_look(struct space *p, struct health *h);

/* Copies of what is known of the reserve; from any thread. */
enum reserve_state space_get_reserve(const struct space *p, uint64_t *bytes);

#endif
