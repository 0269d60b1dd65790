/* Orphans: processes in the database that have not attached to this daemon. Those that no longer exist ended without
 * being observed and are marked end-not-seen; the others may attach again. Checked at start and every
 * minute. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live_internal.h"
#include "base/log.h"
#include "proto/noun.h"
#include "proto/place.h"

static enum profd_status reclaim_one(struct live *l, const struct listen_kept *kept, struct profd_error *e)
{
    uint8_t instance[ATTACH_INSTANCE_SIZE];
    struct attach_origin origin;
    struct live_process *a;
    enum peer_process state;
    uint64_t started;
    uint32_t uid, pid;
    int pidfd;

    FAIL_IF(!fdstore_parse_name(kept->name, instance, &uid, &pid, &started), e, PROFD_REFUSED,
            "the service manager passed a descriptor with the unknown name \"%s\"", kept->name);
    origin_of(l, pid, &origin);
    origin.started = started;
    TRY(process_new(l, uid, &origin, kept->fd, &a, e));
    if (memcmp(instance, a->instance, sizeof instance) != 0 || table_find(l, uid, instance) || table_find_same(l, a) ||
        !table_insert(l, a)) {
        process_discard(a);
        fdstore_say_drop(kept->name);
        return PROFD_OK;
    }
    a->kept = true;
    l->kept++;
    state = search_open_process(&origin, &pidfd);
    exits_watch(l, a, state, pidfd);
    harvest_want(l, a, false);
    return PROFD_OK;
}

void live_take_back(struct live *l, struct listen_kept *kept, size_t n)
{
    struct profd_error e;

    for (size_t i = 0; i < n; i++) {
        if (reclaim_one(l, &kept[i], &e)) {
            log_write(LOG_LEVEL_WARNING, "live process", "%s", e.sentence);
            close(kept[i].fd);
            fdstore_say_drop(kept[i].name);
        }
    }
    if (l->count) {
        log_write(LOG_LEVEL_NOTICE, NULL, "%zu live processes restored from the service manager", l->count);
    }
    free(kept);
}

#define LOOK_MS 60000
#define AGAIN_MS 200 /* there were more than one look may close */
#define CLOSE_MAX 256u
#define AWAITED_MAX 1024u                      /* processes that are observed for their end: each takes a descriptor */
#define GIVE_UP_NS (INT64_C(600) * 1000000000) /* after this and two intervals, children not read are marked */

/* Why one is closed. */
enum orphan_reason { ORPHAN_ENDED, ORPHAN_REFUSED, ORPHAN_CHILDREN, ORPHAN_REASONS };

/* One that is to be closed. */
struct orphan_end {
    struct live_harvest harvest; /* first */
    enum orphan_reason reason;
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
    struct orphan_end *next;
};

/* An orphaned process: its memory was found. */
struct orphan_found {
    struct attach_origin origin;
    uint32_t uid;
    int memory;
    struct orphan_found *next;
};

/* A look at all of them. */
struct orphan_search {
    struct live_harvest harvest; /* first */
    struct attach_origin here;
    int64_t now, missed; /* ns; children that are missing since before missed are given up */
    struct orphan_end *ends;
    struct orphan_found *found;
    size_t found_count;
    struct live_refused *refused;
    struct live_awaited *awaited;
    size_t awaited_count;
    bool first;          /* search for memory; afterwards processes attach by themselves */
    size_t count, bytes; /* of their snapshots */
    bool more;
};

static bool orphans_is_refused(const struct orphan_search *u, const struct store_instance *i)
{
    const struct live_refused *r = u->refused;

    while (r && (r->uid != i->uid || memcmp(r->instance, i->instance, sizeof r->instance) != 0)) {
        r = r->next;
    }
    return r;
}

static void orphans_stored(struct live *l, struct live_harvest *h)
{
    l->in_flight--;
    if (!h->job.status && h->outcome <= STORE_RELABELLED) {
        l->counts.orphaned += !h->harvest.put.marks;
    }
    attach_harvest_done(&h->harvest);
    free(container_of(h, struct orphan_end, harvest));
    harvest_dispatch(l);
}

/* Finds the memory of a process that lives, if the daemon may open it. */
static void orphans_find(struct orphan_search *u, const struct store_instance *i, const struct attach_origin *origin)
{
    struct orphan_found *found = i->uid == geteuid() ? calloc(1, sizeof *found) : NULL;

    if (!found) {
        return;
    }
    found->memory = search_find_memory(origin, i->instance);
    if (found->memory < 0) {
        free(found);
        return;
    }
    found->origin = *origin;
    found->uid = i->uid;
    found->next = u->found;
    u->found = found;
    u->found_count++;
}

/* Adds one that lives, and takes its handle over. Those beyond the limit are checked every minute. */
static void orphans_await(struct orphan_search *u, const struct store_instance *i, const struct attach_origin *origin,
                          int pidfd)
{
    struct live_awaited *w = u->awaited_count < AWAITED_MAX ? calloc(1, sizeof *w) : NULL;

    if (!w) {
        close(pidfd); /* -1: it has none */
        return;
    }
    w->origin = *origin;
    w->uid = i->uid;
    memcpy(w->instance, i->instance, sizeof w->instance);
    w->pidfd = pidfd;
    w->next = u->awaited;
    u->awaited = w;
    u->awaited_count++;
}

/* True if the process lives and still runs the program that counted. */
static bool orphans_lives(struct orphan_search *u, const struct store_instance *i)
{
    struct attach_origin origin;
    const size_t found = u->found_count;
    int pidfd = -1;

    if (orphans_is_refused(u, i) || attach_get_origin(i->snapshot, i->snapshot_size, &origin, NULL) ||
        !attach_still_lives(&origin, &u->here, place_read_start)) {
        return false;
    }
    if (u->first) {
        orphans_find(u, i, &origin);
    }
    if (found < u->found_count || !origin.pid || !origin.started) {
        return true;
    }
    if (search_has_unmapped(&origin, 0) || search_open_process(&origin, &pidfd) == PEER_DEAD) {
        return false;
    }
    orphans_await(u, i, &origin, pidfd);
    return true;
}

/* On the harvesting thread, once for each instance that has not ended or has missing children. Children that live
 * attach soon after they count, or when this daemon was started; the others are given up after some time, so that
 * a centre learns that counts are missing while their parent goes on. */
static bool orphans_each(void *context, const struct store_instance *i)
{
    struct orphan_search *u = context;
    struct orphan_end *end;

    const bool lives = !i->ended && orphans_lives(u, i);
    if ((i->ended || lives) && (i->missing_since == 0 || i->missing_since >= u->missed)) {
        return true;
    }
    if (u->count == CLOSE_MAX || (u->count && u->bytes + i->snapshot_size > LIMIT_HARVEST_BYTES)) {
        u->more = true;
        return false;
    }
    end = calloc(1, sizeof *end);
    if (!end) {
        return false;
    }
    if (attach_close_orphan(i, lives, u->now, &end->harvest.harvest, NULL)) { /* damaged: store_verify tells of it */
        free(end);
        return true;
    }
    end->reason = i->ended || lives ? ORPHAN_CHILDREN : orphans_is_refused(u, i) ? ORPHAN_REFUSED : ORPHAN_ENDED;
    end->uid = i->uid;
    memcpy(end->instance, i->instance, sizeof end->instance);
    end->next = u->ends;
    u->ends = end;
    u->bytes += i->snapshot_size;
    u->count++;
    return true;
}

static void orphans_read(void *context, struct live_harvest *h)
{
    struct orphan_search *u = container_of(h, struct orphan_search, harvest);
    struct live *l = context;

    h->job.status = store_each_instance(l->store, orphans_each, u, &h->job.error);
}

static bool orphans_drop(struct orphan_end *end)
{
    attach_harvest_done(&end->harvest.harvest);
    free(end);
    return false;
}

/* It is attached, so its end will be observed; or it is closed now. */
static bool orphans_close(struct live *l, struct orphan_end *end)
{
    struct live_harvest *h = &end->harvest;

    if (l->stopping || writer_check(l->config.writer, NULL) ||
        (!h->harvest.put.marks && table_find(l, end->uid, end->instance))) {
        return orphans_drop(end);
    }
    h->job = (struct writer_job){.type = &live_harvest_type, .item = {.uid = end->uid}};
    h->live = l;
    h->job.item.weight = h->harvest.put.counts_size + h->harvest.put.snapshot_size;
    h->stored = orphans_stored;
    l->in_flight++;
    if (writer_put(l->config.writer, &h->job)) {
        return true;
    }
    l->in_flight--;
    return orphans_drop(end);
}

/* It is read as if it had attached; when it attaches, the same entry is used. */
static enum profd_status orphans_enter(struct live *l, struct orphan_found *found, struct profd_error *e)
{
    struct live_process *a;
    enum peer_process state;
    int pidfd;
    TRY(process_new(l, found->uid, &found->origin, found->memory, &a, e));
    found->memory = -1; /* attach_close closes it */
    enum profd_status status = table_find(l, a->uid, a->instance) || table_find_same(l, a)
                                   ? profd_error_set(e, PROFD_CONFLICT, "it has attached meanwhile")
                                   : table_check_capacity(l, a->uid, e);
    if (!status && !table_insert(l, a)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a live process");
    }
    if (status) {
        process_discard(a);
        return status;
    }
    state = search_open_process(&found->origin, &pidfd);
    exits_watch(l, a, state, pidfd);
    fdstore_keep(l, a);
    harvest_want(l, a, false);
    return PROFD_OK;
}

static void orphans_enter_all(struct live *l, struct orphan_search *u)
{
    struct orphan_found *found, *next;
    struct profd_error e = {""};
    size_t entered = 0;

    for (found = u->found; found; found = next) {
        next = found->next;
        if (!l->stopping && !orphans_enter(l, found, &e)) {
            entered++;
        } else {
            log_write(LOG_LEVEL_INFO, "live process", "process %u was found and is not read: %s", found->origin.pid,
                      e.sentence);
        }
        if (found->memory >= 0) {
            close(found->memory);
        }
        free(found);
    }
    if (entered) {
        log_write(LOG_LEVEL_NOTICE, "live process", "%zu live processes found again in /proc", entered);
    }
}

static void orphans_was_read(struct live *l, struct live_harvest *h)
{
    struct orphan_search *u = container_of(h, struct orphan_search, harvest);
    struct orphan_end *end, *next;
    static const char *const what[ORPHAN_REASONS] = {
        [ORPHAN_ENDED] = "ended while no daemon could read the last counts",
        [ORPHAN_REFUSED] = "may not be read any more: counts since the latest harvest are missing",
        [ORPHAN_CHILDREN] = "had children that were never read",
    };
    size_t closed = 0, of[ORPHAN_REASONS] = {0};

    l->orphans_running = false;
    /* If the store has failed for good, its health has said so. */
    if (h->job.status && h->job.status != PROFD_STOPPING && !writer_check(l->config.writer, NULL)) {
        log_write(
            LOG_LEVEL_WARNING, "live process",
            "the search for processes that ended while no daemon read them is not finished: %s; start profd again",
            h->job.error.sentence);
    }
    orphans_enter_all(l, u);
    if (u->first && !u->more && !h->job.status) {
        l->searched = true;
        log_write(LOG_LEVEL_INFO, NULL, "search for the live processes of the previous run finished");
    }
    awaited_set(l, u->awaited);
    for (end = u->ends; end; end = next) {
        const enum orphan_reason reason = end->reason; /* a closed end is freed */

        next = end->next;
        of[reason] += orphans_close(l, end);
    }
    for (size_t i = 0; i < ORPHAN_REASONS; i++) {
        closed += of[i];
        if (of[i]) {
            log_write(LOG_LEVEL_NOTICE, "live process", "%zu %s %s", of[i], noun_for(of[i], "process", "processes"),
                      what[i]);
        }
    }
    if (!l->stopping) {
        loop_timer_set(l->orphan_timer, (u->more && closed) || l->refused ? AGAIN_MS : LOOK_MS);
    }
    table_free_refused(u->refused);
    free(u);
}

void live_look_for_orphans(struct live *l)
{
    struct orphan_search *u = l->orphans_running || l->stopping ? NULL : calloc(1, sizeof *u);

    if (!u) {
        loop_timer_set(l->orphan_timer, LOOK_MS);
        return;
    }
    origin_of(l, 0, &u->here);
    u->refused = l->refused;
    l->refused = NULL;
    u->first = !l->searched;
    u->now = loop_clock();
    u->missed = u->now - GIVE_UP_NS - 2 * l->config.harvest_interval;
    u->missed = l->began < u->missed ? u->missed : 0;
    u->harvest.job.item = (struct work_item){.uid = UINT32_MAX, .weight = 1};
    u->harvest.read = orphans_read;
    u->harvest.was_read = orphans_was_read;
    l->orphans_running = work_put(l->work, &u->harvest.job.item);
    if (l->orphans_running) {
        return;
    }
    l->refused = u->refused;
    free(u);
    loop_timer_set(l->orphan_timer, LOOK_MS);
}

void orphans_on_timer(void *context)
{
    live_look_for_orphans(context);
}
