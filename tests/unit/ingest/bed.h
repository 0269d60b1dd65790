/* Uploads as clients send them, and a store to send them to. Everything goes through the real encoders. */
#ifndef PROFD_TESTS_INGEST_BED_H
#define PROFD_TESTS_INGEST_BED_H

#include <criterion/criterion.h>
#include <stdint.h>

#include "core/object.h"
#include "ingest/ingest.h"
#include "proto/counts.h"
#include "proto/message.h"

#define NOON INT64_C(1760000000000000000)
#define MINUTE INT64_C(60000000000)
#define PROGRAM "aaaa0000000000000000000000000000000000aa"
#define LIBRARY "bbbb0000000000000000000000000000000000bb"

extern struct store *store;
extern struct profd_error sentence;

/* An upload that is accepted as it stands: a program with code at 0x1000 and a library; change what the test is about.
 */
struct bed {
    struct message message;
    struct message_upload *m;
    struct message_build builds[1100];
    struct message_label labels[100];
    uint8_t sender[UPLOAD_SENDER_SIZE];
    struct counts counts; /* one histogram of 4 bins, 2 with ticks; 3 arcs */
    uint32_t uid;
};
void bed_open(void);
void bed_close(void);
void bed_init(struct bed *b);
void bed_done(struct bed *b);
/* Encodes the counts anew and the message; the item borrows the returned block, which the caller frees. */
uint8_t *bed_item(struct bed *b, struct ingest_item *item);
/* Checks and stores them in one batch. */
void bed_put(struct ingest_item *const *items, size_t n);
/* Sends it alone. The item is to be ended with ingest_item_done. */
enum profd_status bed_send(struct bed *b, struct ingest_item *item);
/* Sends it and forgets the rest. */
enum profd_status bed_status(struct bed *b);
uint64_t stored_uploads(void);

/* An object with code at [0x1000, 0x2000) and [0x3000, 0x3100), __executable_start 0x1001 and etext 0x1fff. */
struct bed_object {
    struct object o;
    struct object_range ranges[3];
};
void bed_object(struct bed_object *b, const char *build_id);
/* Delivers it as the worker's answer. */
enum profd_status bed_deliver(const struct bed_object *b, uint32_t uid, bool trusted, const char *asked);

#endif
