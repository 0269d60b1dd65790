/* Encodes uploads as clients do, and opens the store that they go into, for the tests of ingest/. */
#include "tests/unit/ingest/bed.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/scratch_store.h"

struct store *store;
struct profd_error sentence;

void bed_open(void)
{
    cr_assert_eq(scratch_store_open(&store, &sentence), PROFD_OK);
}

void bed_close(void)
{
    store_close(store);
}

void bed_init(struct bed *b)
{
    memset(b, 0, sizeof *b);
    b->m = &b->message.as.upload;
    b->message.type = FRAME_UPLOAD;
    memcpy(b->sender, "sender-id-01", sizeof b->sender);
    b->builds[0] = (struct message_build){PROGRAM, "/usr/bin/program"};
    b->builds[1] = (struct message_build){LIBRARY, "lib.so"};
    b->uid = 1000;
    *b->m = (struct message_upload){.sender = {b->sender, sizeof b->sender},
                                    .sequence = 1,
                                    .start = (uint64_t)(NOON - MINUTE),
                                    .end = (uint64_t)NOON,
                                    .build_count = 2,
                                    .builds = b->builds,
                                    .labels = b->labels,
                                    .processes_started = 1,
                                    .host = "0123456789abcdef0123456789abcdef"};
    struct counts *c = &b->counts;
    cr_assert_eq(counts_init(c, 1, 2, 3, &sentence), PROFD_OK);
    c->histograms[0] = (struct counts_histogram){
        .bins = 4, .low = 0x1000, .high = 0x2000, .rate = 100, .dimension = "seconds", .abbreviation = 's', .used = 2};
    c->bin_index[0] = 1;
    c->bin_index[1] = 3;
    c->bin_ticks[0] = 5;
    c->bin_ticks[1] = 2;
    for (uint32_t i = 0; i < 3; i++) {
        c->from[i] = 0x1100 + i;
        c->to[i] = 0x1200;
        c->calls[i] = 10 + i;
    }
    c->to_build[2] = 1;
    c->from_build[1] = COUNTS_NOWHERE;
}

void bed_done(struct bed *b)
{
    counts_done(&b->counts);
}

uint8_t *bed_item(struct bed *b, struct ingest_item *item)
{
    uint8_t *counts = NULL, *frame;
    size_t n, counts_size;
    if (!b->m->counts.data) {
        cr_assert_eq(counts_encode(&b->counts, &counts, &counts_size, &sentence), PROFD_OK, "%s", sentence.sentence);
        b->m->counts = (struct message_bytes){counts, counts_size};
    }
    cr_assert_eq(message_encode(&b->message, 0, 1, &frame, &n, &sentence), PROFD_OK, "%s", sentence.sentence);
    if (counts) {
        b->m->counts.data = NULL;
    }
    free(counts);
    memmove(frame, frame + FRAME_HEADER_SIZE, n - FRAME_HEADER_SIZE);
    *item = (struct ingest_item){.uid = b->uid, .received = NOON, .payload = frame, .size = n - FRAME_HEADER_SIZE};
    return frame;
}

/* With a cache that knows nothing, as a daemon that has just been started. */
void bed_put(struct ingest_item *const *items, size_t n)
{
    struct build_cache *cache;
    cr_assert_eq(build_cache_new(store, &cache, &sentence), PROFD_OK);
    for (size_t i = 0; i < n; i++) {
        ingest_check(cache, 0, items[i]);
    }
    ingest_batch(store, 0, items, n);
    build_cache_free(cache);
}

enum profd_status bed_send(struct bed *b, struct ingest_item *item)
{
    uint8_t *payload = bed_item(b, item);
    bed_put(&item, 1);
    item->payload = NULL;
    free(payload);
    return item->status;
}

enum profd_status bed_status(struct bed *b)
{
    struct ingest_item item;
    enum profd_status status = bed_send(b, &item);
    sentence = item.error;
    ingest_item_done(&item);
    return status;
}

uint64_t stored_uploads(void)
{
    struct store_totals t;
    cr_assert_eq(store_get_totals(store, &t, &sentence), PROFD_OK);
    return t.uploads;
}

void bed_object(struct bed_object *b, const char *build_id)
{
    *b = (struct bed_object){.ranges = {{0x1000, 0x1800, OBJECT_RANGE_TEXT},
                                        {0x3000, 0x3100, OBJECT_RANGE_EXECUTABLE},
                                        {0x1700, 0x2000, OBJECT_RANGE_SEGMENT}}};
    b->o = (struct object){.machine = 62,
                           .bits = 64,
                           .has_names = true,
                           .has_executable_start = true,
                           .has_etext = true,
                           .executable_start = 0x1001,
                           .etext = 0x1fff,
                           .range_count = 3,
                           .ranges = b->ranges,
                           .name_bytes = 1,
                           .names = "",
                           .note = ""};
    strcpy(b->o.id.text, build_id);
    memset(b->o.variant, 'a', 64);
}

enum profd_status bed_deliver(const struct bed_object *b, uint32_t uid, bool trusted, const char *asked)
{
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(object_encode(&b->o, &bytes, &n, &sentence), PROFD_OK, "%s", sentence.sentence);
    struct ingest_object object = {.uid = uid,
                                   .trusted = trusted,
                                   .received = NOON,
                                   .build_id = asked,
                                   .name = "file",
                                   .answer = bytes,
                                   .answer_size = n};
    enum profd_status status = ingest_object_store(store, &object, &sentence);
    free(bytes);
    return status;
}
