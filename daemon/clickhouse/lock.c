/* A lock among writers that only insert and read: each says in a row of its own that it wants the lock, and then reads
 * whether another has said so. Of two that want it at the same time at least one sees the other, so at most one gets
 * it; each that sees another gives up and waits for a random time. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "clickhouse/engine_internal.h"

/* After HELD_SECONDS the lock of a writer that died is free: more than WORK_NS and what an insert takes. */
#define HELD_SECONDS 60u
#define WORK_NS INT64_C(15000000000)
#define PATIENCE_NS INT64_C(8000000000)
#define PAUSE_NS 5000000u /* the shortest pause is up to this; later ones are up to 16 times as long */

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_randomly(unsigned attempt)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0) {
        random = (uint32_t)clock_now();
    }
    const struct timespec t = {.tv_nsec = random % (PAUSE_NS << (attempt < 4 ? attempt : 4))};
    nanosleep(&t, NULL);
}

/* until: seconds by the clock of the servers; 0: released. */
static enum profd_status say(struct clickhouse_store *s, const char *what, uint64_t until, struct profd_error *e)
{
    char name[64];
    struct buffer row;
    buffer_init(&row, sizeof name + 64);
    (void)snprintf(name, sizeof name, "lock/%s/%016llx", what, (unsigned long long)s->writer);
    rows_put_text(&row, name);
    rows_put_u64(&row, engine_number(s));
    rows_put_bytes(&row, &until, until > 0 ? sizeof until : 0);
    const enum profd_status status = engine_insert(s, "state (name, number, value)", &row, e);
    buffer_done(&row);
    return status;
}

/* *taken: no other writer has said that it wants the lock. */
static enum profd_status attempt_once(struct clickhouse_store *s, const char *what, bool *taken, struct profd_error *e)
{
    uint64_t now = 0, others = 0;
    enum profd_status status = engine_query_number(s, &now, e, "SELECT toUInt64(now())");
    if (status == PROFD_OK) {
        status = say(s, what, now + HELD_SECONDS, e);
    }
    if (status == PROFD_OK) {
        status = engine_query_number(s, &others, e,
                                     "SELECT toUInt64(count()) FROM state FINAL WHERE name LIKE 'lock/%s/%%' AND name "
                                     "!= 'lock/%s/%016llx' AND reinterpretAsUInt64(value) > toUInt64(now())",
                                     what, what, (unsigned long long)s->writer);
    }
    *taken = status == PROFD_OK && others == 0;
    if (*taken) {
        return PROFD_OK;
    }
    struct profd_error ignored;
    const enum profd_status released = say(s, what, 0, status == PROFD_OK ? e : &ignored);
    return status == PROFD_OK ? released : status;
}

enum profd_status engine_lock_take(struct clickhouse_store *s, const char *what, struct engine_lock *lock,
                                   struct profd_error *e)
{
    const int64_t began = clock_now();
    bool taken = false;
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; status == PROFD_OK && !taken; i++) {
        if (i > 0) {
            pause_randomly(i - 1);
        }
        *lock = (struct engine_lock){what, clock_now()};
        if (lock->since - began > PATIENCE_NS) {
            return profd_error_set(e, PROFD_BUSY, "other daemons of this centre change the table of %ss; try again",
                                   what);
        }
        status = attempt_once(s, what, &taken, e);
    }
    return status;
}

enum profd_status engine_insert_locked(struct clickhouse_store *s, const struct engine_lock *lock, const char *columns,
                                       const struct buffer *rows, struct profd_error *e)
{
    return clock_now() - lock->since < WORK_NS
               ? engine_insert(s, columns, rows, e)
               : profd_error_set(e, PROFD_BUSY, "ClickHouse answers slowly: nothing was added to the table of %ss",
                                 lock->what);
}

enum profd_status engine_lock_give(struct clickhouse_store *s, const struct engine_lock *lock, enum profd_status status)
{
    struct profd_error ignored;
    (void)say(s, lock->what, 0, &ignored);
    return status;
}
