/* Begin and end of counting, and forks: the raw part, which may run inside the first call. */
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "client/collect/collect.h"
#include "client/collect/handover.h"
#include "client/collect/kin.h"
#include "client/collect/module.h"
#include "client/collect/option.h"
#include "client/collect/pause.h"
#include "client/collect/raw.h"
#include "client/collect/region.h"
#include "client/collect/rewrite.h"
#include "client/collect/sample.h"
#include "client/collect/count_table.h"
#include "client/collect/stack_tree.h"
#include "client/collect/unload.h"
#include "proto/filters.h"

static void labels_write(void)
{
    uint32_t left_out, n = option_labels(NULL, ATTACH_LABEL_BYTES, &left_out);
    struct attach_chunk *c = n ? region_take(collect.header, sizeof *c + n, 0) : NULL;
    if (left_out) {
        collect_counter_add(ATTACH_COUNTER_LABELS_LEFT_OUT, left_out);
    }
    if (!c) {
        return;
    }
    c->primary = option_labels((char *)(c + 1), n, &left_out);
    region_publish(c, ATTACH_KIND_LABELS);
}

#define STATUS_BYTES 4096

/* The seccomp filters that the process has; 1 if that is not known. */
static uint32_t filters_read(void)
{
    static const char path[] = "/proc/self/status";
    char text[STATUS_BYTES + 1];
    long fd = raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), n = 0;
    if (fd >= 0) {
        n = raw_call(SYS_read, fd, text, STATUS_BYTES, 0);
        raw_call(SYS_close, fd, 0, 0, 0);
    }
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? filters_count(text) : 1;
}

/* A page that a child does not inherit, by which a child of a direct clone() is recognized. */
static void alone_prepare(void)
{
    long page = collect.alone
                    ? (long)collect.alone
                    : raw_call6(SYS_mmap, 0, ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0 && page > -4096) {
        return;
    }
    if (!collect.alone && raw_call(SYS_madvise, page, ATTACH_PAGE, MADV_WIPEONFORK, 0) < 0) {
        return;
    }
    collect.alone = (uint32_t *)page;
    *collect.alone = 1;
}

void collect_check_alone(void)
{
    if (!collect.alone || *collect.alone) {
        return;
    }
    collect.header->counters[ATTACH_COUNTER_FORKS_UNSEEN] = 1; /* the parent's, so far */
    collect_start_child();
}

/* Fills a new region and sends its descriptor. learn (may be NULL) registers the objects first. */
static void region_begin(int fd, void (*learn)(void), bool child)
{
    alone_prepare();
    collect.header->rate = option.rate;
    collect.header->mode = option.mode;
    module_learn_program();
    if (learn) {
        learn();
    }
    labels_write();
    __atomic_store_n(&collect.stage, COLLECT_RUNNING, __ATOMIC_RELEASE);
    handover_begin(fd, child);
}

bool collect_start(void (*learn)(void))
{
    uint32_t fresh = COLLECT_FRESH;
    int fd = -1;
    if (!__atomic_compare_exchange_n(&collect.stage, &fresh, COLLECT_BUSY, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return fresh == COLLECT_RUNNING;
    }
    /* A set-user-id program must not connect to a socket named by the environment, nor reveal its memory. */
    if (getauxval(AT_SECURE) || collect.copies) {
        __atomic_store_n(&collect.stage, COLLECT_REFUSED, __ATOMIC_RELEASE);
        __atomic_store_n(&collect.on, 0, __ATOMIC_RELEASE);
        return false;
    }
    option_read();
    collect.header = region_create(NULL, option.memory, &fd);
    if (!collect.header) {
        __atomic_store_n(&collect.stage, COLLECT_REFUSED, __ATOMIC_RELEASE);
        __atomic_store_n(&collect.on, 0, __ATOMIC_RELEASE);
        return false;
    }
    collect.header->filters = filters_read();
    region_begin(fd, learn, false);
    return true;
}

void collect_start_child(void)
{
    uint8_t parent[ATTACH_INSTANCE_SIZE];
    int fd = -1;
    if (collect.stage != COLLECT_RUNNING) {
        return;
    }
    raw_copy(parent, collect.header->instance, sizeof parent);
    const uint32_t filters = collect.header->filters;
    kin_begin_child(collect.header);
    handover_reset();
    count_table_reset();
    stack_tree_reset();
    module_reset();
    unload_reset();
    rewrite_begin_child();
    if (!region_create(collect.header, collect.header->size, &fd)) {
        collect.stage = COLLECT_REFUSED; /* the old mapping is still there, and it is the parent's */
        kin_reset();
        collect_counter_add(ATTACH_COUNTER_CHILDREN, 1); /* what it calls is lost */
        collect.on = 0;
        return;
    }
    raw_copy(collect.header->parent, parent, sizeof parent);
    collect.header->filters = filters;
    region_begin(fd, NULL, true);
    collect_tell_left_out(rewrite_left_out());
    pause_begin_child();
    collect_counter_add(ATTACH_COUNTER_THREADS, 1);
    sample_arm_child();
}
