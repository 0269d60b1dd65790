#include "core/arena.h"

#include <pthread.h> /* one lock for the kept blocks */
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h> /* vsnprintf only: formatting into memory, no stream */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h> /* madvise only */
#include <sys/queue.h>

#define ARENA_CHUNK ((size_t)64 << 10)
#define ARENA_LINE ((size_t)64)
#define ARENA_HUGE ((size_t)2 << 20) /* a large page */

/* Bytes beyond dirty were never handed out since calloc gave them, so they are still zero (and perhaps not even
 * mapped). */
struct arena_block {
    struct arena_block *next;
    unsigned char *bytes;
    size_t size, used, dirty;
    bool idle; /* a spare one that was not used since the last trim */
};

/* Blocks of freed arenas, for the next ones: each page of fresh memory costs a fault. There are four lists for each
 * power of two, so any block of a later list is larger than all of an earlier one. */
#define SPARE_LISTS ((size_t)4 * 64)
static struct {
    pthread_mutex_t lock;
    struct arena_block *first[SPARE_LISTS];
    size_t room; /* bytes of further blocks that may be kept */
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct arena {
    struct arena *parent; /* NULL: none */
    LIST_HEAD(arena_list, arena) children;
    LIST_ENTRY(arena) link; /* of its parent's children */
    struct arena_block *first, *current;
    size_t limit, held, used;        /* held: with those of children that count for its limit */
    bool limited;                    /* the limit refused something since the last reset */
    bool apart;                      /* it has a limit of its own, and the parent does not count its blocks */
    bool refused;                    /* a jump was made; of the arena without a parent, as what follows */
    struct arena_boundary *boundary; /* the innermost one */
    struct arena_deferred *deferred; /* the latest one */
};

static _Thread_local uint64_t refuse;

static bool arena_is_refused(void)
{
    return refuse > 0 && --refuse == 0;
}

uint64_t arena_refuse(uint64_t n)
{
    const uint64_t left = refuse;
    refuse = n;
    return left;
}

/* The one without a parent: it has the boundaries. */
static struct arena *arena_top(struct arena *a)
{
    while (a->parent) {
        a = a->parent;
    }
    return a;
}

void arena_boundary_enter(struct arena_boundary *b, struct arena *a)
{
    struct arena *top = arena_top(a);
    b->arena = top;
    b->outer = top->boundary;
    b->deferred = top->deferred;
    top->boundary = b;
}

void arena_boundary_leave(struct arena_boundary *b)
{
    b->arena->boundary = b->outer;
}

void arena_defer(struct arena *a, struct arena_deferred *d, void (*run)(void *what), void *what)
{
    struct arena *top = arena_top(a);
    *d = (struct arena_deferred){.outer = top->deferred, .run = run, .what = what};
    top->deferred = d;
}

void arena_undefer(struct arena *a, struct arena_deferred *d)
{
    arena_top(a)->deferred = d->outer;
    d->run(d->what);
}

void *arena_fail(struct arena *a)
{
    struct arena *top = arena_top(a);
    if (!top->boundary) {
        return NULL;
    }
    while (top->deferred != top->boundary->deferred) {
        arena_undefer(top, top->deferred);
    }
    top->refused = true;
    longjmp(top->boundary->jump, 1);
}

void arena_continue(struct arena *a)
{
    if (arena_top(a)->refused) {
        arena_fail(a);
    }
}

struct arena *arena_new(size_t limit)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->limit = limit == 0 ? SIZE_MAX : limit;
    }
    return a;
}

struct arena *arena_new_child(struct arena *parent, size_t limit)
{
    struct arena *a = arena_is_refused() ? NULL : arena_new(limit);
    if (a == NULL) {
        return arena_fail(parent);
    }
    a->parent = parent;
    a->apart = limit > 0;
    LIST_INSERT_HEAD(&parent->children, a, link);
    return a;
}

/* The next arena above with a limit that sees the blocks of this one, too. */
static struct arena *arena_above(const struct arena *a)
{
    return a->apart ? NULL : a->parent;
}

/* Adds to what an arena and those above it hold. */
static void arena_hold(struct arena *a, size_t size)
{
    for (; a != NULL; a = arena_above(a)) {
        a->held += size;
    }
}

static void arena_leave_parent(struct arena *a)
{
    if (a->parent != NULL) {
        LIST_REMOVE(a, link);
        arena_hold(arena_above(a), (size_t)0 - a->held);
    }
}

/* The list that blocks of that size are in. */
static struct arena_block **spare_list(size_t size)
{
    size = size < 4 ? 4 : size;
    const size_t power = 63 - (size_t)__builtin_clzll(size);
    return &spare.first[4 * power + ((size >> (power - 2)) & 3)];
}

/* Keeps a block, or frees it. O(1). */
static void spare_put(struct arena_block *b)
{
    pthread_mutex_lock(&spare.lock);
    const bool kept = b->size <= spare.room;
    if (kept) {
        struct arena_block **list = spare_list(b->size);
        b->next = *list;
        *list = b;
        spare.room -= b->size;
    }
    pthread_mutex_unlock(&spare.lock);
    if (!kept) {
        free(b);
    }
}

/* A kept block of that size: the first of the first list that begins with one. O(lists between the sizes), so a list
 * is not searched. NULL: there is none. */
static struct arena_block *spare_take(size_t least, size_t most)
{
    struct arena_block *taken = NULL;
    pthread_mutex_lock(&spare.lock);
    for (struct arena_block **list = spare_list(least); taken == NULL && list <= spare_list(most); list++) {
        if (*list != NULL && (*list)->size >= least && (*list)->size <= most) {
            taken = *list;
            *list = taken->next;
            spare.room += taken->size;
        }
    }
    pthread_mutex_unlock(&spare.lock);
    return taken;
}

void arena_keep_blocks(size_t most)
{
    pthread_mutex_lock(&spare.lock);
    spare.room = most;
    pthread_mutex_unlock(&spare.lock);
}

void arena_trim(void)
{
    pthread_mutex_lock(&spare.lock);
    for (size_t i = 0; i < SPARE_LISTS; i++) {
        struct arena_block **at = &spare.first[i], *b;
        while ((b = *at) != NULL) {
            if (b->idle) {
                *at = b->next;
                spare.room += b->size;
                free(b);
            } else {
                b->idle = true;
                at = &b->next;
            }
        }
    }
    pthread_mutex_unlock(&spare.lock);
}

static void arena_free_alone(struct arena *a)
{
    struct arena_block *next;
    for (struct arena_block *b = a->first; b != NULL; b = next) {
        next = b->next;
        b->idle = false;
        spare_put(b);
    }
    free(a);
}

/* Frees those below an arena: one without children again and again, so nothing is recursive. */
static void arena_free_children(struct arena *a)
{
    while (!LIST_EMPTY(&a->children)) {
        struct arena *child = LIST_FIRST(&a->children);
        while (!LIST_EMPTY(&child->children)) {
            child = LIST_FIRST(&child->children);
        }
        arena_leave_parent(child);
        arena_free_alone(child);
    }
}

void arena_free(struct arena *a)
{
    if (a == NULL) {
        return;
    }
    arena_free_children(a);
    arena_leave_parent(a);
    arena_free_alone(a);
}

void arena_reset(struct arena *a)
{
    arena_free_children(a);
    for (struct arena_block *b = a->first; b != NULL; b = b->next) {
        b->used = 0;
    }
    a->current = a->first;
    a->used = 0;
    a->limited = a->refused = false;
}

bool arena_hit_limit(const struct arena *a)
{
    return a->limited;
}

static struct arena_block *block_new(size_t extra, size_t size)
{
    struct arena_block *b = calloc(1, extra + size);
    if (b == NULL) {
        return NULL;
    }
    if (size >= 2 * ARENA_HUGE) {
        /* Large blocks are filled soon: large pages, where the kernel has them, save most page faults. */
        uintptr_t first = ((uintptr_t)b + ARENA_HUGE - 1) & ~(uintptr_t)(ARENA_HUGE - 1);
        uintptr_t end = ((uintptr_t)b + (extra + size)) & ~(uintptr_t)(ARENA_HUGE - 1);
        if (first < end) {
            (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
        }
    }
    size_t past = ((uintptr_t)(b + 1)) & (ARENA_LINE - 1);
    b->bytes = (unsigned char *)(b + 1) + (past == 0 ? 0 : ARENA_LINE - past);
    b->size = size;
    return b;
}

/* A further block behind the current one. Each is at least a quarter of what is held, so that there are few. */
static struct arena_block *arena_grow(struct arena *a, size_t size)
{
    size_t extra = sizeof(struct arena_block) + ARENA_LINE;
    size_t left = SIZE_MAX; /* of the limits of the arena and of those above it */
    for (const struct arena *limits = a; limits != NULL; limits = arena_above(limits)) {
        left = limits->limit - limits->held < left ? limits->limit - limits->held : left;
    }
    if (size > left || left - size < extra) {
        for (struct arena *limited = a; limited != NULL; limited = limited->parent) {
            limited->limited = true;
        }
        return NULL;
    }
    size_t want = a->held / 4 > ARENA_CHUNK ? a->held / 4 : ARENA_CHUNK;
    want = want > left - extra ? left - extra : want;
    want = want < size ? size : want;
    struct arena_block *b = spare_take(want, want < (left - extra) / 2 ? 2 * want : left - extra);
    b = b != NULL ? b : block_new(extra, want);
    b = b == NULL && want > size ? block_new(extra, size) : b;
    if (b == NULL) {
        return NULL;
    }
    b->used = 0;
    arena_hold(a, extra + b->size);
    b->next = a->current == NULL ? a->first : a->current->next;
    if (a->current == NULL) {
        a->first = b;
    } else {
        a->current->next = b;
    }
    return b;
}

static void *arena_take_from(struct arena *a, struct arena_block *b, size_t start, size_t size)
{
    unsigned char *p = b->bytes + start;
    if (start < b->dirty) {
        memset(p, 0, (b->dirty - start < size) ? b->dirty - start : size);
    }
    b->used = start + size;
    if (b->used > b->dirty) {
        b->dirty = b->used;
    }
    a->used += size;
    return p;
}

void *arena_take(struct arena *a, size_t size)
{
    if (arena_is_refused()) {
        return arena_fail(a);
    }
    if (size == 0) {
        size = 1;
    }
    /* A block too full for this request is left behind for good; kept blocks after a reset are found again in order. */
    for (struct arena_block *b = a->current; b != NULL; b = b->next) {
        const size_t align = size >= ARENA_LINE ? ARENA_LINE : alignof(max_align_t);
        const size_t start = (b->used + align - 1) & ~(align - 1);
        if (start <= b->size && size <= b->size - start) {
            if (b->size - b->used >= a->current->size - a->current->used) {
                a->current = b;
            }
            return arena_take_from(a, b, start, size);
        }
    }
    struct arena_block *b = arena_grow(a, size);
    if (b == NULL) {
        return arena_fail(a);
    }
    if (a->current == NULL || b->size - size > a->current->size - a->current->used) {
        a->current = b;
    }
    return arena_take_from(a, b, 0, size);
}

void *arena_take_array(struct arena *a, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        return arena_fail(a);
    }
    return arena_take(a, total);
}

void *arena_extend(struct arena *a, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    uint32_t more = *capacity == 0 ? 16 : *capacity * 2;
    void *moved = more > *capacity ? arena_take_array(a, more, size) : arena_fail(a);
    if (moved == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(moved, array, count * size);
    }
    *capacity = more;
    return moved;
}

char *arena_copy(struct arena *a, const char *text, size_t n)
{
    if (n == SIZE_MAX) {
        return arena_fail(a);
    }
    char *copy = arena_take(a, n + 1);
    if (copy != NULL && n > 0) {
        memcpy(copy, text, n);
    }
    return copy;
}

char *arena_format(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        return arena_fail(a);
    }
    char *text = arena_take(a, (size_t)n + 1);
    if (text == NULL) {
        return NULL;
    }
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}
