#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "core/coverage.h"
#include "live/live_internal.h"
#include "proto/hex.h"
#include "proto/noun.h"

/* What is shown of live processes: rows, from the loop's memory. */

/* Sealed while the daemon has it mapped writable: no new writable mapping is possible afterwards. */
static bool page_seal(int fd, struct attach_page **page)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void *at = MAP_FAILED;

    if (!ftruncate(fd, ATTACH_PAGE)) {
        at = mmap(NULL, ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        return false;
    }
    if (fcntl(fd, F_ADD_SEALS, seals)) {
        munmap(at, ATTACH_PAGE);
        return false;
    }
    *page = at;
    return true;
}

enum profd_status page_new(struct attach_page **page, int *fd, struct profd_error *e)
{
    const int memory = memfd_create("profd-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct attach_page *made;

    if (memory < 0 || !page_seal(memory, &made)) {
        profd_error_set(e, PROFD_NO_MEMORY, "cannot create the control page of the process: %s", strerror(errno));
        if (memory >= 0) {
            close(memory);
        }
        return PROFD_NO_MEMORY;
    }
    made->layout = ATTACH_LAYOUT;
    made->beat = 1;
    made->magic = ATTACH_PAGE_MAGIC;
    *page = made;
    *fd = memory;
    return PROFD_OK;
}

void page_close(struct attach_page *page)
{
    if (page) {
        __atomic_store_n(&page->beat, 0, __ATOMIC_RELAXED);
    }
}

void page_beat(struct attach_page *page, bool ask, bool filtered)
{
    const uint32_t beat = page->beat + 1;

    if (filtered) {
        __atomic_store_n(&page->filtered, 1, __ATOMIC_RELAXED);
    } else if (ask) {
        __atomic_store_n(&page->asked, page->asked + 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&page->beat, beat ? beat : 1, __ATOMIC_RELEASE);
}

void page_free(struct attach_page *page)
{
    if (page) {
        page_close(page);
        munmap(page, ATTACH_PAGE);
    }
}

void page_write(struct attach_page *page, bool paused, uint32_t rate)
{
    __atomic_store_n(&page->rate, rate, __ATOMIC_RELAXED);
    __atomic_store_n(&page->paused, paused ? 1u : 0u, __ATOMIC_RELEASE);
}

static const char *list_state(const struct live_process *a)
{
    if (a->dead) {
        return "ended";
    }
    if (a->page && a->page->paused) {
        return "paused";
    }
    return a->conn ? "counting" : "silent";
}

/* The process as a row. Its texts belong to the process, but for why. */
static struct process_row list_make_row(const struct live_process *a, int64_t now, char why[48])
{
    static const uint8_t nobody[ATTACH_INSTANCE_SIZE];
    struct process_row row = {.instance = a->instance,
                              .now = now,
                              .uid = a->uid,
                              .pid = a->origin.pid,
                              .build_id = "",
                              .name = "",
                              .why = "",
                              .mode = "off",
                              .state = list_state(a),
                              .overhead = -1};
    const struct attach_summary *f = a->summary ? &a->summary->values : NULL;

    row.rate_asked = a->page ? a->page->rate : 0;
    if (f) {
        for (size_t i = 0; f->why[i] && i + 1 < 48; i++) {
            why[i] = (char)tolower((unsigned char)f->why[i]);
        }
        row.parent = memcmp(f->parent, nobody, sizeof nobody) ? f->parent : NULL;
        row.pid_inside = f->pid_inside;
        row.build_id = f->build_id;
        row.name = f->name;
        row.label_count = f->label_count;
        row.labels = a->summary->labels;
        row.started = f->start;
        row.mode = f->mode == ATTACH_MODE_CPU ? "cpu" : "off";
        row.rate = f->rate;
        row.calls_exact = f->calls_exact;
        row.ticks_exact = f->ticks_exact;
        row.exact = f->calls_exact && f->ticks_exact;
        row.why = why;
        row.calls = f->calls;
        row.ticks = f->ticks;
        row.cpu_ns = f->cpu_ns;
        row.bytes = f->bytes;
        const int64_t since = f->harvested_before ? f->harvested_before : f->start;
        const bool counted = f->harvested > since && f->harvested && f->calls >= f->calls_before;
        row.calls_per_second =
            counted ? (double)(f->calls - f->calls_before) * 1e9 / (double)(f->harvested - since) : 0;
        /* The share of CPU time spent counting, by the ticks inside the collector. Negative if it is not known: fewer
         * ticks than half of the CPU time, or none inside of fewer than 30 samples. */
        const bool known = f->rate && f->ticks && (double)f->ticks / f->rate >= (double)f->cpu_ns / 2e9 &&
                           (f->ticks_inside > 0 || f->samples >= COVERAGE_SAMPLES_LEAST);
        row.overhead = known ? (double)f->ticks_inside / (double)f->ticks : -1;
        row.overhead_below = row.overhead == 0 ? 3 / (double)f->samples : 0; /* the rule of three */
        row.harvested = f->harvested;
    }
    return row;
}

static const void *list_copy(struct arena *arena, const void *bytes, size_t n, bool *failed)
{
    const void *copy = bytes ? arena_copy(arena, bytes, n) : NULL;

    *failed = *failed || (bytes && !copy);
    return copy;
}

static const char *list_copy_text(struct arena *arena, const char *text, bool *failed)
{
    return list_copy(arena, text, strlen(text) + 1, failed);
}

bool list_copy_row(const struct live_process *a, int64_t now, struct arena *arena, struct process_row *row)
{
    char why[48] = "";
    struct label_row *labels;
    bool failed = false;

    *row = list_make_row(a, now, why);
    row->instance = list_copy(arena, row->instance, ATTACH_INSTANCE_SIZE, &failed);
    row->parent = list_copy(arena, row->parent, ATTACH_INSTANCE_SIZE, &failed);
    row->build_id = list_copy_text(arena, row->build_id, &failed);
    row->name = list_copy_text(arena, row->name, &failed);
    row->why = list_copy_text(arena, why, &failed);
    labels = ARENA_ARRAY(arena, row->label_count + 1, struct label_row);
    for (size_t i = 0; i < row->label_count && labels; i++) {
        labels[i] = row->labels[i];
        labels[i].name = list_copy_text(arena, labels[i].name, &failed);
        labels[i].value = list_copy_text(arena, labels[i].value, &failed);
    }
    row->labels = labels;
    return labels && !failed;
}

enum profd_status live_list(const struct live *l, const struct store_scope *scope, int64_t now, struct arena *arena,
                            struct process_row **rows, size_t *n, struct profd_error *e)
{
    struct process_row *found = ARENA_ARRAY(arena, l->count + 1, struct process_row);
    const struct live_process *a;
    size_t count = 0;

    FAIL_IF(!found, e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
    LIST_FOREACH(a, &l->processes, all)
    {
        if (!store_scope_has(scope, a->uid)) {
            continue;
        }
        if (!list_copy_row(a, now, arena, &found[count++])) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
        }
    }
    *rows = found;
    *n = count;
    return PROFD_OK;
}

/* ADMIN pause and resume. Processes are selected by process id, by labels or by a prefix of their instance. */

static bool control_has_label(const struct live_process *a, const struct live_selector *r)
{
    const size_t n = a->summary ? a->summary->values.label_count : 0;

    for (size_t i = 0; i < n; i++) {
        const struct label_row *l = &a->summary->labels[i];

        if (strlen(l->name) == r->name_size && !memcmp(l->name, r->text, r->name_size)) {
            return !strcmp(l->value, r->value);
        }
    }
    return !*r->value; /* an absent label equals "" */
}

static bool control_has_prefix(const struct live_process *a, const char *prefix)
{
    char text[2 * ATTACH_INSTANCE_SIZE + 1];

    hex_put(text, a->instance, ATTACH_INSTANCE_SIZE);
    return !strncmp(text, prefix, strlen(prefix));
}

static bool control_is_meant(const struct live_process *a, const struct live_selection *selection)
{
    bool named = false, named_any = false;

    for (size_t i = 0; i < selection->selector_count; i++) {
        const struct live_selector *r = &selection->selectors[i];

        if (r->kind == LIVE_LABEL) {
            if (!control_has_label(a, r)) {
                return false;
            }
            continue;
        }
        named_any = true;
        named |= r->kind == LIVE_PID ? a->origin.pid == r->pid : control_has_prefix(a, r->text);
    }
    return named || !named_any;
}

/* A prefix must select one process, so that a typing error cannot stop others. */
static enum profd_status control_judge_prefixes(struct live *l, bool all, uint32_t uid,
                                                const struct live_selection *selection, struct profd_error *e)
{
    for (size_t i = 0; i < selection->selector_count; i++) {
        const struct live_selector *r = &selection->selectors[i];
        const struct live_process *a;
        size_t n = 0;

        if (r->kind != LIVE_INSTANCE) {
            continue;
        }
        LIST_FOREACH(a, &l->processes, all)
        {
            n += (all || a->uid == uid) && !a->dead && control_has_prefix(a, r->text);
        }
        FAIL_IF(n > 1, e, PROFD_AMBIGUOUS, "%zu live processes have an instance that begins with %s", n, r->text);
    }
    return PROFD_OK;
}

enum profd_status live_control(struct live *l, const struct peer *peer, const struct live_selection *selection,
                               int64_t now, struct arena *a, struct process_row **rows, size_t *n,
                               struct profd_error *e)
{
    enum profd_status status = control_judge_prefixes(l, peer->may_admin, peer->uid, selection, e);
    struct process_row *found = status ? NULL : ARENA_ARRAY(a, l->count + 1, struct process_row);
    struct live_process *p;
    char words[400] = "";
    size_t count = 0, at = 0;

    if (status) {
        return status;
    }
    for (size_t i = 0; i < selection->selector_count && at + 1 < sizeof words; i++) { /* for messages */
        const struct live_selector *r = &selection->selectors[i];
        const char *kind = r->kind == LIVE_PID ? "process " : r->kind == LIVE_INSTANCE ? "instance " : "label ";
        const int length = snprintf(words + at, sizeof words - at, "%s%s%.60s", i ? ", " : "", kind, r->text);

        at += length > 0 ? (size_t)length : 0;
    }
    FAIL_IF(!found, e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
    LIST_FOREACH(p, &l->processes, all)
    {
        if ((!peer->may_admin && p->uid != peer->uid) || p->dead || !p->page || !control_is_meant(p, selection)) {
            continue;
        }
        const bool pause = selection->pause;

        page_write(p->page, pause, selection->has_rate ? selection->rate : p->page->rate);
        if (!list_copy_row(p, now, a, &found[count++])) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
        }
    }
    FAIL_IF(!count, e, PROFD_NOT_FOUND, "no live process%s matches %s; `profctl ps` lists the live processes",
            peer->may_admin ? "" : " of yours", words);
    log_write(LOG_LEVEL_NOTICE, "administration", "user %u: %s of %zu %s (%s)", peer->uid,
              selection->pause ? "pause" : "resume", count, noun_for(count, "process", "processes"), words);
    *rows = found;
    *n = count;
    return PROFD_OK;
}
