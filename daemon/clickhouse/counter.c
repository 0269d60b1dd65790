/* Counters of changes, which several writers increment without asking each other: each writer has a row with its own
 * count, and the value is the sum of the rows. */
#include <string.h>
#include <sys/random.h>

#include "clickhouse/engine_internal.h"

#define COUNTER_BYTES (128u << 20)

enum profd_status engine_bound_counters(struct clickhouse_store *s, struct profd_error *e)
{
    if (s->changes.bytes + s->versions.bytes < COUNTER_BYTES) {
        return PROFD_OK;
    }
    hashmap_clear(&s->changes);
    hashmap_clear(&s->versions);
    return getrandom(&s->writer, sizeof s->writer, 0) == (ssize_t)sizeof s->writer
               ? PROFD_OK
               : profd_error_set(e, PROFD_INTERNAL, "no random numbers");
}

/* Increments the handle's count of a key, and gives it. 0: out of memory. */
static uint64_t increment(struct hashmap *t, const void *key, size_t size)
{
    uint64_t *count = hashmap_find(t, key, size);
    const uint64_t zero = 0;
    if (!count) {
        count = hashmap_put(t, key, size, &zero, sizeof zero);
    }
    return count ? ++*count : 0;
}

struct touch_key {
    uint32_t uid;
    char build[BUILDID_TEXT_SIZE];
};

static bool put_row(struct clickhouse_store *s, const char *build, uint32_t uid, struct buffer *rows)
{
    struct touch_key key;
    memset(&key, 0, sizeof key);
    key.uid = uid;
    memcpy(key.build, build, strnlen(build, sizeof key.build - 1));
    const uint64_t count = increment(&s->versions, &key, sizeof key);
    rows_put_text(rows, build);
    rows_put_u32(rows, uid);
    rows_put_u64(rows, s->writer);
    rows_put_u64(rows, count);
    return count > 0;
}

enum profd_status engine_touch(struct clickhouse_store *s, const struct engine_touch *list, size_t n,
                               struct profd_error *e)
{
    struct buffer rows;
    struct hashmap done;
    bool fine = true;
    buffer_init(&rows, 64 << 20);
    hashmap_init(&done, 0);
    for (size_t i = 0; i < n && fine; i++) {
        for (int all = 0; all < 2 && fine; all++) {
            const char *build = all ? "" : list[i].build;
            struct touch_key key;
            memset(&key, 0, sizeof key);
            key.uid = list[i].uid;
            memcpy(key.build, build, strnlen(build, sizeof key.build - 1));
            if (!hashmap_find(&done, &key, sizeof key)) {
                fine = hashmap_put(&done, &key, sizeof key, "", 1) && put_row(s, build, list[i].uid, &rows);
            }
        }
    }
    const enum profd_status status =
        fine ? engine_insert(s, "version (build, uid, writer, count)", &rows, e) : profd_no_memory(e);
    hashmap_clear(&done);
    buffer_done(&rows);
    return status;
}
