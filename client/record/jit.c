#include "record/record_internal.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "proto/utf8.h"

#define MEMORY_MAX ((size_t)16 << 20)  /* for the functions of one process */
#define MEMORY_SHARED (2 * MEMORY_MAX) /* the n-th process may take an n-th of it */
#define FUNCTIONS_MAX 16384u           /* that samples found */
#define NAME_BYTES_MAX 4096u
#define READ_NS UINT64_C(200000000)
#define READ_NS_PER_FUNCTION 10000u /* longer after a long reading, so that it takes a small share of the time */
#define FUNCTION_SIZE 16u           /* in the build */
#define AROUND 8u                   /* functions before an address that are looked at */
#define READ_BYTES 65536
#define LIMIT_BYTES (UINT64_C(32) << 20) /* of the file; later lines are not read */
#define ID_BYTES 20u

struct jit_range {
    uint64_t start, end;
    const char *name;
    uint32_t line;
    uint32_t function; /* 1 + its number in the build; 0: no sample found it */
};

struct jit {
    struct arena *arena;
    struct jit_range *ranges; /* by start; of one start, the later line first */
    struct synthetic_symbol *functions;
    uint32_t range_count, range_capacity, function_count, function_capacity, finished, build;
    uint64_t read_at; /* of an event; 0: never */
    uint64_t offset;  /* of the first line that was not read */
};

static struct jit *jit_new(struct images *images)
{
    struct jit *j = calloc(1, sizeof *j);
    const size_t share = MEMORY_SHARED / (images_reserved(images) + 1);
    struct arena *a = arena_new(share < MEMORY_MAX ? share : MEMORY_MAX);
    const uint32_t build = j && a ? images_reserve_build(images, "generated code") : IMAGE_NONE;
    if (build == IMAGE_NONE) {
        arena_free(a);
        free(j);
        return NULL;
    }
    j->arena = a;
    j->build = build;
    return j;
}

void jit_free(struct jit *j)
{
    if (j) {
        arena_free(j->arena);
        free(j);
    }
}

/* Takes a line "start size name", without its end. An invalid line is skipped. Returns false if out of memory. */
static bool line_take(struct jit *j, char *line)
{
    const char *at = line;
    uint64_t start, size;
    if (!scan_number(&at, 16, &start) || !scan_number(&at, 16, &size) || size == 0 || start + size < start ||
        at[0] != ' ' || at[1] == '\0') {
        return true;
    }
    const size_t n = strlen(++at);
    char *name = arena_copy(j->arena, at, n < NAME_BYTES_MAX ? n : NAME_BYTES_MAX);
    if (!name || !ARENA_EXTEND(j->arena, j->ranges, j->range_count, j->range_capacity)) {
        return false;
    }
    utf8_scrub(name);
    j->ranges[j->range_count] =
        (struct jit_range){.start = start, .end = start + size, .name = name, .line = j->range_count};
    j->range_count++;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct jit_range *x = a, *y = b;
    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    return (x->line < y->line) - (x->line > y->line);
}

/* Reads the lines that were written to the file since the previous reading, unless that was a short time ago. */
static void refresh(struct jit *j, const struct jit_owner *owner, uint64_t time)
{
    char path[64], bytes[READ_BYTES + 1];
    uint32_t inner;
    const uint32_t before = j->range_count;
    const uint64_t pause = READ_NS + (uint64_t)j->range_count * READ_NS_PER_FUNCTION;
    if ((j->read_at != 0 && time < j->read_at + pause) || !origin_read_inner_pid(owner->pid, &inner)) {
        return;
    }
    j->read_at = time;
    (void)snprintf(path, sizeof path, "/tmp/perf-%" PRIu32 ".map", inner);
    const int fd = image_open_of_user(owner->pid, path, owner->uid);
    if (fd < 0) {
        return;
    }
    bool good = true;
    for (ssize_t n; good && j->offset < LIMIT_BYTES && (n = pread(fd, bytes, READ_BYTES, (off_t)j->offset)) > 0;) {
        char *line = bytes, *end;
        bytes[n] = '\0';
        while (good && (end = memchr(line, '\n', (size_t)(bytes + n - line))) != NULL) {
            *end = '\0';
            good = line_take(j, line);
            line = end + 1;
        }
        if (line == bytes && n < READ_BYTES) {
            break; /* a line that is being written */
        }
        j->offset += (uint64_t)(line == bytes ? n : line - bytes); /* the rest of a line that is too long is no line */
    }
    if (!good) {
        j->offset = LIMIT_BYTES; /* no memory: nothing more is read */
    }
    if (j->range_count != before) {
        qsort(j->ranges, j->range_count, sizeof *j->ranges, compare_ranges);
    }
    close(fd);
}

/* Returns the function at an address, or NULL. */
static struct jit_range *range_find(const struct jit *j, uint64_t address)
{
    uint32_t first; /* that begins above the address */
    SORT_SEARCH(first, 0, j->range_count, j->ranges[first].start <= address);
    struct jit_range *found = NULL;
    for (uint32_t i = 0; i < AROUND && i < first; i++) {
        struct jit_range *r = &j->ranges[first - 1 - i];
        if (found && r->start != found->start) {
            break; /* the latest line of this start was the last one before */
        }
        found = address < r->end ? r : found;
    }
    return found;
}

/* Returns the number of a function in the build, which has one function for each name; 0 if there are too many. */
static uint32_t function_take(struct jit *j, const char *name)
{
    for (uint32_t i = 0; i < j->function_count; i++) {
        if (strcmp(j->functions[i].name, name) == 0) {
            return i + 1;
        }
    }
    if (j->function_count == FUNCTIONS_MAX ||
        !ARENA_EXTEND(j->arena, j->functions, j->function_count, j->function_capacity)) {
        return 0;
    }
    j->functions[j->function_count] = (struct synthetic_symbol){
        .address = (uint64_t)j->function_count * FUNCTION_SIZE, .size = FUNCTION_SIZE, .name = name};
    return ++j->function_count;
}

bool jit_find(struct jit **j, struct images *images, const struct jit_owner *owner, uint64_t time, uint64_t address,
              struct counts_frame *out)
{
    if (!*j) {
        *j = jit_new(images);
    }
    struct jit_range *r = *j ? range_find(*j, address) : NULL;
    if (*j && !r) {
        refresh(*j, owner, time);
        r = range_find(*j, address);
    }
    if (r && r->function == 0) {
        r->function = function_take(*j, r->name);
    }
    if (!r || r->function == 0) {
        return false;
    }
    out->build = (*j)->build;
    out->address = (uint64_t)(r->function - 1) * FUNCTION_SIZE + FUNCTION_SIZE / 2;
    return true;
}

enum profd_status jit_finish(struct jit *j, struct images *images, const struct jit_owner *owner, struct profd_error *e)
{
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    struct buildid id;
    int fd;
    if (j->finished == j->function_count) {
        return PROFD_OK;
    }
    sha256_init(&context);
    sha256_update(&context, sizeof owner->key, owner->key);
    for (uint32_t i = 0; i < j->function_count; i++) {
        sha256_update(&context, strlen(j->functions[i].name) + 1, (const uint8_t *)j->functions[i].name);
    }
    sha256_digest(&context, sizeof hash, hash);
    const uint64_t size = (uint64_t)j->function_count * FUNCTION_SIZE;
    TRY(buildid_from_note(hash, ID_BYTES, &id, e));
    TRY(synthetic_make("generated code", &id, size, j->functions, j->function_count, &fd, e));
    images_set_build(images, j->build, &id, fd, size, owner->uid);
    j->finished = j->function_count;
    return PROFD_OK;
}
