/* Foreign frames get places in builds: the test's own executable, which the loader has moved, is what they are of. */
#include <criterion/criterion.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import_any_internal.h"
#include "lib/profd_upload.h"
#include "tests/unit/import/place_twin.h"
#include "proto/frame.h"
#include "proto/message.h"

int place_one(int x);
int place_two(int x);

int __attribute__((noinline)) place_one(int x)
{
    return x * 3 + 1;
}

int __attribute__((noinline)) place_two(int x)
{
    return place_one(x) + place_one(x + 1) * 5;
}

static int __attribute__((noinline, used)) place_twin(int x)
{
    return place_two(x) - twin_call(x);
}

static char self[4096];
static struct arena *arena;
static struct import_profile profile;
static struct import_shelf shelf;
static struct import_notes notes;
static char said[600];

static void say(void *context, const char *sentence)
{
    (void)context;
    snprintf(said, sizeof said, "%s", sentence);
}

static void begin(void)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    cr_assert_gt(n, 0);
    arena = arena_new(64u << 20);
    import_profile_init(&profile, arena);
    shelf = (struct import_shelf){.root = NULL};
    notes = (struct import_notes){.say = say};
    cr_assert_gt(place_twin((int)n), -1000000000);
}

static void end(void)
{
    import_shelf_done(&shelf);
    arena_free(arena);
}

static int first_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uintptr_t *)out = info->dlpi_addr; /* the executable comes first */
    return 1;
}

static uint64_t moved(void)
{
    uintptr_t bias = 0;
    dl_iterate_phdr(first_object, &bias);
    return bias;
}

static uint32_t object(const char *path, enum import_addressing addressing)
{
    struct import_object *o = import_profile_add_object(&profile, path);
    o->addressing = addressing;
    return profile.object_count - 1;
}

static uint32_t frame(uint32_t in, const char *name, const char *file, bool has, uint64_t address, uint64_t ticks)
{
    const struct import_frame f = {
        .object = in, .name = name, .file = file, .has_address = has, .address = address, .offset = IMPORT_NO_OFFSET};
    const uint32_t index = import_profile_take_frame(&profile, &f);
    import_profile_add_ticks(&profile, index, ticks);
    return index;
}

/* What the upload holds, as it would travel. */
struct arrived {
    struct message m;
    struct counts c;
};

static void arrive(const struct profd_upload *u, struct arrived *a)
{
    struct profd_id id = {.sequence = 1};
    uint8_t *bytes;
    size_t n;
    struct profd_error e = {""};
    cr_assert_eq(upload_encode(u, &id, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(message_decode(FRAME_UPLOAD, bytes + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE, &a->m, &e), PROFD_OK,
                 "%s", e.sentence);
    const struct message_upload *m = &a->m.as.upload;
    cr_assert_eq(counts_decode(m->counts.data, m->counts.size, (uint32_t)m->build_count, &a->c, &e), PROFD_OK, "%s",
                 e.sentence);
    free(bytes);
}

static enum profd_status place(bool strict, struct arrived *a, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = import_place_profile(&shelf, &profile, strict, &notes, &u, e);
    if (status == PROFD_OK) {
        arrive(u, a);
        profd_upload_free(u);
    }
    return status;
}

static void placed(struct arrived *a)
{
    struct profd_error e = {""};
    cr_assert_eq(place(false, a, &e), PROFD_OK, "%s", e.sentence);
}

static void arrived_done(struct arrived *a)
{
    message_done(&a->m);
    counts_done(&a->c);
}

static uint64_t ticks_at(const struct counts *c, uint64_t address)
{
    uint64_t sum = 0;
    for (uint32_t h = 0; h < c->histogram_count; h++) {
        const struct counts_histogram *k = &c->histograms[h];
        cr_assert_eq(k->high - k->low, k->bins, "a bin for each byte");
        for (uint32_t i = k->first; i < k->first + k->used; i++) {
            sum += k->low + c->bin_index[i] == address ? c->bin_ticks[i] : 0;
        }
    }
    return sum;
}

#define IDS(...) ((const uint32_t[]){__VA_ARGS__})
#define LINK(function) ((uint64_t)(uintptr_t)(function)-moved())

Test(place, by_name, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_MOVED), one = frame(o, "place_one", NULL, false, 0, 7),
             two = frame(o, "place_two", NULL, false, 0, 5);
    struct arrived a;
    import_profile_set_dimension(&profile, "instructions", 1);
    import_profile_add_pair(&profile, two, one, 2);
    import_profile_add_pair(&profile, one, frame(object("[kernel]", IMPORT_MOVED), "k", NULL, false, 0, 9), 4);
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, LINK(place_one)), 7);
    cr_assert_eq(ticks_at(&a.c, LINK(place_two)), 5);
    cr_assert_str_eq(a.c.histograms[0].dimension, "instructions");
    cr_assert_eq(a.c.arc_count, 2);
    cr_assert(a.c.from[0] == LINK(place_two) + 1 && a.c.to[0] == LINK(place_one) && a.c.calls[0] == 2,
              "a caller is behind its beginning, where the last call of the function before may return to");
    cr_assert(a.c.to_build[1] == COUNTS_NOWHERE && a.c.to[1] == 0 && a.c.calls[1] == 4);
    cr_assert_eq(a.m.as.upload.inexact, INEXACT_TICKS_OUTSIDE, "what is outside is nothing that a build lost");
    cr_assert(notes.ticks == 21 && notes.outside_ticks == 9 && notes.calls == 6 && notes.outside_calls == 4);
    cr_assert_str_eq(a.m.as.upload.builds[0].name, self);
    arrived_done(&a);
}

Test(place, by_where_the_loader_put_it, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_MOVED);
    uint32_t in_one = frame(o, "place_one", NULL, true, (uint64_t)(uintptr_t)place_one + 2, 7);
    uint32_t in_two = frame(o, "place_two", NULL, true, (uint64_t)(uintptr_t)place_two + 1, 1);
    frame(o, "twin_call", NULL, true, (uint64_t)(uintptr_t)twin_call, 1);
    frame(o, NULL, NULL, true, (uint64_t)(uintptr_t)twin_sum + 1, 3);
    frame(o, "no_such_function", NULL, true, (uint64_t)(uintptr_t)twin_address, 4);
    struct arrived a;
    import_profile_add_pair(&profile, in_two, in_one, 6);
    profile.sampled = true;
    profile.start = 5;
    profile.end = UINT64_MAX;
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, LINK(place_one) + 2), 7);
    cr_assert_eq(ticks_at(&a.c, LINK(twin_sum) + 1), 3,
                 "an address without a name has a place once the others tell how far");
    cr_assert_eq(ticks_at(&a.c, LINK(twin_address)), 4, "addresses are believed before names");
    cr_assert(a.c.from[0] == LINK(place_two) + 2 && a.c.to[0] == LINK(place_one), "a callee is its beginning");
    cr_assert_eq(a.m.as.upload.inexact, INEXACT_SAMPLED);
    cr_assert_eq(a.m.as.upload.start, 5);
    arrived_done(&a);
}

/* The address, depth and kind of a node of the only tree. */
static bool node_is(const struct counts *c, uint32_t i, unsigned depth, uint8_t kind, uint64_t address, uint64_t ticks)
{
    return i < c->node_count && c->node_depth[i] == depth && c->node_kind[i] == kind && c->node_address[i] == address &&
           c->node_ticks[i] == ticks;
}

Test(place, stacks, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_LINK_TIME), kernel = object("[kernel.kallsyms]", IMPORT_MOVED);
    uint32_t one = frame(o, "place_one", NULL, true, LINK(place_one) + 2, 12),
             two = frame(o, "place_two", NULL, true, LINK(place_two) + 6, 0),
             top = frame(o, "main", NULL, true, LINK(place_twin) + 5, 0),
             inside = frame(kernel, "do_syscall_64", NULL, true, 0xffff, 3);
    struct arrived a;
    import_profile_add_stack(&profile, IDS(one, two, top), 3, 7);
    import_profile_add_stack(&profile, IDS(one, two), 2, 4);
    import_profile_add_stack(&profile, IDS(one, inside, top), 3, 1);
    import_profile_add_stack(&profile, IDS(inside, two, top), 3, 3);
    import_profile_set_dimension(&profile, "cycles", 1);
    placed(&a);
    cr_assert(a.c.tree_count == 1 && a.c.trees[0].rate == 1 && strcmp(a.c.trees[0].dimension, "cycles") == 0);
    cr_assert(node_is(&a.c, 0, 0, COUNTS_NODE_RETURN, LINK(place_twin) + 6, 0), "a caller is at its return address");
    cr_assert(node_is(&a.c, 1, 1, COUNTS_NODE_RETURN, LINK(place_two) + 7, 0));
    cr_assert(node_is(&a.c, 2, 2, COUNTS_NODE_PC, LINK(place_one) + 2, 7));
    cr_assert(node_is(&a.c, 3, 1, COUNTS_NODE_RETURN, COUNTS_FRAME_OUTSIDE, 0));
    cr_assert(node_is(&a.c, 4, 2, COUNTS_NODE_PC, LINK(place_one) + 2, 1));
    cr_assert(node_is(&a.c, 5, 0, COUNTS_NODE_RETURN, COUNTS_FRAME_INCOMPLETE, 0), "it does not begin in main");
    cr_assert(node_is(&a.c, 6, 1, COUNTS_NODE_RETURN, LINK(place_two) + 7, 0));
    cr_assert(node_is(&a.c, 7, 2, COUNTS_NODE_PC, LINK(place_one) + 2, 4));
    cr_assert_eq(a.c.node_count, 8, "a stack that ends outside has no tick in a histogram");
    arrived_done(&a);
}

Test(place, a_caller_without_an_address_is_its_function, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_LINK_TIME), leaf = frame(o, "place_one", NULL, true, LINK(place_one) + 2, 2);
    struct arrived a;
    import_profile_add_stack(&profile, IDS(leaf, frame(o, "place_two", NULL, false, 0, 0)), 2, 2);
    profile.whole_stacks = true;
    placed(&a);
    cr_assert(node_is(&a.c, 0, 0, COUNTS_NODE_RETURN, LINK(place_two) + 1, 0));
    cr_assert(node_is(&a.c, 1, 1, COUNTS_NODE_PC, LINK(place_one) + 2, 2));
    arrived_done(&a);
}

Test(place, stacks_of_leaves_only_are_none, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_LINK_TIME);
    struct arrived a;
    import_profile_add_stack(&profile, IDS(frame(o, "place_one", NULL, true, LINK(place_one) + 2, 7)), 1, 7);
    profile.whole_stacks = true;
    placed(&a);
    cr_assert_eq(a.c.tree_count, 0);
    arrived_done(&a);
}

Test(place, namesakes, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_MOVED);
    uint64_t mine = LINK(place_twin), other = LINK(twin_address());
    struct arrived a;
    cr_assert_neq(mine, other);
    frame(o, "place_twin", "/somewhere/tests/unit/import/place.c", false, 0, 10);
    frame(o, "place_twin", "./tests/unit/import/place_twin.c", false, 0, 200);
    frame(o, "place_twin'2", "place_twin.c", false, 0, 3000);
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, mine), 10);
    cr_assert_eq(ticks_at(&a.c, other), 3200);
    cr_assert_eq(notes.ambiguous, 0);
    arrived_done(&a);
    frame(o, "place_twin", NULL, false, 0, 40000);
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, mine < other ? mine : other), 40000 + (mine < other ? 10 : 3200));
    cr_assert_eq(notes.ambiguous, 1);
    arrived_done(&a);
}

Test(place, names_as_tools_write_them, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_MOVED);
    char hex[32], own[64], based[4200];
    struct arrived a;
    snprintf(hex, sizeof hex, "0x%016llx", (unsigned long long)LINK(twin_call));
    snprintf(own, sizeof own, "place_twin [0x%llx]", (unsigned long long)LINK(twin_address()));
    snprintf(based, sizeof based, "place_one (%s)", basename(self));
    frame(o, "place_one'main'2", NULL, false, 0, 1);
    frame(o, "place_two@@VERS_1.0", NULL, false, 0, 20);
    frame(o, hex, NULL, false, 0, 300);
    frame(o, own, NULL, false, 0, 4000);
    frame(o, based, NULL, false, 0, 50000);
    frame(o, "place_twin (place_twin.c)", "/build/tests/unit/import/place_twin.c", false, 0, 1000000);
    frame(o, "(below main)", NULL, false, 0, 600000);
    frame(o, "printf@plt", NULL, false, 0, 7);
    frame(o, "0x1", NULL, false, 0, 8);
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, LINK(place_one)), 50001);
    cr_assert_eq(ticks_at(&a.c, LINK(place_two)), 20);
    cr_assert_eq(ticks_at(&a.c, LINK(twin_call)), 300);
    cr_assert_eq(ticks_at(&a.c, LINK(twin_address())), 1004000);
    cr_assert_eq(notes.nameless, 2);
    cr_assert_eq(notes.outside_ticks, 15);
    cr_assert_eq(a.m.as.upload.inexact, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST | INEXACT_TICKS_OUTSIDE,
                 "the build lost something");
    uint64_t ticks, calls;
    counts_totals(&a.c, &ticks, &calls);
    cr_assert_eq(ticks, 1654321, "_start has its ticks");
    arrived_done(&a);
}

Test(place, build_ids_without_a_file, .init = begin, .fini = end)
{
    uint32_t o = object("/nowhere/prog", IMPORT_IN_FILE), lib = object("/nowhere/lib.so", IMPORT_IN_FILE);
    uint32_t from = frame(o, NULL, NULL, true, 0x1136, 5), to = frame(lib, NULL, NULL, true, 0x26010, 6);
    struct arrived a;
    struct profd_error e = {""};
    profile.objects[o].build_id = "deadbeef01";
    profile.objects[o].low = 0x1000;
    profile.objects[o].high = 0x2000;
    import_profile_add_pair(&profile, from, to, 3);
    cr_assert_eq(place(true, &a, &e), PROFD_NO_INPUT, "strict");
    cr_assert(strstr(e.sentence, "build-id") && strstr(e.sentence, "/nowhere/lib.so"), "%s", e.sentence);
    cr_assert_eq(place(false, &a, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(strstr(said, "/nowhere/lib.so"), "%s", said);
    cr_assert_eq(a.m.as.upload.build_count, 1);
    cr_assert_str_eq(a.m.as.upload.builds[0].build_id, "deadbeef01");
    cr_assert(a.c.histograms[0].low == 0x1000 && a.c.histograms[0].high == 0x2000);
    cr_assert_eq(ticks_at(&a.c, 0x1136), 5);
    cr_assert(a.c.to_build[0] == COUNTS_NOWHERE);
    arrived_done(&a);
}

Test(place, offsets_in_the_file, .init = begin, .fini = end)
{
    uint32_t o = object(self, IMPORT_IN_FILE);
    struct import_binary *b;
    uint64_t at;
    cr_assert_eq(import_binary_open(self, &b, NULL), PROFD_OK);
    cr_assert(import_binary_load(b, 64, &at));
    cr_assert(!import_binary_load(b, UINT64_MAX, &at));
    uint64_t wanted = LINK(place_two), offset = 0;
    for (offset = 0; offset < (64u << 20) && !(import_binary_load(b, offset, &at) && at == wanted); offset++) {
    }
    import_binary_free(b);
    frame(o, NULL, NULL, true, offset, 11);
    struct arrived a;
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, wanted), 11);
    arrived_done(&a);
}

Test(place, what_did_not_run_is_refused, .init = begin, .fini = end)
{
    struct arrived a;
    struct profd_error e = {""};
    uint32_t o = object(self, IMPORT_MOVED);
    frame(o, "nobody_is_called_so", NULL, false, 0, 1);
    cr_assert_eq(place(false, &a, &e), PROFD_WRONG_BUILD);
    cr_assert(strstr(e.sentence, "only 0 of the 1"), "%s", e.sentence);
    frame(o, "place_one", NULL, false, 0, 1);
    profile.end = 1000000000; /* 1970 */
    cr_assert_eq(place(false, &a, &e), PROFD_WRONG_BUILD);
    cr_assert(strstr(e.sentence, "newer than the profile"), "%s", e.sentence);
    frame(o, "place_two", NULL, false, 0, 1);
    const char *given[] = {self};
    shelf.executables = given;
    shelf.executable_count = 1;
    cr_assert_eq(place(false, &a, &e), PROFD_OK, "who gives it answers for it: %s", e.sentence);
    arrived_done(&a);
    profile.objects[o].build_id = "00112233";
    cr_assert_eq(place(false, &a, &e), PROFD_WRONG_BUILD);
    cr_assert(strstr(e.sentence, "00112233"), "%s", e.sentence);
}

Test(place, all_outside, .init = begin, .fini = end)
{
    struct arrived a;
    struct profd_error e = {""};
    frame(object("[kernel.kallsyms]", IMPORT_MOVED), NULL, NULL, false, 0, 1);
    cr_assert_eq(place(false, &a, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "kernel"), "%s", e.sentence);
}

Test(place, the_program_is_found, .init = begin, .fini = end)
{
    uint32_t lib = object("/lib/libc.so.6", IMPORT_MOVED), plug = object("/opt/plugin", IMPORT_MOVED),
             prog = object("/opt/prog", IMPORT_MOVED);
    frame(lib, "qsort", NULL, false, 0, 1);
    frame(plug, "init", NULL, false, 0, 1);
    cr_assert_eq(import_place_program(&profile), plug, "the first that is no library");
    frame(prog, "main", NULL, false, 0, 1);
    cr_assert_eq(import_place_program(&profile), prog, "where main is");
    profile.program = "./plugin";
    cr_assert_eq(import_place_program(&profile), plug, "as the file says");
    profile.program_object = lib;
    cr_assert_eq(import_place_program(&profile), lib);
}

Test(place, a_root_stands_in_front, .init = begin, .fini = end)
{
    char root[4096], path[4096];
    snprintf(root, sizeof root, "%s", self);
    char *slash = strrchr(root, '/');
    snprintf(path, sizeof path, "%s", slash);
    *slash = '\0';
    shelf.root = root;
    frame(object(path, IMPORT_MOVED), "place_one", NULL, false, 0, 3);
    struct arrived a;
    placed(&a);
    cr_assert_eq(ticks_at(&a.c, LINK(place_one)), 3);
    arrived_done(&a);
}
