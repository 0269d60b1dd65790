/* Deliveries: each upload is sent until the daemon answers, or written to the spool. */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/client.h"
#include "lib/profd_upload.h"
#include "proto/frame.h"
#include "proto/limits.h"

#define ITEMS_MAX 128u              /* on their way at once: half of what the daemon reads ahead */
#define BYTES_MAX ((size_t)8 << 20) /* of their frames; one larger frame goes alone */
#define ATTEMPTS_MAX 5u
#define REDIAL_MS 1000
#define PAUSE_MIN 50u   /* ms, doubled with each attempt */
#define PAUSE_MAX 2000u /* ms: a longer retry_after means the spool */

/* Ids of the uploads that one program sends for several users: the daemon keeps the ids of each user apart, and expects
 * the sequences of a sender without gaps. */
struct senders {
    struct sender *list;
    size_t count;
};

struct sender {
    uint32_t uid;
    struct profd_id id;
};

/* The id of the latest upload for that user; a new one with sequence 0 at the first call. It lives until the next call.
 */
static enum profd_status senders_take(struct senders *s, uint32_t uid, struct profd_id **out, struct profd_error *e)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].uid == uid) {
            *out = &s->list[i].id;
            return PROFD_OK;
        }
    }
    struct sender *grown = realloc(s->list, (s->count + 1) * sizeof *grown);
    TRY(grown ? PROFD_OK : profd_no_memory(e));
    s->list = grown;
    s->list[s->count].uid = uid;
    enum profd_status status = profd_id_make(&s->list[s->count].id, e);
    *out = &s->list[s->count].id;
    s->count += status == PROFD_OK;
    return status;
}

/* An upload on its way: kept until it is acknowledged, refused, or written to the spool. */
struct delivery_item {
    TAILQ_ENTRY(delivery_item) link;
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
};

struct profd_delivery {
    struct profd_options options;
    char *server, *token_file, *program; /* copies that options points to */
    profd_outcome_sink sink;
    void *context;
    struct profd_id id;     /* the latest */
    struct senders senders; /* of uploads for other users */
    bool claims;            /* as of the latest connection */
    struct profd_conn *conn;
    struct profd_error offline; /* why conn is NULL */
    struct spool *spool;        /* NULL until needed */
    TAILQ_HEAD(delivery_items, delivery_item) items;
    size_t item_count, item_bytes;
    const struct profd_executable **executables;
    size_t executable_count;
    conn_supply supply;
    void *supply_context;
    int64_t dialled; /* conn_clock of the last attempt to connect */
};

/* Opens the spool once, and makes it if create is set. Reports the uploads that expired. */
static enum profd_status spool_get(struct profd_delivery *d, bool create, struct profd_error *e)
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

static void item_free(struct delivery_item *item)
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
            item_free(item);
            return NULL;
        }
    }
    if (!item->name || !item->objects) {
        item_free(item);
        return NULL;
    }
    return item;
}

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
    TAILQ_REMOVE(&d->items, item, link);
    d->item_count--;
    d->item_bytes -= item->frame_size;
}

/* Writes the item to the spool, unless it comes from there, reports it, and frees it. */
static void item_spool(struct profd_delivery *d, struct delivery_item *item, const char *why)
{
    struct profd_error error = {""};
    enum profd_status status = PROFD_OK;
    if (!item->earlier) {
        status = spool_get(d, true, &error);
        status = status ? status
                        : spool_add(d->spool, &item->id, item->objects, item->object_count, item->frame,
                                    item->frame_size, &error);
    }
    if (status == PROFD_OK) {
        item_tell(d, item, PROFD_OK, true, false, why);
    } else {
        struct profd_error both = error;
        (void)profd_error_wrap(&both, status, "lost: %s; and", why);
        item_tell(d, item, status, false, false, both.sentence);
    }
    item_free(item);
}

/* Closes the connection for that reason. Uploads that were not acknowledged go to the spool. */
static void conn_lose(struct profd_delivery *d, const struct profd_error *why)
{
    d->offline = *why;
    profd_conn_close(d->conn);
    d->conn = NULL;
    for (struct delivery_item *item; (item = TAILQ_FIRST(&d->items)) != NULL;) {
        item_unlink(d, item);
        item_spool(d, item, d->offline.sentence);
    }
}

/* Queues a copy of the frame: the item keeps its own until the answer is there. */
static enum profd_status item_send(struct profd_delivery *d, struct delivery_item *item, struct profd_error *e)
{
    uint8_t *copy = malloc(item->frame_size);
    FAIL_IF(!copy, e, PROFD_NO_MEMORY, "no memory to send an upload");
    memcpy(copy, item->frame, item->frame_size);
    item->tag = 0;
    item->attempts++;
    return client_queue(d->conn->client, copy, item->frame_size, NULL, 0, 0, &item->tag, e);
}

static void item_answered(struct profd_delivery *d, const struct profd_event *event)
{
    struct delivery_item *item;
    TAILQ_FOREACH(item, &d->items, link)
    {
        if (item->tag != 0 && item->tag == event->tag) {
            break;
        }
    }
    if (!item) {
        return; /* for an executable: the connection reports to the sink */
    }
    bool retry = event->kind == PROFD_EVENT_NACK && event->retry;
    if (retry && item->attempts < ATTEMPTS_MAX && event->retry_after_ms <= PAUSE_MAX) {
        item->tag = 0;
        /* The pause that the daemon requested, or twice the last one, plus a random time up to the same length, so that
         * rejected clients do not return at the same moment. */
        uint32_t pause = PAUSE_MIN << item->attempts, chance = 0;
        pause = event->retry_after_ms > pause ? event->retry_after_ms : pause;
        if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != (ssize_t)sizeof chance) {
            chance = (uint32_t)item->id.sequence * 2654435761u;
        }
        item->due = conn_clock() + (int64_t)pause + chance % (pause + 1);
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
    item_tell(d, item, stored ? PROFD_OK : event->status, false, event->duplicate, stored ? "" : event->sentence);
    item_free(item);
}

/* Sends the uploads again that are due. Returns the time of the next one, or INT64_MAX. */
static int64_t items_repeat(struct profd_delivery *d)
{
    int64_t now = conn_clock(), next = INT64_MAX;
    struct delivery_item *item;
    TAILQ_FOREACH(item, &d->items, link)
    {
        if (item->tag != 0) {
            continue;
        }
        if (item->due > now) {
            next = item->due < next ? item->due : next;
            continue;
        }
        struct profd_error why = {""};
        if (item_send(d, item, &why) != PROFD_OK) {
            conn_lose(d, &why); /* frees the items */
            return INT64_MAX;
        }
    }
    return next;
}

/* Handles answers until fewer than `items` items and at most `bytes` bytes are on their way. */
static void items_pump(struct profd_delivery *d, size_t items, size_t bytes)
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
        const struct delivery_item *sent;
        TAILQ_FOREACH(sent, &d->items, link)
        {
            if (sent->tag != 0) {
                break;
            }
        }
        if (!sent) {
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
            conn_lose(d, &why);
        }
    }
}

/* Sends an item, or queues it until there is space; without a connection it goes to the spool. Takes the item over. */
static void item_start(struct profd_delivery *d, struct delivery_item *item)
{
    size_t others = item->frame_size < BYTES_MAX ? BYTES_MAX - item->frame_size : 0;
    if (d->conn) {
        size_t most = d->conn->client->in_flight_max / 2;
        items_pump(d, most < 1 ? 1 : most < ITEMS_MAX ? most : ITEMS_MAX, others);
    }
    if (!d->conn) {
        item_spool(d, item, d->offline.sentence);
        return;
    }
    struct profd_error why = {""};
    enum profd_status status = item_send(d, item, &why);
    if (status == PROFD_OK) {
        TAILQ_INSERT_TAIL(&d->items, item, link);
        d->item_count++;
        d->item_bytes += item->frame_size;
    } else if (status == PROFD_TOO_LARGE) {
        item_tell(d, item, status, false, false, why.sentence);
        item_free(item);
    } else {
        item_spool(d, item, why.sentence);
    }
}

/* Sends one file of the spool. A file that cannot be read is kept; one that is not an upload is removed. Both are
 * reported. */
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
            item_free(item);
            item = NULL;
            status = profd_no_memory(&why);
        }
        for (size_t i = 0; i < u.object_count && status == PROFD_OK && d->conn; i++) {
            status = conn_offer_path(d->conn, u.objects[i].build_id, u.objects[i].path, &why);
        }
        spool_upload_done(&u);
    }
    if (status == PROFD_OK) {
        item_start(d, item);
    } else {
        item_free(item);
    }
    if (status != PROFD_OK) {
        if (status == PROFD_MALFORMED) {
            spool_remove(d->spool, name);
        }
        const struct profd_outcome o = {.name = name, .status = status, .earlier = true, .sentence = why.sentence};
        d->sink(d->context, &o);
    }
}

/* Connects, if there is a daemon. */
static void conn_begin(struct profd_delivery *d)
{
    d->dialled = conn_clock();
    if (profd_conn_open(&d->options, &d->conn, &d->offline) != PROFD_OK) {
        d->conn = NULL;
        return;
    }
    d->claims = d->conn->client->claims;
    d->conn->supply = d->supply;
    d->conn->supply_context = d->supply_context;
    profd_conn_set_sink(d->conn, d->sink, d->context);
    /* Everything in the spool, oldest first, before anything new. Another process that delivers it has the lock. */
    struct spool_entry *entries = NULL;
    size_t n = 0;
    if (spool_get(d, false, NULL) != PROFD_OK || !spool_lock(d->spool) ||
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
    if (d) {
        TAILQ_INIT(&d->items);
    }
    if (status == PROFD_OK && (!d || !options_copy(d, o))) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        d->sink = sink;
        d->context = context;
        d->claims = geteuid() == 0; /* what goes to the spool is delivered later */
        status = profd_id_make(&d->id, e);
    }
    if (status != PROFD_OK) {
        profd_delivery_close(d);
        return status;
    }
    conn_begin(d);
    *out = d;
    return PROFD_OK;
}

void delivery_set_supply(struct profd_delivery *d, conn_supply supply, void *context)
{
    d->supply = supply;
    d->supply_context = context;
    if (d->conn) {
        d->conn->supply = supply;
        d->conn->supply_context = context;
    }
}

enum profd_status profd_delivery_offer(struct profd_delivery *d, const struct profd_executable *x,
                                       struct profd_error *e)
{
    const struct profd_executable **grown = realloc(d->executables, (d->executable_count + 1) * sizeof *grown);
    TRY(grown ? PROFD_OK : profd_no_memory(e));
    d->executables = grown;
    d->executables[d->executable_count++] = x;
    return d->conn ? profd_conn_offer(d->conn, x, e) : PROFD_OK;
}

enum profd_status profd_delivery_upload(struct profd_delivery *d, const struct profd_upload *u, const char *name,
                                        struct profd_error *e)
{
    struct spool_object objects[64];
    /* Paths of the executables that the upload offers: a later process that delivers it must find them. */
    size_t n = 0;
    for (uint32_t i = 0; i < profd_upload_build_count(u); i++) {
        for (size_t k = 0; k < d->executable_count && n < sizeof objects / sizeof objects[0]; k++) {
            if (strcmp(profd_executable_build_id(d->executables[k]), profd_upload_build_id(u, i)) == 0) {
                objects[n++] =
                    (struct spool_object){profd_upload_build_id(u, i), profd_executable_path(d->executables[k])};
                break;
            }
        }
    }
    struct profd_id *id = &d->id;
    uint32_t uid;
    TRY(upload_get_claim(u, &uid) ? senders_take(&d->senders, uid, &id, e) : PROFD_OK);
    struct delivery_item *item = item_new(name, objects, n);
    TRY(item ? PROFD_OK : profd_no_memory(e));
    item->id = *id;
    item->id.sequence++;
    enum profd_status status = upload_encode(u, &item->id, &item->frame, &item->frame_size, e);
    if (status == PROFD_OK && item->frame_size - FRAME_HEADER_SIZE > LIMIT_FRAME_PAYLOAD) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "an upload of %zu bytes; the limit is %u", item->frame_size,
                                 LIMIT_FRAME_PAYLOAD);
    }
    if (status != PROFD_OK) {
        item_free(item);
        return status;
    }
    *id = item->id;
    item_start(d, item);
    return PROFD_OK;
}

enum profd_status profd_delivery_finish(struct profd_delivery *d, struct profd_error *e)
{
    (void)e; /* what fails here has an outcome of its own */
    items_pump(d, 1, 0);
    /* Executables that were asked for: their ACK comes when the names are stored, so that a report right after has
     * them. */
    while (d->conn && (profd_client_in_flight(d->conn->client) > 0 || client_queued(d->conn->client) > 0)) {
        struct profd_event event;
        if (profd_client_in_flight(d->conn->client) == 0) {
            (void)profd_conn_flush(d->conn, NULL);
            break;
        }
        struct profd_error why = {""};
        enum profd_status status = conn_wait(d->conn, &event, &why);
        if (status != PROFD_OK) {
            conn_give_up_executables(d->conn, status, why.sentence);
            break;
        }
    }
    return PROFD_OK;
}

bool delivery_may_claim(const struct profd_delivery *d)
{
    return d->claims;
}

void delivery_poll(struct profd_delivery *d)
{
    if (!d->conn && conn_clock() >= d->dialled + REDIAL_MS) {
        conn_begin(d);
    }
    for (bool got = true; d->conn && got;) {
        struct profd_event event;
        struct profd_error why = {""};
        (void)items_repeat(d);
        if (!d->conn) {
            return;
        }
        if (conn_step(d->conn, conn_clock(), &event, &got, &why) != PROFD_OK) {
            conn_lose(d, &why);
        } else if (got) {
            item_answered(d, &event);
        }
    }
}

void profd_delivery_close(struct profd_delivery *d)
{
    if (!d) {
        return;
    }
    for (struct delivery_item *item; (item = TAILQ_FIRST(&d->items)) != NULL;) {
        TAILQ_REMOVE(&d->items, item, link);
        item_free(item);
    }
    profd_conn_close(d->conn);
    spool_close(d->spool);
    free(d->executables);
    free(d->senders.list);
    free(d->server);
    free(d->token_file);
    free(d->program);
    free(d);
}
