/* Memory of one job: everything it computes lives here and goes at once.
 *
 * An arena that has a boundary never returns NULL: what it cannot allocate ends the job, by a jump (longjmp) to the
 * innermost boundary. So code that runs in jobs only, in core, query and render, does not test what it takes. An arena
 * without a boundary returns NULL, and its users test that.
 *
 * No jump may cross the code of others. A function that the store, SQLite or a lock's owner calls back sets a boundary
 * of its own before it takes memory, and the caller of the store goes on with arena_continue. What must be freed or
 * given back although a jump skips the rest of a function is registered with arena_defer. */
#ifndef PROFD_CORE_ARENA_H
#define PROFD_CORE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sort.h"

struct arena;

/* A new arena that will never hold more than limit bytes (0: no limit). NULL when out of memory. */
struct arena *arena_new(size_t limit);
/* An arena for what does not live as long as the job. Its blocks go with the parent at the latest, and its boundaries
 * are the parent's. limit 0: its blocks count for the limit of the parent; else it has a limit of its own, and the
 * parent's does not see them. */
struct arena *arena_new_child(struct arena *parent, size_t limit);
/* Frees all blocks and children. Accepts NULL. */
void arena_free(struct arena *a);
/* Keeps the blocks for the next job and discards their contents; frees children. */
void arena_reset(struct arena *a);

/* From now on freed arenas leave blocks of at most so many bytes to the arenas that need some next, of all threads. */
void arena_keep_blocks(size_t most);
/* Frees kept blocks that no arena has used since the last call. */
void arena_trim(void);

/* size bytes, zeroed, aligned for any type (64 bytes for sizes from 64). NULL when memory or the limit is exhausted. */
void *arena_take(struct arena *a, size_t size);
/* count × size bytes with the multiplication checked. */
void *arena_take_array(struct arena *a, size_t count, size_t size);
/* Ensures capacity for one more element after count: returns the array itself, or a copy twice as large. NULL if memory
 * is exhausted; the array and *capacity are then unchanged. Amortized O(size). */
void *arena_extend(struct arena *a, void *array, uint32_t count, uint32_t *capacity, size_t size);
/* Does this for a list, its number of rows, and its capacity, a uint32_t. False if memory is exhausted. */
#define ARENA_EXTEND(a, list, count, capacity)                                                                         \
    LIST_MOVE(list, arena_extend((a), (list), (count), &(capacity), sizeof *(list)))
/* A NUL-terminated copy of n bytes. */
char *arena_copy(struct arena *a, const char *text, size_t n);
/* printf into the arena. NULL when exhausted. */
char *arena_format(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes handed out since the last reset. */
size_t arena_used(const struct arena *a);
/* True if the limit, not the machine, refused something since the last reset, to a child too: asking again is no use.
 */
bool arena_hit_limit(const struct arena *a);

/* As if memory were refused: jumps to the boundary, or returns NULL if there is none. */
void *arena_fail(struct arena *a);
/* Goes on to the next boundary if memory was refused behind an inner one. */
void arena_continue(struct arena *a);

/* What a jump runs on its way to the boundary, the latest first. It lives on the stack of the function that defers. */
struct arena_deferred {
    struct arena_deferred *outer;
    void (*run)(void *what);
    void *what;
};

void arena_defer(struct arena *a, struct arena_deferred *d, void (*run)(void *what), void *what);
/* Runs the latest one, which is d: every path of the function that deferred it calls this. */
void arena_undefer(struct arena *a, struct arena_deferred *d);

struct arena_boundary {
    jmp_buf jump;
    struct arena *arena;
    struct arena_boundary *outer;
    struct arena_deferred *deferred; /* those before it are not of this boundary */
};

void arena_boundary_enter(struct arena_boundary *b, struct arena *a);
void arena_boundary_leave(struct arena_boundary *b);

/* From here to the end of the block, what the arena or a child of it cannot allocate makes the function return result.
 * It stands before all that changes a variable of the function: a jump leaves the others undefined. */
#define ARENA_BOUNDARY(a, result)                                                                                      \
    __attribute__((cleanup(arena_boundary_leave))) struct arena_boundary arena_boundary;                               \
    arena_boundary_enter(&arena_boundary, (a));                                                                        \
    if (setjmp(arena_boundary.jump)) {                                                                                 \
        return result;                                                                                                 \
    }

/* For tests: the n-th allocation of this thread from now on is refused; 0: none is. Returns how many were left until
 * the refusal that was asked for before, 0 if it was made. */
uint64_t arena_refuse(uint64_t n);

#define ARENA_NEW(a, type) ((type *)arena_take((a), sizeof(type)))
#define ARENA_ARRAY(a, count, type) ((type *)arena_take_array((a), (count), sizeof(type)))

#endif
