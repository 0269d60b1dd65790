#include "writer/space.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "writer/health.h"

#define SPACE_ENOUGH (8ull << 20) /* bytes free on the disk: worth another try */
#define OPEN_NEEDS (1ull << 20)   /* bytes needed to open a database: shared memory, conversion of the schema */

struct space {
    const char *state_dir;
    atomic_uint_fast64_t keep_bytes;
    atomic_uint user_share;
    struct reserve reserve; /* the writer's, once it runs */
    /* copies for other threads */
    _Atomic(enum reserve_state) state;
    atomic_uint_fast64_t bytes;
    bool missing_said; /* the loop's: logged */
};

/* Tells the other threads. */
static void space_publish(struct space *p)
{
    atomic_store(&p->bytes, p->reserve.bytes);
    atomic_store(&p->state, p->reserve.state);
}

void space_set_limits(struct space *p, uint64_t keep_bytes, unsigned user_share)
{
    atomic_store(&p->keep_bytes, keep_bytes);
    atomic_store(&p->user_share, user_share);
}

enum profd_status space_open(const struct space_config *config, struct space **out, struct profd_error *e)
{
    struct space *p = calloc(1, sizeof *p);
    enum profd_status status;
    uint64_t available, size;

    if (!p) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the reserve");
    }
    p->state_dir = config->state_dir;
    space_set_limits(p, config->keep_bytes, config->user_share);
    status = reserve_open(&p->reserve, config->state_dir, e);
    if (status) {
        free(p);
        return status;
    }
    if (reserve_measure(&p->reserve, &available, &size) && available < OPEN_NEEDS && reserve_give_up(&p->reserve)) {
        log_write(LOG_LEVEL_WARNING, NULL, "the disk of %s is full: the existing reserve is given up",
                  config->state_dir);
    }
    space_publish(p);
    *out = p;
    return PROFD_OK;
}

void space_close(struct space *p)
{
    free(p);
}

void space_keep(struct space *p)
{
    reserve_take(&p->reserve);
    space_publish(p);
}

static enum profd_status space_refuse(const struct space *p, struct profd_error *e)
{
    return profd_error_set(e, PROFD_FULL,
                           "no space left in %s: the reserve is used for removals; delete programs or files, or lower "
                           "keep-bytes or keep-age",
                           p->state_dir);
}

enum profd_status space_admit(struct space *p, struct store *store, struct profd_error *e)
{
    struct store_share share = {.limit = atomic_load(&p->keep_bytes), .percent = atomic_load(&p->user_share)};
    uint64_t available, size;

    space_keep(p);
    if (reserve_measure(&p->reserve, &available, &size) && size && (!share.limit || size < share.limit)) {
        share.limit = size;
    }
    store_set_share(store, &share);
    return p->reserve.state == RESERVE_GIVEN_UP ? space_refuse(p, e) : PROFD_OK;
}

bool space_give_up(struct space *p)
{
    const bool given = reserve_give_up(&p->reserve);

    space_publish(p);
    return given;
}

/* When a write found no space, perhaps a while ago, there may be some again. The next upload is the real test. */
bool space_look(struct space *p, struct health *h)
{
    const enum reserve_state state = atomic_load(&p->state);
    uint64_t available, size;
    struct profd_error why;

    if (state == RESERVE_GIVEN_UP && !health_get_full(h)) {
        space_refuse(p, &why);
        health_set_full(h, &why);
    }
    if (state == RESERVE_MISSING && !p->missing_said) {
        log_write(LOG_LEVEL_WARNING, NULL, "no reserve for removals on a full disk: %s", p->reserve.why.sentence);
    }
    p->missing_said = state == RESERVE_MISSING;
    if (health_get_full(h) && state != RESERVE_GIVEN_UP && reserve_measure(&p->reserve, &available, &size) &&
        (available >= SPACE_ENOUGH || available >= size / RESERVE_PART)) {
        health_clear_full(h);
    }
    return state == RESERVE_GIVEN_UP;
}

enum reserve_state space_get_reserve(const struct space *p, uint64_t *bytes)
{
    *bytes = atomic_load(&p->bytes);
    return atomic_load(&p->state);
}
