/* Memory of one job: everything it computes lives here and goes at once. */
#ifndef PROFD_CORE_ARENA_H
#define PROFD_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* A new arena that will never hold more than limit bytes (0: no limit). NULL when out of memory. */
struct arena *arena_new(size_t limit);
/* An arena for what does not live as long as the job: its blocks count for the limit of its parent, and go with the
 * parent at the latest. NULL when out of memory. */
struct arena *arena_new_child(struct arena *parent);
/* Frees all blocks and children. Accepts NULL. */
void arena_free(struct arena *a);
/* Keeps the blocks for the next job and discards their contents; frees children. */
void arena_reset(struct arena *a);

/* size bytes, zeroed, aligned for any type (64 bytes for sizes from 64). NULL when memory or the limit is exhausted. */
void *arena_take(struct arena *a, size_t size);
/* count × size bytes with the multiplication checked. */
void *arena_take_array(struct arena *a, size_t count, size_t size);
/* Ensures capacity for one more element after count: returns the array itself, or a copy twice as large. NULL if memory
 * is exhausted; the array and *capacity are then unchanged. Amortized O(size). */
void *arena_extend(struct arena *a, void *array, uint32_t count, uint32_t *capacity, size_t size);
/* A NUL-terminated copy of n bytes. */
char *arena_copy(struct arena *a, const char *text, size_t n);
/* printf into the arena. NULL when exhausted. */
char *arena_format(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes handed out since the last reset. */
size_t arena_used(const struct arena *a);
/* True if the limit, not the machine, refused something since the last reset, to a child too: asking again is no use.
 */
bool arena_hit_limit(const struct arena *a);

#define ARENA_NEW(a, type) ((type *)arena_take((a), sizeof(type)))
#define ARENA_ARRAY(a, count, type) ((type *)arena_take_array((a), (count), sizeof(type)))

#endif
