/* The connections of the gate to the daemon: requests of all hosts go over a few Unix connections, each with a tag of
 * its own. */
#ifndef PROFD_GATE_UPLINKS_H
#define PROFD_GATE_UPLINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/status.h"

struct event_base;
struct uplinks;

/* Of which request an answer is. */
struct uplinks_origin {
    uint64_t conn;
    uint32_t tag;
};

struct uplinks_config {
    struct event_base *base;
    const char
        *path; /* of the daemon's Unix socket; it must be of root, of the own user, or of user if that is given */
    bool has_user;
    uint32_t user;
    /* An answer: payload is borrowed until it returns. f->tag is the origin's. */
    void (*answered)(void *context, const struct uplinks_origin *from, const struct frame *f, const uint8_t *payload);
    /* The daemon has gone: whether the request was carried out is unknown. */
    void (*lost)(void *context, const struct uplinks_origin *from);
    /* A frame of this size was written, or dropped: its memory is free. */
    void (*freed)(void *context, size_t bytes);
    /* Perhaps uplinks_send can send again. */
    void (*writable)(void *context);
    void *context;
};

enum profd_status uplinks_new(const struct uplinks_config *config, struct uplinks **out, struct profd_error *e);

enum uplinks_result {
    UPLINKS_SENT, /* bytes were taken over */
    UPLINKS_FULL, /* try again after writable */
    UPLINKS_DOWN  /* the daemon does not answer */
};
/* Sends a whole frame: bytes is a block of malloc, in which the tag is overwritten. */
enum uplinks_result uplinks_send(struct uplinks *u, uint8_t *bytes, size_t n, const struct uplinks_origin *from);

#endif
