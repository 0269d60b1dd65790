#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "proto/place.h"
#include "record/record_internal.h"

#define BUCKETS 4096u
#define MAPS_MAX 8192u /* of a process */
#define USER_NS UINT64_C(1000000000)
#define COLLECTOR_MEMORY "/memfd:profd-collect" /* as it stands in /proc/PID/maps */

LIST_HEAD(process_list, process);

struct processes {
    struct images *images;
    uint32_t self;
    size_t ended; /* since the last processes_forget_ended */
    struct process_list buckets[BUCKETS];
};

enum profd_status processes_new(struct images *images, struct processes **out, struct profd_error *e)
{
    struct processes *t = calloc(1, sizeof *t);
    TRY(t ? PROFD_OK : profd_no_memory(e));
    t->images = images;
    t->self = (uint32_t)getpid();
    *out = t;
    return PROFD_OK;
}

static void process_free(struct process *p)
{
    jit_free(p->jit);
    free(p->maps);
    free(p);
}

void processes_free(struct processes *t)
{
    if (!t) {
        return;
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct process *p; (p = LIST_FIRST(&t->buckets[i])) != NULL;) {
            LIST_REMOVE(p, link);
            process_free(p);
        }
    }
    free(t);
}

struct process *processes_find(const struct processes *t, uint32_t pid)
{
    struct process *p;
    LIST_FOREACH(p, &t->buckets[pid % BUCKETS], link)
    {
        if (p->pid == pid) {
            return p;
        }
    }
    return NULL;
}

static struct process *process_new(struct processes *t, uint32_t pid)
{
    struct process *p = calloc(1, sizeof *p);
    if (p) {
        p->pid = pid;
        p->program = IMAGE_NONE;
        LIST_INSERT_HEAD(&t->buckets[pid % BUCKETS], p, link);
    }
    return p;
}

uint32_t process_find_build(struct images *images, const struct process *p, uint32_t file)
{
    return images_find_build(images, file, &(struct image_user){p->pid, p->elder, p->origin.uid});
}

/* --- maps --- */

/* Returns the index of the first map that ends above the address. O(log maps). */
static uint32_t map_search(const struct process *p, uint64_t address)
{
    uint32_t first;
    SORT_SEARCH(first, 0, p->map_count, p->maps[first].end <= address);
    return first;
}

const struct process_map *process_find_map(const struct process *p, uint64_t address)
{
    const uint32_t at = map_search(p, address);
    return at < p->map_count && p->maps[at].start <= address ? &p->maps[at] : NULL;
}

/* Adds a map. It replaces the maps at its addresses. */
static bool map_add(struct process *p, const struct process_map *map)
{
    if (p->map_capacity - p->map_count < 2) {
        const uint32_t capacity = 2 * p->map_capacity + 16;
        void *grown = realloc(p->maps, capacity * sizeof *p->maps);
        if (!grown) {
            return false;
        }
        p->maps = grown;
        p->map_capacity = capacity;
    }
    if (p->map_count >= MAPS_MAX) {
        p->map_count = 0; /* the next ticks of such a process are outside */
    }
    uint32_t at = map_search(p, map->start), behind = at;
    struct process_map pieces[3];
    uint32_t n = 0;
    if (at < p->map_count && p->maps[at].start < map->start) {
        pieces[n] = p->maps[at];
        pieces[n++].end = map->start;
    }
    pieces[n++] = *map;
    while (behind < p->map_count && p->maps[behind].start < map->end) {
        behind++;
    }
    if (behind > at && p->maps[behind - 1].end > map->end) {
        const struct process_map *last = &p->maps[behind - 1];
        pieces[n++] = (struct process_map){map->end, last->end, last->offset + (map->end - last->start), last->file};
    }
    memmove(p->maps + at + n, p->maps + behind, (p->map_count - behind) * sizeof *p->maps);
    memcpy(p->maps + at, pieces, n * sizeof *pieces);
    p->map_count = p->map_count - (behind - at) + n;
    return true;
}

/* --- /proc --- */

/* The vDSO of a 32-bit process is another file, which gets no name. */
static const char *path_of(const char *path, uint64_t start)
{
    return start <= UINT32_MAX && strcmp(path, IMAGE_VDSO) == 0 ? "" : path;
}

/* Parses a line of /proc/PID/maps: "start-end perms offset major:minor inode path". Returns whether it is executable.
 */
static bool line_parse(char *line, struct process_map *map, struct image_key *key)
{
    char permissions[8];
    const char *at = line;
    uint64_t major, minor;
    line[strcspn(line, "\n")] = '\0';
    if (!scan_number(&at, 16, &map->start) || !scan_skip(&at, '-') || !scan_number(&at, 16, &map->end) ||
        !scan_word(&at, permissions, sizeof permissions) || !scan_number(&at, 16, &map->offset) ||
        !scan_number(&at, 16, &major) || !scan_skip(&at, ':') || !scan_number(&at, 16, &minor) ||
        !scan_number(&at, 10, &key->inode) || map->end <= map->start) {
        return false;
    }
    key->major = (uint32_t)major;
    key->minor = (uint32_t)minor;
    key->path = path_of(at + strspn(at, " "), map->start);
    return permissions[2] == 'x';
}

/* Reads the maps of a process. A process that cannot be read has none. */
static bool maps_read(struct processes *t, struct process *p)
{
    char name[64], program[4096 + 16], *line = NULL;
    size_t size = 0;
    bool good = true;
    (void)snprintf(name, sizeof name, "/proc/%" PRIu32 "/maps", p->pid);
    FILE *f = fopen(name, "re");
    if (!f) {
        return true;
    }
    (void)snprintf(name, sizeof name, "/proc/%" PRIu32 "/exe", p->pid);
    const ssize_t n = readlink(name, program, sizeof program - 1);
    const bool has_program = n > 0 || errno != ENOENT;
    program[n > 0 ? n : 0] = '\0';
    while (good && getline(&line, &size, f) > 0) {
        struct process_map map;
        struct image_key key = {.id_size = 0};
        if (!line_parse(line, &map, &key)) {
            continue;
        }
        map.file = images_take_file(t->images, &key);
        good = map.file != IMAGE_NONE && map_add(p, &map);
        if (good && p->program == IMAGE_NONE && program[0] && strcmp(key.path, program) == 0) {
            p->program = map.file;
        }
        p->preloaded |= good && images_is_collector(t->images, map.file);
    }
    p->in_kernel = good && p->map_count == 0 && !has_program;
    free(line);
    (void)fclose(f);
    return good;
}

struct process *processes_take(struct processes *t, uint32_t pid)
{
    struct process *p = processes_find(t, pid);
    if (p) {
        return p;
    }
    p = process_new(t, pid);
    if (p && pid != 0) {
        (void)origin_read_comm(pid, p->origin.comm);
        (void)maps_read(t, p);
    }
    return p;
}

enum profd_status processes_read_all(struct processes *t, struct profd_error *e)
{
    DIR *d = opendir("/proc");
    FAIL_IF(!d, e, PROFD_NO_INPUT, "cannot read /proc: %s", strerror(errno));
    enum profd_status status = PROFD_OK;
    for (const struct dirent *entry; status == PROFD_OK && (entry = readdir(d)) != NULL;) {
        char *end;
        const unsigned long pid = strtoul(entry->d_name, &end, 10);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || *end || pid > INT32_MAX) {
            continue;
        }
        if (!processes_take(t, (uint32_t)pid)) {
            status = profd_no_memory(e);
        }
    }
    (void)closedir(d);
    return status;
}

/* Looks through the maps of a process. Returns where it publishes its context, 0 for nowhere; *collected: the collector
 * counts it. */
static uint64_t maps_find(uint32_t pid, bool *collected)
{
    char name[64], *line = NULL;
    size_t size = 0;
    uint64_t context = 0;
    *collected = false;
    (void)snprintf(name, sizeof name, "/proc/%" PRIu32 "/maps", pid);
    FILE *f = fopen(name, "re");
    while (f && !*collected && getline(&line, &size, f) > 0) {
        const char *at = line;
        *collected = strstr(line, COLLECTOR_MEMORY) != NULL;
        if (context == 0 && context_is_mapping(line)) {
            (void)scan_number(&at, 16, &context);
        }
    }
    free(line);
    if (f) {
        (void)fclose(f);
    }
    return context;
}

bool process_look(struct process *p, uint64_t time)
{
    if (p->looked) {
        if (time > p->user_read + USER_NS && !p->ended && p->known) {
            struct timespec now;
            p->user_read = time;
            p->next_user = p->origin.uid;
            (void)origin_read_user(p->pid, &p->next_user);
            clock_gettime(CLOCK_MONOTONIC, &now);
            p->next_from = (uint64_t)now.tv_sec * USER_NS + (uint64_t)now.tv_nsec;
        }
        /* Events are older than the content of /proc, so the new user applies from the time of its reading. */
        const bool changes = p->next_from != 0 && time >= p->next_from, other = p->next_user != p->origin.uid;
        if (changes) {
            p->origin.uid = p->next_user;
            p->next_from = 0;
        }
        return changes && other;
    }
    p->looked = true;
    p->user_read = time;
    p->next_from = 0;
    if (p->ended || !origin_read(p->pid, &p->origin)) {
        p->collected |= p->preloaded;
        return false;
    }
    p->known = true;
    context_read(p->pid, maps_find(p->pid, &p->collected), &p->origin);
    return false;
}

const uint8_t *process_get_key(struct process *p)
{
    if (!p->has_key) {
        const uint64_t start = place_read_start(p->pid);
        p->has_key = true;
        memcpy(p->key, &p->pid, sizeof p->pid);
        memcpy(p->key + sizeof p->pid, &start, sizeof start);
    }
    return p->key;
}

static void process_keep(void *context, struct process *before)
{
    struct process *p = before->counted || before->wanted ? processes_find(context, before->pid) : NULL;
    if (p && memcmp(process_get_key(p), process_get_key(before), sizeof p->key) == 0) {
        p->counted = before->counted;
        p->wanted = before->wanted;
    }
}

void processes_keep_counted(struct processes *t, struct processes *before)
{
    processes_each(before, process_keep, t);
}

/* --- records --- */

static bool apply_mmap(struct processes *t, const struct event *e)
{
    struct process *p = processes_find(t, e->pid);
    if (!p) {
        return processes_take(t, e->pid) != NULL; /* which reads this one, too */
    }
    const struct image_key key = {.path = path_of(e->path, e->start),
                                  .id = e->id,
                                  .id_size = e->id_size,
                                  .major = e->major,
                                  .minor = e->minor,
                                  .inode = e->inode,
                                  .generation = e->generation};
    const struct process_map map = {e->start, e->start + e->size, e->offset, images_take_file(t->images, &key)};
    if (map.file == IMAGE_NONE || map.end <= map.start) {
        return map.end <= map.start;
    }
    if (p->program == IMAGE_NONE && e->path[0] == '/') {
        p->program = map.file; /* the kernel maps the program before anything else */
    }
    p->preloaded |= images_is_collector(t->images, map.file);
    return map_add(p, &map);
}

static bool apply_comm(struct processes *t, const struct event *e)
{
    struct process *p = processes_find(t, e->pid);
    if (!p) {
        return processes_take(t, e->pid) != NULL;
    }
    if (e->misc & PERF_RECORD_MISC_COMM_EXEC) {
        /* execve: another program in the same process. */
        jit_free(p->jit);
        p->jit = NULL;
        p->map_count = 0;
        p->in_kernel = false;
        p->program = IMAGE_NONE;
        p->elder = 0;
        p->looked = p->known = p->collected = p->preloaded = p->counted = false;
        p->sum = NULL;
    }
    if (e->pid == e->tid) {
        (void)snprintf(p->origin.comm, sizeof p->origin.comm, "%s", e->comm);
        p->sum = NULL;
    }
    return true;
}

static bool apply_fork(struct processes *t, const struct event *e)
{
    if (e->pid == e->parent) { /* a thread */
        return true;
    }
    struct process *parent = processes_take(t, e->parent);
    struct process *p = processes_find(t, e->pid);
    if (!p) {
        p = process_new(t, e->pid);
    }
    const size_t maps = parent ? parent->map_count * sizeof *parent->maps : 0;
    void *copy = maps ? malloc(maps) : NULL;
    if (!parent || !p || (maps && !copy)) {
        free(copy);
        return false;
    }
    free(p->maps);
    p->maps = copy;
    p->map_count = p->map_capacity = parent->map_count;
    if (copy) {
        memcpy(copy, parent->maps, maps);
    }
    if (!parent->looked) {
        (void)process_look(parent, e->time);
    }
    t->ended -= p->ended;
    jit_free(p->jit);
    p->jit = NULL;
    p->program = parent->program;
    p->elder = parent->ended ? parent->elder : parent->pid;
    p->origin = parent->origin;
    p->preloaded = parent->preloaded;
    p->in_kernel = parent->in_kernel;
    p->wanted = parent->wanted;
    p->looked = p->known = p->collected = p->counted = p->ended = p->has_key = p->clocked = p->cpu_read = false;
    p->sum = NULL;
    p->cpu_begun = true; /* it begins with none */
    p->cpu_before = p->ticks_ns = 0;
    return true;
}

bool processes_apply(struct processes *t, const struct event *e)
{
    struct process *p;
    switch (e->type) {
    case PERF_RECORD_MMAP2:
        return apply_mmap(t, e);
    case PERF_RECORD_COMM:
        return apply_comm(t, e);
    case PERF_RECORD_FORK:
        return apply_fork(t, e);
    case PERF_RECORD_EXIT:
        p = e->pid == e->tid ? processes_find(t, e->pid) : NULL;
        if (p && !p->ended) {
            p->ended = true;
            t->ended++;
        }
        return true;
    default:
        return true;
    }
}

void processes_each(struct processes *t, processes_act *act, void *context)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct process *p;
        LIST_FOREACH(p, &t->buckets[i], link)
        {
            act(context, p);
        }
    }
}

void processes_forget_ended(struct processes *t, processes_act *act, void *context)
{
    size_t ended = t->ended;
    for (unsigned i = 0; i < BUCKETS && ended > 0; i++) {
        for (struct process *p = LIST_FIRST(&t->buckets[i]), *next; p; p = next) {
            next = LIST_NEXT(p, link);
            ended -= p->ended;
            /* A process may live on after its first thread. */
            if (p->ended && kill((pid_t)p->pid, 0) != 0 && errno == ESRCH) {
                act(context, p);
                LIST_REMOVE(p, link);
                process_free(p);
                t->ended--;
            }
        }
    }
}

void processes_begin_interval(struct processes *t)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct process *p;
        LIST_FOREACH(p, &t->buckets[i], link)
        {
            p->sum = NULL;
            p->looked = false;
        }
    }
}

void account_read(struct process *p)
{
    clockid_t clock;
    struct timespec t;
    if (p->pid != 0 && clock_getcpuclockid((pid_t)p->pid, &clock) == 0 && clock_gettime(clock, &t) == 0) {
        p->cpu_now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        p->cpu_read = true;
    }
}

static void unclocked_add(struct process *p)
{
    if (p->sum) {
        p->sum->tally.counters[COLLECTOR_UNCLOCKED_NS] += p->ticks_ns;
    }
    p->ticks_ns = 0;
}

void account_begin(struct process *p)
{
    p->cpu_begun = p->cpu_read;
    p->cpu_before = p->cpu_now;
    p->cpu_read = false;
    p->ticks_ns = 0;
}

void account_add(struct process *p)
{
    if (p->sum && p->cpu_read && p->cpu_begun && p->cpu_now >= p->cpu_before) {
        p->sum->tally.counters[COLLECTOR_CPU_NS] += p->cpu_now - p->cpu_before;
        p->sum->tally.counters[COLLECTOR_PROCESSES] += !p->clocked;
        p->clocked = true;
    } else if (p->sum) {
        unclocked_add(p);
    } else if (p->cpu_begun) {
        p->cpu_read = false; /* the next sum gets it */
        return;
    }
    account_begin(p);
}

void account_exec(struct process *p)
{
    if (p->ticks_ns > 0) {
        unclocked_add(p);
        p->cpu_begun = false;
    }
    p->clocked = false;
}
