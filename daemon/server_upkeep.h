/* Upkeep on the writing thread, verification on a thread of its own, and what the metrics say about both. Private to
 * server*.c. */
#ifndef PROFD_DAEMON_SERVER_UPKEEP_H
#define PROFD_DAEMON_SERVER_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "admin/upkeep.h"
#include "admin/verify.h"
#include "net/work.h"
#include "proto/status.h"
#include "store/store.h"

struct server;
struct server_upkeep;
struct server_scrub;

/* server_upkeep.c: slices of upkeep, put to the writer one at a time. */
enum profd_status server_upkeep_start(struct server *s, struct profd_error *e);
/* Something was deleted: its space is to be reclaimed now and not in a while. */
void server_upkeep_hurry(struct server *s);
/* After the writer's thread has ended. */
void server_upkeep_end(struct server *s);
/* Every outcome of a write comes by here: is there space? */
void server_space_note(struct server *s, enum profd_status status, const struct profd_error *e);

/* A round of verification, or a step of one, as a job of the verifying thread. */
struct server_check {
    struct work_item item; /* first */
    struct server *server;
    struct verify verify;
    enum profd_status status; /* of the step */
    struct profd_error error;
    void (*done)(struct server_check *c); /* on the loop, after each step */
    void (*drop)(struct server_check *c); /* instead, when it will not be run */
};

/* server_scrub.c: a round a day, and rounds that somebody asks for. */
enum profd_status server_scrub_start(struct server *s, struct profd_error *e);
/* Puts the next step of a round; false when too many wait. */
bool server_scrub_put(struct server *s, struct server_check *c);
/* Counts and logs what a step has found since the last call, and returns how many. What is new begins at sentence *from
 * of the buffer, which then moves behind it. */
void server_scrub_note(struct server *s, struct server_check *c, size_t *from, uint64_t *counted);
bool server_scrub_is_idle(const struct server *s);
/* Asks nobody any more. */
void server_scrub_stop(struct server *s);
void server_scrub_end(struct server *s);

/* What is shown of both; a copy for the loop's thread. */
struct server_upkeep_view {
    uint64_t tasks[UPKEEP_TASKS], uploads[UPKEEP_TASKS], rows[UPKEEP_TASKS];
    double seconds[UPKEEP_TASKS];
    uint64_t backlog_bytes;
    bool full; /* the latest write found no space */
    uint64_t mismatches, rounds;
    double round_ended; /* seconds since the epoch; 0: no round is whole yet */
    uint64_t round_uploads, round_mismatches;
    uint64_t round_done, round_total; /* uploads looked at in the round that goes on */
};
void server_scrub_view(const struct server *s, struct server_upkeep_view *out);
void server_upkeep_view(const struct server *s, struct server_upkeep_view *out);

#endif
