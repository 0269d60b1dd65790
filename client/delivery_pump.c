/* Uploads on their way: sent, answered, sent again, or spooled. */
#include "client/delivery.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/limits.h"

#define ITEMS_MAX 128u              /* on their way at once: half of what the daemon reads ahead */
#define BYTES_MAX ((size_t)8 << 20) /* of their frames; one larger frame goes alone */
#define ATTEMPTS_MAX 5u
#define PAUSE_MIN 50u   /* ms, doubled with each attempt */
#define PAUSE_MAX 2000u /* ms: a longer retry_after means the spool */

static void item_tell(struct profd_delivery *d, const struct delivery_item *item, enum profd_status status,
                      bool spooled, bool duplicate, const char *sentence)
{
    const struct profd_outcome o = {.name = item->name,
                                    .status = status,
                                    .spooled = spooled,
                                    .earlier = item->earlier,
                                    .duplicate = duplicate,
                                    .sentence = sentence};
    d->sink(d->context, &o);
}

static void item_unlink(struct profd_delivery *d, struct delivery_item *item)
{
    for (struct delivery_item **p = &d->items; *p; p = &(*p)->next) {
        if (*p == item) {
            *p = item->next;
            d->item_count--;
            d->item_bytes -= item->frame_size;
            return;
        }
    }
}

/* Keeps it for a later delivery; an earlier one is in the spool already. Frees it. */
static void item_spool(struct profd_delivery *d, struct delivery_item *item, const char *why)
{
    struct profd_error error = {""};
    enum profd_status status = PROFD_OK;
    if (!item->earlier) {
        status = delivery_spool(d, true, &error);
        if (status == PROFD_OK) {
            status = spool_add(d->spool, &item->id, item->objects, item->object_count, item->frame, item->frame_size,
                               &error);
        }
    }
    if (status == PROFD_OK) {
        item_tell(d, item, PROFD_OK, true, false, why);
    } else {
        struct profd_error both = error;
        (void)profd_error_wrap(&both, status, "lost: %s; and", why);
        item_tell(d, item, status, false, false, both.sentence);
    }
    delivery_item_free(item);
}

void delivery_disconnect(struct profd_delivery *d, const struct profd_error *why)
{
    d->offline = *why;
    profd_conn_close(d->conn);
    d->conn = NULL;
    struct delivery_item *item = d->items;
    d->items = NULL;
    d->item_count = d->item_bytes = 0;
    while (item) {
        struct delivery_item *next = item->next;
        item_spool(d, item, d->offline.sentence);
        item = next;
    }
}

/* Queues a copy of the frame: the item keeps its own until the answer is there. */
static enum profd_status item_send(struct profd_delivery *d, struct delivery_item *item, struct profd_error *e)
{
    uint8_t *copy = malloc(item->frame_size);
    if (!copy) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to send an upload");
    }
    memcpy(copy, item->frame, item->frame_size);
    item->tag = 0;
    item->attempts++;
    return client_queue(d->conn->client, copy, item->frame_size, NULL, 0, &item->tag, true, e);
}

enum profd_status delivery_start(struct profd_delivery *d, struct delivery_item *item, struct profd_error *e)
{
    (void)e;
    size_t others = item->frame_size < BYTES_MAX ? BYTES_MAX - item->frame_size : 0;
    if (d->conn) {
        size_t most = d->conn->client->in_flight_max / 2;
        delivery_pump(d, most < 1 ? 1 : most < ITEMS_MAX ? most : ITEMS_MAX, others);
    }
    if (!d->conn) {
        item_spool(d, item, d->offline.sentence);
        return PROFD_OK;
    }
    struct profd_error why = {""};
    enum profd_status status = item_send(d, item, &why);
    if (status == PROFD_OK) {
        struct delivery_item **last = &d->items;
        while (*last) {
            last = &(*last)->next;
        }
        *last = item;
        d->item_count++;
        d->item_bytes += item->frame_size;
        return PROFD_OK;
    }
    if (status == PROFD_TOO_LARGE) {
        item_tell(d, item, status, false, false, why.sentence);
        delivery_item_free(item);
    } else {
        item_spool(d, item, why.sentence);
    }
    return PROFD_OK;
}

/* Milliseconds until the next attempt: what the daemon asked for or twice the last pause, and up to as much again by
 * chance, so that those who were sent away together do not come back together. */
static int64_t item_pause(const struct delivery_item *item, uint32_t retry_after_ms)
{
    uint32_t pause = PAUSE_MIN << item->attempts, chance = 0;
    pause = retry_after_ms > pause ? retry_after_ms : pause;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != (ssize_t)sizeof chance) {
        chance = (uint32_t)item->id.sequence * 2654435761u;
    }
    return (int64_t)pause + chance % (pause + 1);
}

static void item_answered(struct profd_delivery *d, const struct profd_event *event)
{
    struct delivery_item *item = d->items;
    while (item && (item->tag == 0 || item->tag != event->tag)) {
        item = item->next;
    }
    if (!item) { /* of an executable */
        if (event->kind == PROFD_EVENT_NACK) {
            const struct profd_outcome o = {
                .name = "an executable", .status = event->status, .executable = true, .sentence = event->sentence};
            d->sink(d->context, &o);
        }
        return;
    }
    bool retry = event->kind == PROFD_EVENT_NACK && event->retry;
    if (retry && item->attempts < ATTEMPTS_MAX && event->retry_after_ms <= PAUSE_MAX) {
        item->tag = 0;
        item->due = conn_clock() + item_pause(item, event->retry_after_ms);
        (void)profd_error_set(&item->busy, event->status, "%s", event->sentence);
        return;
    }
    item_unlink(d, item);
    if (retry) {
        item_spool(d, item, event->sentence);
        return;
    }
    if (item->earlier) {
        spool_remove(d->spool, item->name);
    }
    bool stored = event->kind == PROFD_EVENT_ACK;
    item_tell(d, item, stored ? PROFD_OK : event->status, false, event->duplicate, event->sentence);
    delivery_item_free(item);
}

/* Sends again what is due; returns when the next one is, or INT64_MAX. */
static int64_t items_repeat(struct profd_delivery *d)
{
    int64_t now = conn_clock(), next = INT64_MAX;
    for (struct delivery_item *item = d->items; item && d->conn; item = item->next) {
        if (item->tag != 0) {
            continue;
        }
        if (item->due > now) {
            next = item->due < next ? item->due : next;
            continue;
        }
        struct profd_error why = {""};
        if (item_send(d, item, &why) != PROFD_OK) {
            delivery_disconnect(d, &why); /* frees the items */
            return INT64_MAX;
        }
    }
    return next;
}

static bool anything_sent(const struct profd_delivery *d)
{
    for (const struct delivery_item *item = d->items; item; item = item->next) {
        if (item->tag != 0) {
            return true;
        }
    }
    return false;
}

void delivery_pump(struct profd_delivery *d, size_t items, size_t bytes)
{
    if (d->conn) {
        d->conn->progress = conn_clock();
    }
    while (d->conn && d->item_count > 0 && (d->item_count >= items || d->item_bytes > bytes)) {
        struct profd_event event;
        struct profd_error why = {""};
        bool got = false;
        int64_t due = items_repeat(d);
        if (!d->conn) {
            return;
        }
        if (!anything_sent(d)) {
            d->conn->progress = conn_clock(); /* pauses of our own are not the daemon's silence */
        }
        int64_t silence = d->conn->progress + d->conn->answer_ms;
        enum profd_status status = conn_step(d->conn, due < silence ? due : silence, &event, &got, &why);
        if (status == PROFD_OK && got) {
            item_answered(d, &event);
        } else if (status == PROFD_OK && conn_clock() >= d->conn->progress + d->conn->answer_ms) {
            status = profd_error_set(&why, PROFD_TIMEOUT, "the daemon at %s did not answer within %u ms",
                                     d->conn->address.text, d->conn->answer_ms);
        }
        if (status != PROFD_OK) {
            delivery_disconnect(d, &why);
        }
    }
}
