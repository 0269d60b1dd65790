/* The inside of struct profd_delivery. */
#ifndef PROFD_CLIENT_DELIVERY_H
#define PROFD_CLIENT_DELIVERY_H

#include "client/conn.h"
#include "client/spool.h"

/* An upload on its way: kept until it is acknowledged, refused, or written to the spool. */
struct delivery_item {
    struct delivery_item *next;
    struct profd_id id;
    uint32_t tag; /* 0: waits to be sent again at `due` */
    int64_t due;  /* conn_clock */
    unsigned attempts;
    bool earlier; /* it is in the spool under `name` already */
    char *name;
    uint8_t *frame;
    size_t frame_size;
    size_t object_count; /* what it may be asked for, for the spool */
    struct spool_object *objects;
    struct profd_error busy; /* why it was sent back */
};

struct profd_delivery {
    struct profd_options options;
    char *server, *token_file, *program; /* copies that options points to */
    profd_outcome_sink sink;
    void *context;
    struct profd_id id; /* the latest */
    struct profd_conn *conn;
    struct profd_error offline; /* why conn is NULL */
    struct spool *spool;        /* NULL until needed */
    struct delivery_item *items;
    size_t item_count, item_bytes;
    const struct profd_executable **executables;
    size_t executable_count;
};

/* Sends an item, or lets it wait for more room first; without a connection it goes to the spool. Takes the item over.
 */
enum profd_status delivery_start(struct profd_delivery *d, struct delivery_item *item, struct profd_error *e);
/* Handles answers until fewer than `items` items and at most `bytes` bytes are on their way. */
void delivery_pump(struct profd_delivery *d, size_t items, size_t bytes);
/* Ends the connection for that reason: what was not acknowledged goes to the spool. */
void delivery_disconnect(struct profd_delivery *d, const struct profd_error *why);
/* The spool, made if need be. */
enum profd_status delivery_spool(struct profd_delivery *d, bool create, struct profd_error *e);
void delivery_item_free(struct delivery_item *item);

#endif
