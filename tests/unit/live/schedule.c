/* Live processes with fakes for the memories and the harvesting thread: which is read next, what a SYNC waits for, and
 * the look for processes that no daemon reads. */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/live_internal.h"
#include "writer/health.h"
#include "writer/writer.h"

#define PROCESSES 16
#define SYNCS 8

struct fake_sync {
    struct live_sync sync;
    unsigned granted;
    enum profd_status status;
};

static struct {
    char directory[64], path[96];
    struct loop *loop;
    struct loop_timer *timer;
    struct store *store;
    struct health *health;
    struct writer *writer;
    struct conn_group *conns;
    struct live *live;
    struct work *fake; /* in place of the harvesting thread */
    struct live_process *processes[PROCESSES];
    size_t count;
    char read[64]; /* names of the processes in the order in which they were read */
    struct fake_sync syncs[SYNCS];
    unsigned accepted;
    uint64_t inode;
} bed;

static void on_timer(void *context)
{
    (void)context;
    loop_stop(bed.loop);
}

/* Runs what the loop has to do now. */
static void run_a_while(void)
{
    for (int i = 0; i < 50; i++) {
        event_base_loop(loop_get_base(bed.loop), EVLOOP_NONBLOCK);
    }
    loop_timer_set(bed.timer, 20);
    loop_run(bed.loop);
}

static struct live_process **get_slot(struct conn *c)
{
    (void)c;
    return NULL;
}

static void request(void *context, struct conn *c, const struct missing_build *missing, size_t n)
{
    (void)context, (void)c, (void)missing, (void)n;
}

static void accept_waiting(void *context)
{
    (void)context;
    bed.accepted++;
}

static void on_failed(void *context, bool damaged)
{
    (void)context, (void)damaged;
}

/* The fake thread notes the name, which is the first byte of the instance. */
static void fake_run(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    for (size_t i = 0; i < n; i++) {
        const struct live_process *a =
            container_of(container_of(items[i], struct live_harvest, job.item), struct live_process, harvest);

        bed.read[strlen(bed.read)] = (char)a->instance[0];
    }
}

/* The harvest stays in flight until finish. */
static void fake_done(void *context, struct work_item *item)
{
    (void)context, (void)item;
}

static void setup(void)
{
    const struct work_config work = {.name = "fake",
                                     .threads = 1,
                                     .queue_max = 64,
                                     .queue_max_uid = 64,
                                     .batch_max = 1,
                                     .run = fake_run,
                                     .done = fake_done};
    struct writer_config writer = {.failed = on_failed};
    struct conn_config conns;
    struct live_config live = {.harvest_interval = INT64_C(10000000000),
                               .descriptors = 1000,
                               .run = 7,
                               .get_slot = get_slot,
                               .request_objects = request,
                               .accept_waiting = accept_waiting};

    strcpy(bed.directory, "/tmp/profd-live-XXXXXX");
    cr_assert_not_null(mkdtemp(bed.directory));
    snprintf(bed.path, sizeof bed.path, "%s/profd.db", bed.directory);
    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    bed.timer = loop_timer_new(bed.loop, on_timer, NULL);
    cr_assert_eq(store_sqlite_open_writer(bed.path, &bed.store, NULL), PROFD_OK);
    cr_assert_eq(health_new(bed.directory, &bed.health, NULL), PROFD_OK);
    writer.loop = live.loop = bed.loop;
    writer.store = bed.store;
    writer.health = bed.health;
    cr_assert_eq(writer_new(&writer, &bed.writer, NULL), PROFD_OK);
    conn_config_init(&conns);
    conns.base = loop_get_base(bed.loop);
    live.conns = bed.conns = conn_group_new(&conns);
    live.writer = bed.writer;
    live.database = bed.path;
    cr_assert_eq(live_new(&live, &bed.live, NULL), PROFD_OK);
    cr_assert_eq(work_new(bed.loop, &work, &bed.fake, NULL), PROFD_OK);
}

/* From now on nothing real is read. */
static void use_fake_thread(void)
{
    live_end_thread(bed.live);
    bed.live->work = bed.fake;
}

static void teardown(void)
{
    char command[96];

    bed.live->work = NULL;
    work_free(bed.fake);
    for (size_t i = 0; i < bed.count; i++) {
        table_remove(bed.live, bed.processes[i]);
        if (bed.processes[i]->pidfd >= 0) {
            close(bed.processes[i]->pidfd);
        }
        free(bed.processes[i]);
    }
    live_free(bed.live);
    conn_group_free(bed.conns);
    writer_free(bed.writer);
    store_close(bed.store);
    health_free(bed.health);
    loop_timer_free(bed.timer);
    loop_free(bed.loop);
    snprintf(command, sizeof command, "rm -rf %s", bed.directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(live, .init = setup, .fini = teardown);

/* A process without a memory. */
static struct live_process *add_instance(uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    struct live_process *a = calloc(1, sizeof *a);

    a->live = bed.live;
    a->uid = uid;
    memcpy(a->instance, instance, sizeof a->instance);
    a->origin.pid = instance[0];
    a->inode = ++bed.inode;
    a->memory = a->page_fd = a->pidfd = -1;
    cr_assert(table_insert(bed.live, a));
    bed.processes[bed.count++] = a;
    return a;
}

static struct live_process *add(uint32_t uid, char name)
{
    return add_instance(uid, (uint8_t[ATTACH_INSTANCE_SIZE]){(uint8_t)name});
}

/* What the end of a harvest does for the schedule. */
static void finish(struct live_process *a)
{
    const bool again = a->again;

    cr_assert_eq(a->stage, LIVE_READING);
    a->stage = LIVE_IDLE;
    bed.live->in_flight--;
    if (again) {
        harvest_want(bed.live, a, false);
    }
    harvest_dispatch(bed.live);
}

static void expect_read(const char *names)
{
    for (int i = 0; i < 3000 && strlen(bed.read) < strlen(names); i++) {
        run_a_while();
    }
    run_a_while();
    cr_assert_str_eq(bed.read, names);
}

Test(live, users_take_turns)
{
    struct live_process *a = add(1, 'a'), *b = add(1, 'b'), *c = add(1, 'c'), *x = add(2, 'x');

    use_fake_thread();
    bed.live->in_flight = LIMIT_HARVESTS_AT_ONCE; /* the thread has enough to do */
    harvest_want(bed.live, a, false);
    harvest_want(bed.live, b, false);
    harvest_want(bed.live, c, true); /* before the others of its user, not before other users */
    harvest_want(bed.live, x, false);
    harvest_want(bed.live, a, false); /* it waits already */
    cr_assert_str_eq(bed.read, "");
    bed.live->in_flight = 0;
    harvest_dispatch(bed.live);
    expect_read("cxab");
}

Test(live, one_harvest_of_a_process_is_in_flight)
{
    struct live_process *a = add(1, 'a');

    use_fake_thread();
    harvest_want(bed.live, a, false);
    expect_read("a");
    harvest_want(bed.live, a, false);
    harvest_want(bed.live, a, true);
    expect_read("a");
    cr_assert(a->again);
    finish(a); /* what was asked for meanwhile is one harvest */
    expect_read("aa");
    finish(a);
    expect_read("aa");
}

Test(live, as_many_are_in_flight_as_the_limit_allows)
{
    use_fake_thread();
    for (unsigned i = 0; i < LIMIT_HARVESTS_AT_ONCE + 2 && i < PROCESSES; i++) {
        harvest_want(bed.live, add(1 + i % 2, (char)('a' + i)), false);
    }
    cr_assert_leq(bed.live->in_flight, LIMIT_HARVESTS_AT_ONCE);
}

Test(live, the_store_has_failed_so_nothing_is_read)
{
    static const struct store_health failed = {.failed = true, .changes = 1, .error = {"gone"}};
    struct live_process *a = add(1, 'a');

    use_fake_thread();
    health_publish(bed.health, &failed);
    (void)health_update(bed.health, false);
    harvest_want(bed.live, a, false);
    expect_read("");
    cr_assert(live_is_idle(bed.live), "a stop does not wait for it");
}

static void granted(struct live_sync *sync, enum profd_status status)
{
    struct fake_sync *s = container_of(sync, struct fake_sync, sync);

    s->granted++;
    s->status = status;
}

static struct fake_sync *ask(size_t i, uint32_t uid)
{
    bed.syncs[i].sync.uid = uid;
    bed.syncs[i].sync.granted = granted;
    cr_assert_eq(live_sync(bed.live, &bed.syncs[i].sync, NULL), PROFD_OK);
    return &bed.syncs[i];
}

Test(live, a_sync_waits_for_what_was_pending_and_for_nothing_else)
{
    struct live_process *a = add(1, 'a'), *b = add(1, 'b'), *x = add(2, 'x');
    struct fake_sync *first, *second, *other, *idle;

    use_fake_thread();
    sync_make_pending(bed.live, a);
    sync_make_pending(bed.live, x);
    first = ask(0, 1);
    idle = ask(1, 3);
    run_a_while();
    cr_assert_eq(bed.accepted, 1, "connections that wait are accepted first, once for all");
    cr_assert_eq(first->granted, 0);
    cr_assert_eq(idle->granted, 1, "a user without processes waits for nothing");
    cr_assert_eq(idle->status, PROFD_OK);
    sync_make_pending(bed.live, b);
    second = ask(2, 1);
    other = ask(3, 2);
    run_a_while();
    sync_clear_pending(bed.live, a);
    cr_assert_eq(first->granted, 1, "b became pending after it");
    cr_assert_eq(first->status, PROFD_OK);
    cr_assert_eq(second->granted + other->granted, 0);
    sync_clear_pending(bed.live, b);
    cr_assert_eq(second->granted, 1);
    cr_assert_eq(other->granted, 0, "another user's process is still pending");
    live_fail_syncs(bed.live);
    cr_assert_eq(other->granted, 1);
    cr_assert_eq(other->status, PROFD_IO);
    cr_assert_eq(first->granted + second->granted + idle->granted, 3, "each once");
}

Test(live, a_sync_finds_out_that_a_process_has_ended)
{
    struct live_process *a = add(1, 'a');
    struct fake_sync *s;
    const pid_t child = fork();

    if (!child) {
        _exit(0);
    }
    use_fake_thread();
    a->pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    cr_assert_geq(a->pidfd, 0);
    cr_assert_eq(poll(&(struct pollfd){.fd = a->pidfd, .events = POLLIN}, 1, 60000), 1);
    s = ask(0, 1);
    expect_read("a"); /* a last harvest, although the loop was not told of the end */
    cr_assert(a->dead && a->pending);
    cr_assert_eq(s->granted, 0);
    sync_clear_pending(bed.live, a);
    cr_assert_eq(s->granted, 1);
    cr_assert_eq(waitpid(child, NULL, 0), child);
}

Test(live, at_the_end_syncs_are_told_that_the_daemon_stops)
{
    struct live_process *a = add(1, 'a');
    struct fake_sync *waiting, *asked;

    use_fake_thread();
    sync_make_pending(bed.live, a);
    waiting = ask(0, 1);
    run_a_while();
    asked = ask(1, 1);
    sync_end(bed.live);
    cr_assert(waiting->granted == 1 && waiting->status == PROFD_STOPPING);
    cr_assert(asked->granted == 1 && asked->status == PROFD_STOPPING);
}

Test(live, what_was_not_accepted_is_counted_for_its_user)
{
    const uint32_t user = 1;
    uint64_t run, refused;

    live_count_refused(bed.live, &user);
    live_count_refused(bed.live, NULL);
    live_tell(bed.live, 1, &run, &refused);
    cr_assert_eq(run, 7);
    cr_assert_eq(refused, 2);
    live_tell(bed.live, 2, &run, &refused);
    cr_assert_eq(refused, 1);
}

Test(live, the_look_for_orphans_ends_and_takes_what_was_refused)
{
    struct live_process *a = add(1, 'a');

    table_note_refused(bed.live, a->uid, a->instance);
    cr_assert_not_null(bed.live->refused);
    live_look_for_orphans(bed.live);
    cr_assert_null(bed.live->refused, "the look has it");
    for (int i = 0; i < 3000 && bed.live->orphans_running; i++) {
        run_a_while();
    }
    cr_assert_not(bed.live->orphans_running);
    cr_assert(bed.live->searched);
    live_look_for_orphans(bed.live);
    live_end_thread(bed.live); /* one that is dropped or finished frees what it holds */
}

Test(live, rows_are_copies_of_what_the_asker_may_see)
{
    struct arena *arena = arena_new(1u << 20);
    struct process_row *rows = NULL;
    size_t n = 9;

    add(1, 'a');
    add(2, 'x');
    cr_assert_eq(live_list(bed.live, &(struct store_scope){.uid = 2}, 5, arena, &rows, &n, NULL), PROFD_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(rows[0].pid, 'x');
    cr_assert_eq(rows[0].instance[0], 'x');
    cr_assert_str_eq(rows[0].state, "silent");
    cr_assert_eq(live_list(bed.live, &(struct store_scope){.all = true}, 5, arena, &rows, &n, NULL), PROFD_OK);
    cr_assert_eq(n, 2);
    arena_free(arena);
    arena = arena_new(64);
    cr_assert_eq(live_list(bed.live, &(struct store_scope){.all = true}, 5, arena, &rows, &n, NULL), PROFD_NO_MEMORY);
    arena_free(arena);
}

/* Every descriptor that a process holds or will need at once is counted, so that BUSY comes before EMFILE. */
Test(live, pages_and_awaited_processes_count_as_descriptors)
{
    struct live_process *a = add(1, 'a');
    struct live_awaited *w = calloc(2, sizeof *w);
    struct profd_error e;

    bed.live->config.descriptors = 12; /* one is reserved for others: 12 / 8 */
    cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_OK, "a holds two");
    w[0].pidfd = w[1].pidfd = -1; /* no handle, no descriptor */
    bed.live->awaited_count = 6;
    cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_OK, "2 + 6 + 3 + 1");
    process_set_page_fd(bed.live, a, dup(0));
    cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_BUSY, "and the page");
    process_set_page_fd(bed.live, a, -1);
    cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_OK);
    bed.live->awaited_count = 0;
    free(w);
}

Test(live, one_user_may_not_use_all_descriptors)
{
    struct profd_error e;

    bed.live->config.descriptors = 36; /* for 12 processes */
    for (char name = 'a'; name < 'a' + 10; name++) {
        cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_OK);
        add(1, name);
    }
    cr_assert_eq(table_check_capacity(bed.live, 1, &e), PROFD_BUSY);
    cr_assert_not_null(strstr(e.sentence, "user 1 has 10 attached processes; the limit is 10"), "%s", e.sentence);
    cr_assert_eq(table_check_capacity(bed.live, 2, &e), PROFD_OK);
}

/* Both halves of the instances are alike, so that their XOR is 0: a table that is not keyed has one bucket for all. */
Test(live, instances_that_were_chosen_are_found)
{
    uint8_t instance[ATTACH_INSTANCE_SIZE];

    for (int i = 0; i < PROCESSES; i++) {
        memset(instance, i, sizeof instance);
        add_instance((uint32_t)i % 2, instance);
    }
    for (int i = 0; i < PROCESSES; i++) {
        memset(instance, i, sizeof instance);
        cr_assert_eq(table_find(bed.live, (uint32_t)i % 2, instance), bed.processes[i]);
        cr_assert_null(table_find(bed.live, (uint32_t)i % 2 + 1, instance));
        cr_assert(table_change_user(bed.live, bed.processes[i], 7));
        cr_assert_null(table_find(bed.live, (uint32_t)i % 2, instance));
        cr_assert_eq(table_find(bed.live, 7, instance), bed.processes[i]);
    }
}

Test(live, a_memory_is_in_the_table_once)
{
    const struct live_process *a = add(1, 'a');
    struct live_process other = {.device = a->device, .inode = a->inode};

    cr_assert_null(table_find_same(bed.live, a), "not itself");
    cr_assert_eq(table_find_same(bed.live, &other), a);
    other.inode++;
    cr_assert_null(table_find_same(bed.live, &other));
}

static struct live_process *add_of_pid(uint32_t uid, char name, uint32_t pid, conn_id conn)
{
    struct live_process *a = add(uid, name);

    a->origin.pid = pid;
    a->conn = conn;
    table_file(bed.live, a);
    return a;
}

static size_t count_silent(uint32_t pid)
{
    const struct live_process *a;
    size_t n = 0;

    LIST_FOREACH(a, &bed.live->silent[pid % LIVE_BUCKETS], of_pid)
    {
        n++;
    }
    return n;
}

/* A process that attaches many memories is not walked over again with each of them. */
Test(live, earlier_programs_are_looked_at_once)
{
    struct live_process *first, *second, *other, *now, *unknown;

    use_fake_thread();
    bed.live->in_flight = LIMIT_HARVESTS_AT_ONCE;
    first = add_of_pid(1, 'a', 5000, 0);
    second = add_of_pid(1, 'b', 5000, 0);
    other = add_of_pid(2, 'x', 5000, 0);
    unknown = add_of_pid(1, 'u', 0, 0);
    now = add_of_pid(1, 'c', 5000, 77);
    cr_assert_eq(count_silent(5000), 3);
    exits_mark_earlier(bed.live, now);
    cr_assert(first->dead && second->dead && !other->dead && !now->dead && !unknown->dead);
    cr_assert_eq(count_silent(5000), 1, "those that are marked are not looked at again");
    cr_assert_eq(count_silent(0), 0);
    cr_assert_eq(LIST_FIRST(&bed.live->connected[5000 % LIVE_BUCKETS]), now);

    now->dead = true; /* its end was seen before that of its connection */
    table_file(bed.live, now);
    cr_assert_eq(LIST_FIRST(&bed.live->connected[5000 % LIVE_BUCKETS]), now);
    now->conn = 0;
    table_file(bed.live, now);
    cr_assert_eq(count_silent(5000), 1);
    cr_assert(LIST_EMPTY(&bed.live->connected[5000 % LIVE_BUCKETS]));
    now->dead = false; /* it has attached again */
    table_file(bed.live, now);
    cr_assert_eq(count_silent(5000), 2);
}
