/* Decides whether anything may be written. The writer's thread publishes the store's errors after each batch; the loop
 * takes them over. An input/output error or damage ends writing for good. A full disk ends writing until
 * there is space again. */
#ifndef PROFD_WRITER_HEALTH_H
#define PROFD_WRITER_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/store.h"

/* Disk space reserved for removals: a file of allocated blocks beside the database. A removal writes before it frees:
 * the write-ahead log, and the pages of the rows that change. On a full disk the file is truncated, so that the removal
 * can use its blocks. */

/* One full write-ahead log (16 MiB, SQLITE_WAL_FRAMES) and as much again for the pages of a delete; on a small disk an
 * eighth of it. */
#define RESERVE_BYTES (UINT64_C(32) << 20)
#define RESERVE_PART 8u

enum reserve_state {
    RESERVE_MISSING, /* it cannot be made here for another reason than space: see why */
    RESERVE_HELD,
    RESERVE_GIVEN_UP, /* there is no space for it now */
};

struct reserve {
    char path[4096];
    enum reserve_state state;
    uint64_t bytes;         /* held */
    struct profd_error why; /* of the latest attempt that failed */
};

/* Looks for the reserve of an earlier process in the directory. Allocates nothing. TOO_LARGE: the path is too long. */
enum profd_status reserve_open(struct reserve *r, const char *directory, struct profd_error *e);
/* Creates or extends the reserve if the file system has space for it and a quarter more. Blocks are really allocated
 * (posix_fallocate): if the file system only promises them, because of compression or sparse files, the reserve is
 * MISSING. Cheap if the reserve is held or there is no space. */
void reserve_take(struct reserve *r);
/* Returns the blocks to the file system. Returns false if there were none. */
bool reserve_give_up(struct reserve *r);
/* Returns "held", "given-up" or "missing". */
const char *reserve_name(enum reserve_state state);

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
/* Checks whether data may be stored now. FULL while the reserve is given up, because its space is for removals. Creates
 * the reserve again if there is space. */
enum profd_status space_admit(struct space *p, struct store *store, struct profd_error *e);
/* Call it after a removal that found no space. Returns whether the reserve was given up, so that the removal should be
 * tried again. */
bool space_give_up(struct space *p);

/* On the loop. */
/* Changes the limits of the configuration; the writer uses them for the next batch. */
void space_set_limits(struct space *p, uint64_t keep_bytes, unsigned user_share);
/* Checks the disk; call it once a second. Returns whether the writer should check, too, because the reserve was given
 * up and may be created again. */
bool space_look(struct space *p, struct health *h);

/* Returns the state of the reserve, and its bytes. From any thread. */
enum reserve_state space_get_reserve(const struct space *p, uint64_t *bytes);

/* state_dir is for sentences and must outlive the health. */
enum profd_status health_new(const char *state_dir, struct health **out, struct profd_error *e);
/* Accepts NULL. */
void health_free(struct health *h);

/* Publishes the store's health, on the writer's thread. Cheap if nothing has changed since the last call. */
void health_publish(struct health *h, const struct store_health *now);

/* Everything below belongs to the loop's thread. */
enum health_change { HEALTH_SAME, HEALTH_FAILED, HEALTH_DAMAGED };
/* Takes over the published health. Returns FAILED or DAMAGED once, at the first call after the change. keep_full: a
 * write that succeeded does not mean that there is space again. O(1). */
enum health_change health_update(struct health *h, bool keep_full);

/* Returns IO, with the reason, if nothing is written any more. A full disk is not checked: the next write finds out. */
enum profd_status health_check(const struct health *h, struct profd_error *e);
/* Return the reason of a failure, or of a full disk, or NULL. Valid until the next call of a function above. */
const char *health_get_failure(const struct health *h);
const char *health_get_full(const struct health *h);

#endif
