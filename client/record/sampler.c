#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/record_internal.h"
#include "proto/whole.h"

#define RING_PAGES 128u
#define RING_PAGES_STACKS 512u /* where the kernel allows that much, and samples have copies of stacks */
#define STACK_BYTES 32768u     /* of the user's stack, copied at each sample */
#define STACK_END_BYTES 2048u  /* the same where there are chains: for functions without a frame record */
#define SETTLED_NS 5000000u    /* what is older is completely written */

#define RECORD_MAX 65536 /* the size of a record is a 16-bit number */

/* A ring buffer that the kernel fills with the records of perf events. */
struct ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */
    const uint8_t *data;
    size_t size;         /* bytes of data, a power of two */
    uint64_t head, tail; /* head as of the beginning of sampler_read */
    uint8_t *joined;     /* a copy of a record that wraps around the end */
};

/* A CPU has two rings, for samples and for events of processes, so that a flood of one loses nothing of the other. */
enum { SAMPLES, SIDE, RINGS };

struct sampler_cpu {
    int cpu;
    struct ring rings[RINGS];
    int events[RINGS]; /* that own the rings */
};

struct sampler {
    struct sampler_config config;
    struct perf_event_attr attributes[RINGS];
    struct sampler_cpu *cpus;
    uint32_t cpu_count;
    int *events; /* of further threads */
    uint32_t event_count;
    size_t event_capacity;
    unsigned registers;
};

static int event_open(const struct perf_event_attr *a, int pid, int cpu, unsigned long flags)
{
    return (int)syscall(SYS_perf_event_open, a, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

static void attributes_fill(struct sampler *s)
{
    const struct sampler_config *c = &s->config;
    const struct perf_event_attr common = {.type = PERF_TYPE_SOFTWARE,
                                           .size = sizeof common,
                                           .sample_type = EVENT_ALL,
                                           .disabled = 1,
                                           .exclude_hv = 1,
                                           .exclude_guest = 1,
                                           .sample_id_all = 1,
                                           .use_clockid = 1,
                                           .clockid = CLOCK_MONOTONIC,
                                           .watermark = 1,
                                           .wakeup_watermark = RING_PAGES * 4096u / 2};
    s->attributes[SAMPLES] = s->attributes[SIDE] = common;
    struct perf_event_attr *a = &s->attributes[SAMPLES];
    a->config = PERF_COUNT_SW_CPU_CLOCK;
    a->freq = 1;
    a->sample_freq = c->rate;
    a->sample_type = EVENT_ALL | EVENT_SAMPLES;
    a->exclude_idle = 1;
    a->exclude_callchain_kernel = !c->kernel;
    if (c->registers) {
        a->exclude_callchain_user = c->tables;
        a->sample_type |= EVENT_STACKS;
        a->sample_regs_user = c->registers;
        a->sample_stack_user = c->tables ? STACK_BYTES : STACK_END_BYTES;
    }
    a = &s->attributes[SIDE];
    a->config = PERF_COUNT_SW_DUMMY;
    a->mmap = a->mmap2 = a->build_id = a->comm = a->comm_exec = a->task = 1;
}

/* Explains a failure of perf_event_open, and what to do. */
static enum profd_status open_failed(int why, struct profd_error *e)
{
    char level[16];
    FAIL_IF(why == ENOSYS || why == ENOENT || why == EOPNOTSUPP, e, PROFD_UNAVAILABLE,
            "the kernel has no events to sample with: %s", strerror(why));
    FAIL_IF(why != EACCES && why != EPERM, e, PROFD_IO, "cannot sample: perf_event_open: %s", strerror(why));
    (void)whole_read_text("/proc/sys/kernel/perf_event_paranoid", level, sizeof level);
    level[strcspn(level, "\n")] = '\0';
    return profd_error_set(e, PROFD_FORBIDDEN,
                           "this user may not sample here (kernel.perf_event_paranoid is %s): run it as root, give it "
                           "the capability CAP_PERFMON, or set kernel.perf_event_paranoid to 2 to sample processes of "
                           "your own, to 0 to sample all",
                           level[0] ? level : "unknown");
}

/* Maps the ring of an event. pages is a power of two. IO with the reason, or NO_MEMORY. */
static enum profd_status ring_map(struct ring *r, int event, size_t pages, struct profd_error *e)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *base = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    FAIL_IF(base == MAP_FAILED, e, PROFD_IO, "cannot map a ring of %zu pages for samples: %s%s", pages, strerror(errno),
            errno == EPERM ? " (see /proc/sys/kernel/perf_event_mlock_kb)" : "");
    uint8_t *joined = malloc(RECORD_MAX);
    if (!joined) {
        munmap(base, (pages + 1) * page);
        return profd_no_memory(e);
    }
    *r = (struct ring){.page = base, .data = (const uint8_t *)base + page, .size = pages * page, .joined = joined};
    return PROFD_OK;
}

/* Returns the oldest record that was not passed, or NULL if there is none before the head. It is aligned to 8 bytes and
 * valid until the next call for this ring. O(1), or O(its size) if it wraps. */
static const struct perf_event_header *ring_peek(struct ring *r)
{
    if (r->tail == r->head) {
        return NULL;
    }
    const size_t at = (size_t)(r->tail & (r->size - 1)), whole = r->size - at;
    const struct perf_event_header *h = (const void *)(r->data + at); /* the kernel aligns records to 8 bytes */
    if (h->size <= whole) {
        return h;
    }
    memcpy(r->joined, r->data + at, whole);
    memcpy(r->joined + whole, r->data, h->size - whole);
    return (const void *)r->joined;
}

static void cpu_close(struct sampler_cpu *c)
{
    for (unsigned i = 0; i < RINGS; i++) {
        struct ring *r = &c->rings[i];
        if (r->page) {
            munmap(r->page, r->size + (size_t)sysconf(_SC_PAGESIZE));
        }
        free(r->joined);
        whole_close(c->events[i]);
    }
}

void sampler_close(struct sampler *s)
{
    if (!s) {
        return;
    }
    for (uint32_t i = 0; i < s->event_count; i++) {
        close(s->events[i]);
    }
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        cpu_close(&s->cpus[i]);
    }
    free(s->events);
    free(s->cpus);
    free(s);
}

/* Opens the rings of all CPUs, for a process or for everything. A CPU that is switched off has none. */
static enum profd_status cpus_open(struct sampler *s, int pid, unsigned long flags, struct profd_error *e)
{
    const long most = sysconf(_SC_NPROCESSORS_CONF);
    enum profd_status status = PROFD_OK;
    s->cpus = calloc(most > 0 ? (size_t)most : 1, sizeof *s->cpus);
    TRY(s->cpus ? PROFD_OK : profd_no_memory(e));
    for (int cpu = 0; cpu < most && status == PROFD_OK; cpu++) {
        struct sampler_cpu *c = &s->cpus[s->cpu_count];
        bool absent = false;
        *c = (struct sampler_cpu){.cpu = cpu, .events = {-1, -1}};
        for (unsigned i = 0; i < RINGS && status == PROFD_OK; i++) {
            c->events[i] = event_open(&s->attributes[i], pid, cpu, flags);
            if (c->events[i] < 0 && errno == EINVAL && s->attributes[i].build_id) { /* a kernel before 5.12 */
                s->attributes[i].build_id = 0;
                c->events[i] = event_open(&s->attributes[i], pid, cpu, flags);
            }
            const int why = errno;
            const bool large = i == SAMPLES && s->config.tables;
            absent = c->events[i] < 0 && why == ENODEV;
            if (c->events[i] < 0) {
                status = open_failed(why, e);
            } else if (!large || ring_map(&c->rings[i], c->events[i], RING_PAGES_STACKS, NULL) != PROFD_OK) {
                status = ring_map(&c->rings[i], c->events[i], RING_PAGES, e);
            }
        }
        if (status == PROFD_OK) {
            s->cpu_count++;
        } else {
            cpu_close(c);
        }
        status = absent ? PROFD_OK : status;
    }
    return status;
}

static void cpus_close(struct sampler *s)
{
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        cpu_close(&s->cpus[i]);
    }
    s->cpu_count = 0;
    free(s->cpus);
    s->cpus = NULL;
}

/* Opens events for one more thread, which write to the rings of the first. A thread that has ended has none. */
static enum profd_status thread_add(struct sampler *s, uint32_t tid, struct profd_error *e)
{
    for (uint32_t i = 0; i < s->cpu_count * RINGS; i++) {
        const unsigned ring = i % RINGS;
        const struct sampler_cpu *c = &s->cpus[i / RINGS];
        TRY(LIST_GROW(s->events, s->event_count, s->event_capacity) ? PROFD_OK : profd_no_memory(e));
        const int event = event_open(&s->attributes[ring], (int)tid, c->cpu, 0);
        if (event < 0) {
            return errno == ESRCH ? PROFD_OK : open_failed(errno, e);
        }
        s->events[s->event_count++] = event;
        FAIL_IF(ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, c->events[ring]) != 0, e, PROFD_IO,
                "cannot sample thread %u: %s", tid, strerror(errno));
    }
    return PROFD_OK;
}

/* Adds the threads of the process, except the first. */
static enum profd_status threads_add(struct sampler *s, struct profd_error *e)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/task", s->config.pid);
    DIR *d = opendir(path);
    enum profd_status status =
        d ? PROFD_OK : profd_error_set(e, PROFD_NO_INPUT, "process %" PRIu32 ": %s", s->config.pid, strerror(errno));
    for (const struct dirent *entry; status == PROFD_OK && (entry = readdir(d)) != NULL;) {
        const unsigned long tid = strtoul(entry->d_name, NULL, 10);
        if (tid != 0 && tid != s->config.pid) {
            status = thread_add(s, (uint32_t)tid, e);
        }
    }
    if (d) {
        (void)closedir(d);
    }
    return status;
}

enum profd_status sampler_open(const struct sampler_config *config, struct sampler **out, bool *whole,
                               struct profd_error *e)
{
    struct sampler *s = calloc(1, sizeof *s);
    TRY(s ? PROFD_OK : profd_no_memory(e));
    s->config = *config;
    s->registers = (unsigned)__builtin_popcountll(config->registers);
    attributes_fill(s);
    const bool in_cgroup = config->cgroup >= 0;
    enum profd_status status = cpus_open(s, in_cgroup ? config->cgroup : -1, in_cgroup ? PERF_FLAG_PID_CGROUP : 0, e);
    *whole = status == PROFD_OK;
    if (status == PROFD_FORBIDDEN && config->pid != 0) {
        cpus_close(s);
        /* A user without the capability samples processes of its own: each of their threads has events of its own. */
        struct perf_event_attr *samples = &s->attributes[SAMPLES];
        samples->config = PERF_COUNT_SW_TASK_CLOCK;
        for (unsigned i = 0; i < RINGS; i++) {
            s->attributes[i].inherit = 1;
            s->attributes[i].enable_on_exec = s->config.on_exec;
        }
        status = cpus_open(s, (int)s->config.pid, 0, e);
        if (status == PROFD_FORBIDDEN && !s->config.kernel) { /* perf_event_paranoid 2 */
            cpus_close(s);
            samples->exclude_kernel = s->attributes[SIDE].exclude_kernel = 1;
            status = cpus_open(s, (int)s->config.pid, 0, e);
        }
        status = status ? status : threads_add(s, e);
    }
    if (status != PROFD_OK) {
        sampler_close(s);
        return status;
    }
    *out = s;
    return PROFD_OK;
}

bool sampler_sees_kernel(const struct sampler *s)
{
    return !s->attributes[SAMPLES].exclude_kernel;
}

static enum profd_status event_start(int event, struct profd_error *e)
{
    return ioctl(event, PERF_EVENT_IOC_ENABLE, 0) == 0
               ? PROFD_OK
               : profd_error_set(e, PROFD_IO, "cannot begin to sample: %s", strerror(errno));
}

enum profd_status sampler_start(struct sampler *s, bool samples, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (s->attributes[SAMPLES].enable_on_exec) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; i < s->cpu_count && status == PROFD_OK; i++) {
        status = event_start(s->cpus[i].events[samples ? SAMPLES : SIDE], e);
    }
    for (uint32_t i = 0; i < s->event_count && samples && status == PROFD_OK; i++) {
        status = event_start(s->events[i], e);
    }
    return status;
}

void sampler_stop(struct sampler *s)
{
    for (uint32_t i = 0; i < s->cpu_count * RINGS; i++) {
        (void)ioctl(s->cpus[i / RINGS].events[i % RINGS], PERF_EVENT_IOC_DISABLE, 0);
    }
    for (uint32_t i = 0; i < s->event_count; i++) {
        (void)ioctl(s->events[i], PERF_EVENT_IOC_DISABLE, 0);
    }
}

uint32_t sampler_get_polls(const struct sampler *s, struct pollfd *out, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->cpu_count * RINGS && n < most; i++) {
        out[n++] = (struct pollfd){.fd = s->cpus[i / RINGS].events[i % RINGS], .events = POLLIN};
    }
    return n;
}

/* Returns the ring with the oldest record, or NULL if none has one before limit. */
static struct ring *oldest_find(struct sampler *s, uint64_t limit, unsigned *kind)
{
    struct ring *oldest = NULL;
    for (uint32_t i = 0; i < s->cpu_count * RINGS; i++) {
        struct ring *r = &s->cpus[i / RINGS].rings[i % RINGS];
        const struct perf_event_header *h = ring_peek(r);
        uint64_t time = UINT64_MAX;
        if (h) { /* samples and other records have their time at different places */
            const size_t at = h->type == PERF_RECORD_SAMPLE ? sizeof *h + 16 : h->size - sizeof time;
            memcpy(&time, (const uint8_t *)h + at, sizeof time);
        }
        if (time < limit) {
            limit = time;
            oldest = r;
            *kind = i % RINGS;
        }
    }
    return oldest;
}

void sampler_read(struct sampler *s, bool everything, void (*each)(void *context, const struct event *e), void *context)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    const uint64_t limit = everything ? UINT64_MAX : time - SETTLED_NS;
    unsigned kind = 0;
    for (uint32_t i = 0; i < s->cpu_count * RINGS; i++) {
        struct ring *r = &s->cpus[i / RINGS].rings[i % RINGS];
        r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    }
    for (struct ring *r; (r = oldest_find(s, limit, &kind)) != NULL;) {
        const struct perf_event_header *h = ring_peek(r);
        struct event event;
        r->tail += h->size;
        if (!event_decode(h, kind == SAMPLES ? s->registers : 0, &event)) {
            continue;
        }
        if (event.type == PERF_RECORD_LOST && kind == SIDE) {
            event.type = PERF_RECORD_LOST_SAMPLES;
        }
        each(context, &event);
    }
    for (uint32_t i = 0; i < s->cpu_count * RINGS; i++) {
        struct ring *r = &s->cpus[i / RINGS].rings[i % RINGS];
        __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE); /* gives the space back to the kernel */
    }
}

/* The rest of a record. */
struct rest {
    const uint8_t *at, *end;
};

static bool take(struct rest *r, void *out, size_t n)
{
    if ((size_t)(r->end - r->at) < n) {
        return false;
    }
    memcpy(out, r->at, n);
    r->at += n;
    return true;
}

/* A text that is padded with NUL up to the end of the rest. */
static bool take_text(struct rest *r, const char **out)
{
    *out = (const char *)r->at;
    return r->at < r->end && memchr(r->at, 0, (size_t)(r->end - r->at)) != NULL;
}

static bool decode_mmap(struct rest *r, struct event *e)
{
    uint8_t identity[24];
    uint32_t protection[2];
    bool good = take(r, &e->pid, 4) && take(r, &e->tid, 4) && take(r, &e->start, 8) && take(r, &e->size, 8) &&
                take(r, &e->offset, 8) && take(r, identity, sizeof identity) &&
                take(r, protection, sizeof protection) && take_text(r, &e->path);
    if (good && (e->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
        e->id_size = identity[0] <= EVENT_ID_MAX ? identity[0] : EVENT_ID_MAX;
        memcpy(e->id, identity + 4, e->id_size);
    } else if (good) {
        memcpy(&e->major, identity, 4);
        memcpy(&e->minor, identity + 4, 4);
        memcpy(&e->inode, identity + 8, 8);
        memcpy(&e->generation, identity + 16, 8);
    }
    return good;
}

/* The registers and the copied stack of a sample. */
static bool decode_stack(struct rest *r, unsigned registers, struct event *e)
{
    uint64_t abi, size;
    if (!take(r, &abi, 8)) {
        return false;
    }
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        if ((size_t)(r->end - r->at) < registers * sizeof(uint64_t)) {
            return false;
        }
        e->registers = abi == PERF_SAMPLE_REGS_ABI_64 ? (const void *)r->at : NULL;
        r->at += registers * sizeof(uint64_t);
    }
    if (!take(r, &size, 8) || size > (size_t)(r->end - r->at)) {
        return false;
    }
    e->stack = r->at;
    r->at += size;
    if (size == 0) {
        return true;
    }
    return take(r, &e->stack_size, 8) && e->stack_size <= size;
}

bool event_decode(const struct perf_event_header *h, unsigned registers, struct event *out)
{
    struct rest r = {(const uint8_t *)(h + 1), (const uint8_t *)h + h->size};
    *out = (struct event){.type = h->type, .misc = h->misc};
    if (h->size < sizeof *h) {
        return false;
    }
    if (h->type == PERF_RECORD_SAMPLE) {
        uint64_t address;
        if (!take(&r, &address, 8) || !take(&r, &out->pid, 4) || !take(&r, &out->tid, 4) || !take(&r, &out->time, 8) ||
            !take(&r, &out->chain_count, 8) || out->chain_count > (size_t)(r.end - r.at) / 8) {
            return false;
        }
        out->chain = (const void *)r.at;
        r.at += out->chain_count * 8;
        return registers == 0 || decode_stack(&r, registers, out);
    }
    if (h->size < sizeof *h + 16) {
        return false;
    }
    r.end -= 16;
    memcpy(&out->time, r.end + 8, 8);
    switch (h->type) {
    case PERF_RECORD_MMAP2:
        return decode_mmap(&r, out);
    case PERF_RECORD_COMM:
        return take(&r, &out->pid, 4) && take(&r, &out->tid, 4) && take_text(&r, &out->comm);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return take(&r, &out->pid, 4) && take(&r, &out->parent, 4) && take(&r, &out->tid, 4) &&
               take(&r, &out->parent_tid, 4);
    case PERF_RECORD_LOST: {
        uint64_t id;
        return take(&r, &id, 8) && take(&r, &out->lost, 8);
    }
    default:
        return true;
    }
}
