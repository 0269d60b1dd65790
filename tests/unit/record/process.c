/* Processes and what they have mapped: maps that replace others, fork, exec and exit. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/record_internal.h"

#define PARENT 0x7ffffff0u /* numbers that no process has */
#define CHILD 0x7ffffff1u

static struct images *images;
static struct processes *processes;

static void setup(void)
{
    cr_assert_eq(images_new(&images, NULL), PROFD_OK);
    cr_assert_eq(processes_new(images, &processes, NULL), PROFD_OK);
}

static void teardown(void)
{
    processes_free(processes);
    images_free(images);
}

TestSuite(process, .init = setup, .fini = teardown);

static void map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    const struct event e = {.type = PERF_RECORD_MMAP2,
                            .pid = pid,
                            .tid = pid,
                            .start = start,
                            .size = end - start,
                            .offset = offset,
                            .path = path};
    cr_assert(processes_apply(processes, &e));
}

static struct process *take(uint32_t pid)
{
    struct process *p = processes_take(processes, pid);
    cr_assert_not_null(p);
    return p;
}

static const struct process_map *find(uint32_t pid, uint64_t address)
{
    return process_find_map(take(pid), address);
}

Test(process, a_map_replaces_what_was_there)
{
    take(PARENT);
    map(PARENT, 0x1000, 0x9000, 0, "/a");
    map(PARENT, 0x3000, 0x5000, 0x100, "/b");
    const uint32_t a = find(PARENT, 0x1000)->file, b = find(PARENT, 0x3000)->file;
    cr_assert_neq(a, b);
    cr_assert(find(PARENT, 0x2fff)->file == a && find(PARENT, 0x2fff)->offset == 0);
    cr_assert(find(PARENT, 0x4fff)->file == b && find(PARENT, 0x4fff)->offset == 0x100);
    cr_assert(find(PARENT, 0x5000)->file == a);
    cr_assert_eq(find(PARENT, 0x5000)->offset, 0x4000, "the rest keeps its place in the file");
    cr_assert_null(find(PARENT, 0xfff));
    cr_assert_null(find(PARENT, 0x9000));
    map(PARENT, 0, 0x10000, 0, "/c");
    cr_assert_eq(take(PARENT)->map_count, 1);
}

Test(process, random_maps_equal_a_page_table)
{
    uint32_t pages[64];
    unsigned seed = 1;
    char path[16];
    memset(pages, 0xff, sizeof pages);
    take(PARENT);
    for (unsigned round = 0; round < 5000; round++) {
        seed = seed * 1103515245 + 12345;
        const unsigned first = seed >> 16 & 63, last = first + (seed >> 8 & 7) % (64 - first);
        (void)snprintf(path, sizeof path, "/%u", round % 50);
        map(PARENT, first * 0x1000ull, (last + 1) * 0x1000ull, first * 0x1000ull, path);
        const uint32_t file = find(PARENT, first * 0x1000ull)->file;
        for (unsigned i = first; i <= last; i++) {
            pages[i] = file;
        }
        for (unsigned i = 0; i < 64; i++) {
            const struct process_map *m = find(PARENT, i * 0x1000ull + 5);
            cr_assert(m ? m->file == pages[i] : pages[i] == UINT32_MAX, "round %u, page %u", round, i);
            cr_assert(!m || m->offset + (i * 0x1000ull - m->start) == i * 0x1000ull, "round %u, page %u", round, i);
        }
    }
}

static void count(void *context, struct process *p)
{
    cr_assert(p->ended);
    ++*(unsigned *)context;
}

/* A child has as many maps as its parent, without a reserve. */
Test(process, a_child_maps_into_its_only_map)
{
    const struct event fork_record = {.type = PERF_RECORD_FORK, .pid = CHILD, .tid = CHILD, .parent = PARENT};
    take(PARENT);
    map(PARENT, 0x1000, 0x9000, 0, "/a");
    cr_assert(processes_apply(processes, &fork_record));
    map(CHILD, 0x3000, 0x5000, 0, "/b");
    cr_assert_eq(take(CHILD)->map_count, 3);
    cr_assert_geq(take(CHILD)->map_capacity, 3);
    cr_assert_eq(find(CHILD, 0x8fff)->file, find(PARENT, 0x1000)->file);
}

Test(process, fork_exec_and_exit)
{
    const struct event fork_record = {.type = PERF_RECORD_FORK, .pid = CHILD, .tid = CHILD, .parent = PARENT};
    const struct event thread = {.type = PERF_RECORD_FORK, .pid = CHILD, .tid = CHILD + 1, .parent = CHILD};
    const struct event exec = {
        .type = PERF_RECORD_COMM, .pid = CHILD, .tid = CHILD, .misc = PERF_RECORD_MISC_COMM_EXEC, .comm = "other"};
    const struct event exit_record = {.type = PERF_RECORD_EXIT, .pid = CHILD, .tid = CHILD, .parent = PARENT};
    take(PARENT)->wanted = true;
    take(PARENT)->looked = true;
    take(PARENT)->origin.uid = 33;
    map(PARENT, 0x1000, 0x9000, 0, "/program");
    cr_assert(processes_apply(processes, &fork_record));
    cr_assert(processes_apply(processes, &thread));
    cr_assert(find(CHILD, 0x2000)->file == find(PARENT, 0x2000)->file);
    cr_assert(take(CHILD)->wanted && take(CHILD)->origin.uid == 33 && !take(CHILD)->counted);
    cr_assert_eq(take(CHILD)->program, take(PARENT)->program);
    cr_assert(processes_apply(processes, &exec));
    cr_assert_null(find(CHILD, 0x2000));
    cr_assert_eq(take(CHILD)->program, IMAGE_NONE);
    cr_assert_str_eq(take(CHILD)->origin.comm, "other");
    map(CHILD, 0x5000, 0x6000, 0, "/other");
    map(CHILD, 0x7000, 0x8000, 0, "/libc");
    cr_assert_eq(take(CHILD)->program, find(CHILD, 0x5000)->file, "the program is mapped first");
    cr_assert_not_null(find(PARENT, 0x2000));
    cr_assert(processes_apply(processes, &exit_record));
    cr_assert(take(CHILD)->ended);
    unsigned forgotten = 0;
    processes_forget_ended(processes, count, &forgotten);
    cr_assert_eq(forgotten, 1);
    cr_assert_eq(take(CHILD)->map_count, 0, "another process of that number");
}

Test(process, this_process_is_read_from_proc)
{
    const struct process *p = take((uint32_t)getpid());
    const struct process_map *own = process_find_map(p, (uint64_t)(uintptr_t)&setup);
    cr_assert_not_null(own);
    cr_assert_eq(p->program, own->file);
    const uint32_t build = process_find_build(images, p, own->file);
    cr_assert_neq(build, IMAGE_NONE);
    uint64_t address;
    const uint64_t offset = (uint64_t)(uintptr_t)&setup - own->start + own->offset;
    cr_assert(images_find_address(images, own->file, offset, &address));
    const struct tally_range range = images_get_range(images, build);
    cr_assert(range.low <= address && address < range.high);
}

/* Processes of a server that end before their first tick is read: the program is found nevertheless. */
Test(process, the_program_of_a_process_that_is_gone)
{
    const uint32_t self = (uint32_t)getpid();
    const struct event fork_record = {.type = PERF_RECORD_FORK, .pid = CHILD, .tid = CHILD, .parent = self};
    const struct event grandchild = {.type = PERF_RECORD_FORK, .pid = PARENT, .tid = PARENT, .parent = CHILD};
    const struct event exit_record = {.type = PERF_RECORD_EXIT, .pid = CHILD, .tid = CHILD, .parent = self};
    const uint32_t file = find(self, (uint64_t)(uintptr_t)&setup)->file;
    struct process alone = {.pid = CHILD};
    cr_assert_eq(process_find_build(images, &alone, file), IMAGE_NONE, "nobody can show the file");
    cr_assert(processes_apply(processes, &fork_record));
    cr_assert_neq(process_find_build(images, take(CHILD), file), IMAGE_NONE, "the process that started it can");
    cr_assert(processes_apply(processes, &exit_record));
    cr_assert(processes_apply(processes, &grandchild));
    cr_assert_eq(take(PARENT)->elder, self);
}

Test(process, what_was_counted_stays_counted)
{
    struct processes *later;
    const uint32_t self = (uint32_t)getpid(), parent = (uint32_t)getppid();
    take(self)->counted = true;
    (void)process_get_key(take(self));
    take(parent)->counted = true;
    (void)process_get_key(take(parent));
    take(parent)->key[sizeof take(parent)->key - 1] ^= 1; /* another process had its number */
    take(CHILD)->counted = true;
    cr_assert_eq(processes_new(images, &later, NULL), PROFD_OK);
    cr_assert(processes_take(later, self) && processes_take(later, parent));
    processes_keep_counted(later, processes);
    cr_assert(processes_find(later, self)->counted && !processes_find(later, self)->wanted);
    cr_assert(!processes_find(later, parent)->counted);
    cr_assert_null(processes_find(later, CHILD));
    processes_free(later);
}
