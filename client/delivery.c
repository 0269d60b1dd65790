/* Deliveries: opening, the spool's uploads, new uploads, the end. */
#include "client/delivery.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/upload.h"
#include "proto/frame.h"
#include "proto/limits.h"

enum profd_status delivery_spool(struct profd_delivery *d, bool create, struct profd_error *e)
{
    if (d->spool) {
        return PROFD_OK;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    enum profd_status status =
        spool_open(create, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, &d->spool, e);
    if (status == PROFD_OK && spool_expired(d->spool) > 0) {
        struct profd_error why;
        status = profd_error_set(&why, PROFD_LIMIT, "%zu uploads waited longer than %d days and were deleted",
                                 spool_expired(d->spool), LIMIT_SPOOL_DAYS);
        const struct profd_outcome o = {
            .name = spool_path(d->spool), .status = status, .earlier = true, .sentence = why.sentence};
        d->sink(d->context, &o);
        status = PROFD_OK;
    }
    return status;
}

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an upload on its way");
}

static struct delivery_item *item_new(const char *name, const struct spool_object *objects, size_t object_count)
{
    struct delivery_item *item = calloc(1, sizeof *item);
    if (!item) {
        return NULL;
    }
    item->name = strdup(name);
    item->objects = calloc(object_count ? object_count : 1, sizeof *item->objects);
    for (size_t i = 0; item->objects && i < object_count; i++) {
        struct spool_object o = {strdup(objects[i].build_id), strdup(objects[i].path)};
        item->objects[item->object_count++] = o;
        if (!o.build_id || !o.path) {
            delivery_item_free(item);
            return NULL;
        }
    }
    if (!item->name || !item->objects) {
        delivery_item_free(item);
        return NULL;
    }
    return item;
}

void delivery_item_free(struct delivery_item *item)
{
    if (!item) {
        return;
    }
    for (size_t i = 0; i < item->object_count; i++) {
        free((void *)(uintptr_t)item->objects[i].build_id);
        free((void *)(uintptr_t)item->objects[i].path);
    }
    free(item->objects);
    free(item->name);
    free(item->frame);
    free(item);
}

/* One file of the spool onto its way. What cannot be read stays, what is no upload goes; both are told. */
static void earlier_start(struct profd_delivery *d, const char *name)
{
    struct spool_upload u;
    struct profd_error why = {""};
    enum profd_status status = spool_read(d->spool, name, &u, &why);
    struct delivery_item *item = NULL;
    if (status == PROFD_NOT_FOUND) {
        return;
    }
    if (status == PROFD_OK) {
        item = item_new(name, u.objects, u.object_count);
        uint8_t *frame = item ? malloc(u.frame_size) : NULL;
        if (frame) {
            memcpy(frame, u.frame, u.frame_size);
            item->frame = frame;
            item->frame_size = u.frame_size;
            item->earlier = true;
        } else {
            delivery_item_free(item);
            item = NULL;
            status = no_memory(&why);
        }
        for (size_t i = 0; i < u.object_count && status == PROFD_OK && d->conn; i++) {
            status = conn_offer_path(d->conn, u.objects[i].build_id, u.objects[i].path, &why);
        }
        spool_upload_done(&u);
    }
    if (status == PROFD_OK) {
        status = delivery_start(d, item, &why);
    } else {
        delivery_item_free(item);
    }
    if (status != PROFD_OK) {
        if (status == PROFD_MALFORMED) {
            spool_remove(d->spool, name);
        }
        const struct profd_outcome o = {.name = name, .status = status, .earlier = true, .sentence = why.sentence};
        d->sink(d->context, &o);
    }
}

/* Everything in the spool, oldest first, before anything new. Another process that delivers it has the lock. */
static void earlier_deliver(struct profd_delivery *d)
{
    struct spool_entry *entries = NULL;
    size_t n = 0;
    if (delivery_spool(d, false, NULL) != PROFD_OK || !spool_lock(d->spool) ||
        spool_list(d->spool, &entries, &n, NULL) != PROFD_OK) {
        return;
    }
    for (size_t i = 0; i < n && d->conn; i++) {
        earlier_start(d, entries[i].name);
    }
    free(entries);
}

static bool options_copy(struct profd_delivery *d, const struct profd_options *o)
{
    static const struct profd_options defaults = {.server = NULL};
    d->options = o ? *o : defaults;
    d->server = d->options.server ? strdup(d->options.server) : NULL;
    d->token_file = d->options.token_file ? strdup(d->options.token_file) : NULL;
    d->program = d->options.name ? strdup(d->options.name) : NULL;
    bool good =
        !d->options.server == !d->server && !d->options.token_file == !d->token_file && !d->options.name == !d->program;
    d->options.server = d->server;
    d->options.token_file = d->token_file;
    d->options.name = d->program;
    return good;
}

enum profd_status profd_delivery_open(const struct profd_options *o, profd_outcome_sink sink, void *context,
                                      struct profd_delivery **out, struct profd_error *e)
{
    struct address address;
    enum profd_status status = conn_address(o, &address, e);
    if (status == PROFD_OK && address.http) {
        status = profd_error_set(e, PROFD_USAGE, "%s answers queries only; uploads go to a Unix socket", address.text);
    }
    struct profd_delivery *d = status == PROFD_OK ? calloc(1, sizeof *d) : NULL;
    if (status == PROFD_OK && (!d || !options_copy(d, o))) {
        status = no_memory(e);
    }
    if (status == PROFD_OK) {
        d->sink = sink;
        d->context = context;
        status = profd_id_make(&d->id, e);
    }
    if (status != PROFD_OK) {
        profd_delivery_close(d);
        return status;
    }
    if (profd_conn_open(&d->options, &d->conn, &d->offline) == PROFD_OK) {
        earlier_deliver(d);
    }
    *out = d;
    return PROFD_OK;
}

enum profd_status profd_delivery_offer(struct profd_delivery *d, const struct profd_executable *x,
                                       struct profd_error *e)
{
    const struct profd_executable **grown = realloc(d->executables, (d->executable_count + 1) * sizeof *grown);
    if (!grown) {
        return no_memory(e);
    }
    d->executables = grown;
    d->executables[d->executable_count++] = x;
    return d->conn ? profd_conn_offer(d->conn, x, e) : PROFD_OK;
}

/* The upload's builds whose executables are on offer: a later process must know where they are. */
static size_t objects_of(const struct profd_delivery *d, const struct profd_upload *u, struct spool_object *objects,
                         size_t room)
{
    size_t n = 0;
    for (uint32_t i = 0; i < upload_build_count(u); i++) {
        for (size_t k = 0; k < d->executable_count && n < room; k++) {
            if (strcmp(profd_executable_build_id(d->executables[k]), upload_build_id(u, i)) == 0) {
                objects[n++] = (struct spool_object){upload_build_id(u, i), profd_executable_path(d->executables[k])};
                break;
            }
        }
    }
    return n;
}

enum profd_status profd_delivery_upload(struct profd_delivery *d, const struct profd_upload *u, const char *name,
                                        struct profd_error *e)
{
    struct spool_object objects[64];
    size_t n = objects_of(d, u, objects, sizeof objects / sizeof objects[0]);
    struct delivery_item *item = item_new(name, objects, n);
    if (!item) {
        return no_memory(e);
    }
    item->id = d->id;
    item->id.sequence++;
    enum profd_status status = upload_encode(u, &item->id, &item->frame, &item->frame_size, e);
    if (status == PROFD_OK && item->frame_size - FRAME_HEADER_SIZE > LIMIT_FRAME_PAYLOAD) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "an upload of %zu bytes; at most %u are taken", item->frame_size,
                                 LIMIT_FRAME_PAYLOAD);
    }
    if (status != PROFD_OK) {
        delivery_item_free(item);
        return status;
    }
    d->id = item->id;
    return delivery_start(d, item, e);
}

enum profd_status profd_delivery_finish(struct profd_delivery *d, struct profd_error *e)
{
    (void)e; /* what fails here has an outcome of its own */
    delivery_pump(d, 1, 0);
    /* Executables that were asked for: their ACK comes when the names are stored, so that a report right after has
     * them. */
    while (d->conn && (profd_client_in_flight(d->conn->client) > 0 || client_queued(d->conn->client) > 0)) {
        struct profd_event event;
        if (profd_client_in_flight(d->conn->client) == 0) {
            (void)conn_flush(d->conn, NULL);
            break;
        }
        if (conn_wait(d->conn, &event, NULL) != PROFD_OK) {
            break; /* the names can come later: profctl symbols */
        }
        if (event.kind == PROFD_EVENT_NACK) {
            const struct profd_outcome o = {
                .name = "an executable", .status = event.status, .executable = true, .sentence = event.sentence};
            d->sink(d->context, &o);
        }
    }
    return PROFD_OK;
}

void profd_delivery_close(struct profd_delivery *d)
{
    if (!d) {
        return;
    }
    for (struct delivery_item *item = d->items, *next; item; item = next) {
        next = item->next;
        delivery_item_free(item);
    }
    profd_conn_close(d->conn);
    spool_close(d->spool);
    free(d->executables);
    free(d->server);
    free(d->token_file);
    free(d->program);
    free(d);
}
