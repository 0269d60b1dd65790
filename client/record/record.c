#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/profd_upload.h"
#include "proto/segment.h"
#include "proto/whole.h"
#include "record/record_internal.h"

#define STEP_MS 200
#define INTERVAL_NS UINT64_C(10000000000)
#define SECOND UINT64_C(1000000000)
#define POLLS_MAX 2048u

struct record {
    struct record_config config;
    struct sampler *sampler;
    struct images *images;
    struct kernel *kernel;
    struct processes *processes;
    struct sums sums;
    struct profd_delivery *delivery;
    struct record_counts counts;
    uint64_t lost; /* samples that the kernel lost, not in a sum yet */
    char host[IDENTITY_HOST_SIZE];
    bool whole;     /* all processes are sampled: take those that are wanted */
    bool stale;     /* records of processes were lost, or there was no memory for them */
    uint64_t began; /* of the interval, ns since 1970 */
};

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Opens the executable that the daemon requests. */
static bool supply(void *context, const char *build_id, struct conn_file *out)
{
    const struct record *r = context;
    out->fd = images_open_build(r->images, build_id, &out->uid, &out->name);
    out->claimed = delivery_may_claim(r->delivery) && out->uid != geteuid();
    return out->fd >= 0;
}

static enum profd_status tables_new(struct record *r, struct profd_error *e)
{
    TRY(images_new(&r->images, e));
    TRY(r->config.kernel ? kernel_open(NULL, r->images, &r->kernel, e) : kernel_make_whole(r->images, &r->kernel, e));
    return processes_new(r->images, &r->processes, e);
}

/* Opens the directory of a control group: its path, or its path below the mount point of the file system of version 2,
 * or of that of version 1 for these events. */
static enum profd_status cgroup_open(const char *name, int *fd, struct profd_error *e)
{
    static const char *const places[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/",
                                         "/sys/fs/cgroup/perf_event/"};
    *fd = -1;
    for (size_t i = name && name[0] == '/' ? 0 : 1; name && *fd < 0 && i < sizeof places / sizeof places[0]; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s%s/cgroup.procs", places[i], name);
        if (access(path, F_OK) == 0) {
            path[strlen(path) - strlen("/cgroup.procs")] = '\0';
            *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    return !name || *fd >= 0
               ? PROFD_OK
               : profd_error_set(e, PROFD_NO_INPUT, "there is no control group \"%s\" below /sys/fs/cgroup", name);
}

enum profd_status record_open(const struct record_config *config, struct record **out, struct profd_error *e)
{
    struct record *r = calloc(1, sizeof *r);
    TRY(r ? PROFD_OK : profd_no_memory(e));
    r->config = *config;
    identity_host(r->host);
    int cgroup;
    enum profd_status status = cgroup_open(config->cgroup, &cgroup, e);
    const struct sampler_config sampler = {.rate = config->rate,
                                           .kernel = config->kernel,
                                           .registers = STACK_REGISTERS,
                                           .tables = config->tables,
                                           .cgroup = cgroup,
                                           .pid = config->pid,
                                           .on_exec = config->on_exec};
    status = status ? status : image_open_check(e);
    status = status ? status : sampler_open(&sampler, &r->sampler, &r->whole, e);
    whole_close(cgroup);
    status = status ? status : sums_init(&r->sums, config->rate, e);
    status = status ? status : tables_new(r, e);
    status = status ? status : profd_delivery_open(&config->daemon, config->sink, config->context, &r->delivery, e);
    if (status != PROFD_OK) {
        record_close(r);
        return status;
    }
    delivery_set_supply(r->delivery, supply, r);
    *out = r;
    return PROFD_OK;
}

void record_close(struct record *r)
{
    if (!r) {
        return;
    }
    profd_delivery_close(r->delivery);
    sums_done(&r->sums);
    processes_free(r->processes);
    kernel_close(r->kernel);
    images_free(r->images);
    sampler_close(r->sampler);
    free(r);
}

static void clock_begin(void *context, struct process *p)
{
    (void)context;
    account_read(p);
    account_begin(p);
}

enum profd_status record_start(struct record *r, struct profd_error *e)
{
    enum profd_status status = sampler_start(r->sampler, false, e);
    /* Read the processes that exist; those of a control group each at its first sample. */
    if (status == PROFD_OK && r->config.pid != 0) {
        struct process *p = processes_take(r->processes, r->config.pid);
        status = p ? PROFD_OK : profd_no_memory(e);
        if (p) {
            p->wanted = !r->config.on_exec;
        }
    } else if (status == PROFD_OK && !r->config.cgroup) {
        status = processes_read_all(r->processes, e);
    }
    r->began = clock_now();
    status = status ? status : sampler_start(r->sampler, true, e);
    processes_each(r->processes, clock_begin, NULL);
    return status;
}

/* --- samples --- */

/* Returns whether all processes are sampled, but few of them are wanted. These and their children are always known, so
 * that nothing of the others is read. */
static bool is_selective(const struct record *r)
{
    return r->whole && r->config.pid != 0;
}

static bool is_wanted(const struct record *r, uint32_t pid)
{
    const struct process *p = is_selective(r) ? processes_find(r->processes, pid) : NULL;
    return !is_selective(r) || (p && p->wanted);
}

/* Returns the build of a process's program; for a thread of the kernel, the kernel's. */
static uint32_t program_find(struct record *r, struct process *p)
{
    uint32_t owner;
    if (p->in_kernel && r->config.kernel) {
        p->origin.comm[strcspn(p->origin.comm, "/:")] = '\0'; /* "kworker/0:1": one name for all of a kind */
        return kernel_get_build(r->kernel);
    }
    if (p->program == IMAGE_NONE) {
        return IMAGE_NONE;
    }
    const uint32_t program = process_find_build(r->images, p, p->program);
    if (program != IMAGE_NONE && !p->known && images_find_setuid(r->images, p->program, &owner)) {
        p->origin.uid = owner;
    }
    return program;
}

/* Returns the sum for the ticks of a process, or NULL if its program is not known. */
static struct sum *sum_find(struct record *r, struct process *p)
{
    if (p->sum) {
        return p->sum;
    }
    const uint32_t program = program_find(r, p);
    if (program == IMAGE_NONE) {
        return NULL;
    }
    const uint8_t *key = process_get_key(p);
    const uint32_t uid = delivery_may_claim(r->delivery) ? p->origin.uid : geteuid();
    p->sum = sums_take(&r->sums, program, &p->origin, process_group_find(r->host, uid, key, sizeof p->key), key);
    if (p->sum && !p->counted) {
        p->counted = true;
        p->sum->started++;
        p->sum->tally.counters[COLLECTOR_RECORDED]++;
        p->sum->tally.counters[COLLECTOR_KERNEL_UNSEEN] += !sampler_sees_kernel(r->sampler);
    }
    return p->sum;
}

static void sum_add_time(struct record *r, struct sum *s, enum collector_counter counter)
{
    s->tally.counters[counter] += SECOND / r->config.rate;
}

/* Counts a sample that goes to no sum. */
static void count_without_sum(struct record *r, bool in_kernel)
{
    r->counts.kernel += in_kernel;
    r->counts.outside += !in_kernel;
}

static void sample_take(struct record *r, const struct event *e)
{
    struct sample_stack stack;
    if (!is_wanted(r, e->pid)) {
        return;
    }
    r->counts.samples++;
    if (e->pid == 0) { /* of a process outside this namespace of processes */
        count_without_sum(r, (e->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL);
        return;
    }
    struct process *p = processes_take(r->processes, e->pid);
    if (!p) {
        r->counts.lost++;
        return;
    }
    if (process_look(p, e->time)) {
        account_read(p);
        account_add(p);
        p->sum = NULL;
    }
    if (p->collected) {
        r->counts.elsewhere++;
        return;
    }
    struct sum *s = stack_find(r->images, r->kernel, p, e, &stack) ? sum_find(r, p) : NULL;
    if (!s) {
        count_without_sum(r, p->in_kernel);
        return;
    }
    sum_add_time(r, s, COLLECTOR_SAMPLED_NS);
    s->tally.counters[COLLECTOR_SAMPLES]++;
    const uint32_t build = stack.frames[stack.count - 1].build; /* of the program counter */
    if (build == COUNTS_NOWHERE) {
        sum_add_time(r, s, COLLECTOR_OUTSIDE_NS);
        r->counts.outside++;
    } else if (!tally_add(&s->tally, stack.frames, stack.count)) {
        sum_add_time(r, s, COLLECTOR_DROPPED_NS);
        s->lost = true;
        r->counts.lost++;
    } else {
        const bool there = kernel_has_build(r->kernel, build);
        p->ticks_ns += SECOND / r->config.rate;
        r->counts.kernel += there;
        r->counts.functions += !there;
        r->counts.complete += stack.frames[0].build != COUNTS_NOWHERE;
    }
}

/* The builds of generated code must be finished before their process is forgotten or becomes another, and before
 * uploads are made. */
static void jit_end(struct record *r, struct process *p)
{
    struct jit_owner owner = {.pid = p->pid, .uid = p->origin.uid};
    struct profd_error why = {""};
    memcpy(owner.key, p->key, sizeof owner.key);
    if (p->jit && jit_finish(p->jit, r->images, &owner, &why) != PROFD_OK) {
        const struct profd_outcome o = {.name = p->origin.comm, .status = PROFD_IO, .sentence = why.sentence};
        r->config.sink(r->config.context, &o);
    }
}

/* A process without a sample uses CPU time, too. It counts if another process of its program had a sample. Otherwise
 * short processes would have more time in samples than CPU time. */
static void sum_find_without_tick(struct record *r, struct process *p)
{
    if (p->sum || !p->cpu_read || !p->cpu_begun || p->cpu_now <= p->cpu_before || p->program == IMAGE_NONE ||
        !images_has_build(r->images, p->program)) {
        return;
    }
    (void)process_look(p, 0);
    if (!p->collected && sums_has(&r->sums, program_find(r, p), &p->origin)) {
        (void)sum_find(r, p);
    }
}

static void process_event_take(struct record *r, const struct event *e)
{
    const uint32_t pid = e->type == PERF_RECORD_FORK ? e->parent : e->pid;
    if (e->pid == 0 || (pid != r->config.pid && !is_wanted(r, pid))) {
        return;
    }
    struct process *p = processes_find(r->processes, pid);
    struct process *before = processes_find(r->processes, e->pid);
    const bool renewed = e->type == PERF_RECORD_COMM && e->misc & PERF_RECORD_MISC_COMM_EXEC;
    if (before && (renewed || e->type == PERF_RECORD_FORK)) {
        jit_end(r, before);
    }
    if (p && e->pid == e->tid && (e->type == PERF_RECORD_COMM || e->type == PERF_RECORD_EXIT)) {
        /* The process gets another name or program, or ends: its CPU time until now goes to its sum. */
        if (e->misc & PERF_RECORD_MISC_COMM_EXEC && e->type == PERF_RECORD_COMM) {
            account_exec(p);
        } else {
            account_read(p);
            sum_find_without_tick(r, p);
            account_add(p);
        }
    }
    r->stale |= !processes_apply(r->processes, e);
    p = processes_find(r->processes, pid);
    if (p && pid == r->config.pid && (e->misc & PERF_RECORD_MISC_COMM_EXEC) && e->type == PERF_RECORD_COMM) {
        p->wanted = true; /* the command begins */
    }
}

static void event_take(void *context, const struct event *e)
{
    struct record *r = context;
    switch (e->type) {
    case PERF_RECORD_SAMPLE:
        sample_take(r, e);
        break;
    case PERF_RECORD_LOST:
        r->counts.samples += e->lost;
        r->counts.lost += e->lost;
        r->lost += e->lost;
        break;
    case PERF_RECORD_LOST_SAMPLES:
        r->counts.records_lost += e->lost;
        r->stale = true;
        break;
    default:
        process_event_take(r, e);
    }
}

/* --- uploads --- */

static void clock_read(void *context, struct process *p)
{
    (void)context;
    account_read(p);
}

static void clock_add(void *context, struct process *p)
{
    struct record *r = context;
    jit_end(r, p);
    if (!p->cpu_read) {
        account_read(p);
    }
    if (p->collected || !is_wanted(r, p->pid)) {
        account_begin(p);
        return;
    }
    sum_find_without_tick(r, p);
    account_add(p);
}

static void process_end(void *context, struct process *p)
{
    jit_end(context, p);
    account_add(p);
}

static enum profd_status send_sum(struct record *r, const struct sum *s, const struct sums_window *window,
                                  struct profd_error *e)
{
    struct profd_upload *u;
    TRY(profd_upload_new(&u, e));
    enum profd_status status = r->config.label ? r->config.label(r->config.context, u, e) : PROFD_OK;
    status = status ? status : sum_fill_upload(s, r->images, window, u, e);
    if (status == PROFD_OK) {
        /* The counts are those of the user of the processes, if the daemon accepts that. */
        if (s->origin.uid != geteuid() && delivery_may_claim(r->delivery)) {
            upload_claim_uid(u, s->origin.uid);
        } else {
            r->counts.unclaimed += s->origin.uid != geteuid();
        }
        status = profd_delivery_upload(r->delivery, u, s->origin.comm, e);
    }
    profd_upload_free(u);
    return status;
}

static void interval_end(struct record *r, struct profd_error *e)
{
    processes_each(r->processes, clock_add, r);
    if (r->lost > 0 && !STAILQ_EMPTY(&r->sums.list)) {
        sums_add_lost(&r->sums, r->lost);
        r->lost = 0;
    }
    const struct sums_window window = {r->began, clock_now()};
    struct sum *s;
    STAILQ_FOREACH(s, &r->sums.list, link)
    {
        const enum profd_status status = send_sum(r, s, &window, e);
        if (status == PROFD_OK) {
            r->counts.uploads++;
        } else {
            const struct profd_outcome o = {.name = s->origin.comm, .status = status, .sentence = e->sentence};
            r->config.sink(r->config.context, &o);
        }
    }
    sums_clear(&r->sums);
    processes_begin_interval(r->processes);
    r->began = window.end;
}

/* Forgets every process and file, and reads those that are there. */
static enum profd_status tables_renew(struct record *r, struct profd_error *e)
{
    struct processes *before = r->processes;
    kernel_close(r->kernel);
    images_free(r->images);
    r->processes = NULL;
    r->kernel = NULL;
    r->images = NULL;
    r->stale = false;
    enum profd_status status = tables_new(r, e);
    status = status ? status : processes_read_all(r->processes, e);
    if (status == PROFD_OK) {
        processes_keep_counted(r->processes, before);
        processes_each(r->processes, clock_begin, NULL);
    }
    processes_free(before);
    return status;
}

enum profd_status record_step(struct record *r, const int *fds, size_t n, struct profd_error *e)
{
    struct pollfd polls[POLLS_MAX];
    uint32_t count = 0;
    for (; count < n; count++) {
        polls[count] = (struct pollfd){.fd = fds[count], .events = POLLIN};
    }
    count += sampler_get_polls(r->sampler, polls + count, POLLS_MAX - count);
    FAIL_IF(poll(polls, count, STEP_MS) < 0 && errno != EINTR, e, PROFD_IO, "cannot wait for samples: %s",
            strerror(errno));
    sampler_read(r->sampler, false, event_take, r);
    processes_forget_ended(r->processes, process_end, r);
    delivery_poll(r->delivery);
    if (clock_now() - r->began < INTERVAL_NS) {
        return PROFD_OK;
    }
    interval_end(r, e);
    images_close_old(r->images);
    const bool renew = r->stale && !is_selective(r);
    return renew || images_full(r->images) ? tables_renew(r, e) : PROFD_OK;
}

enum profd_status record_finish(struct record *r, struct profd_error *e)
{
    sampler_stop(r->sampler);
    processes_each(r->processes, clock_read, NULL);
    sampler_read(r->sampler, true, event_take, r);
    interval_end(r, e);
    return profd_delivery_finish(r->delivery, e);
}

bool record_sees_kernel(const struct record *r)
{
    return sampler_sees_kernel(r->sampler);
}

const struct record_counts *record_get_counts(const struct record *r)
{
    return &r->counts;
}
