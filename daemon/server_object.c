/* OBJECT: an executable by descriptor. Read by a sandboxed child (blocking: a thread of its own), its answer believed
 * and stored by the writer, then acknowledged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/object.h"
#include "log.h"
#include "server_parts.h"

#define OBJECT_ARENA (3ull << 30)

/* Nobody who has other things to do closes what a stranger opened. */
static void server_object_close(struct server_object *o)
{
    if (o->executable >= 0)
        closer_close(o->server->closer, o->uid, o->executable);
    if (o->debug >= 0)
        closer_close(o->server->closer, o->uid, o->debug);
    o->executable = o->debug = -1;
}

static void server_object_free(struct server_object *o)
{
    server_object_close(o);
    free(o->answer);
    free(o);
}

/* ACK or NACK, and the end of it. */
static void server_object_answer(struct server *s, struct server_object *o)
{
    struct conn *c = conn_find(s->conns, o->conn);
    const struct message ack = {.type = FRAME_ACK};

    if (o->status) {
        s->metrics.objects_failed++;
        log_write(LOG_LEVEL_INFO, "executable refused", "%s from user %u: %s", *o->name ? o->name : "an executable",
                  o->uid, o->error.sentence);
    } else {
        s->metrics.objects_ok++;
    }
    if (c) {
        if (o->status)
            conn_nack(c, o->tag, o->status, o->error.sentence, 1000);
        else
            conn_answer(c, &ack, 0, o->tag);
        server_end_job(c, o->job);
    }
    server_object_free(o);
}

static enum profd_status server_object_fill(struct server_object *o, const struct message_object *m,
                                            struct profd_error *e)
{
    struct buildid id;
    enum profd_status status = PROFD_OK;
    size_t n = strlen(m->name);

    if (*m->build_id) {
        status = buildid_parse(m->build_id, strlen(m->build_id), &id, e);
        if (!status)
            memcpy(o->build_id, id.text, sizeof o->build_id);
    }
    if (n >= sizeof o->name) /* the end of a path says more than its beginning */
        n = sizeof o->name - 1;
    memcpy(o->name, m->name + strlen(m->name) - n, n + 1);
    while ((*o->name & 0xc0) == 0x80) /* cut at a character */
        memmove(o->name, o->name + 1, strlen(o->name));
    return status;
}

enum profd_status server_take_object(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct server *s = context;
    struct server_object *o;
    struct message m;
    enum profd_status status;

    if (s->write_failed) {
        *e = s->write_error;
        return PROFD_IO;
    }
    status = server_decode(f, &m, e);
    if (status)
        return status;
    o = calloc(1, sizeof *o);
    status =
        o ? server_object_fill(o, &m.as.object, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory for an OBJECT");
    message_done(&m);
    if (status) {
        free(o);
        return status;
    }
    o->write.kind = SERVER_WRITE_OBJECT;
    o->write.item.uid = o->uid = conn_get_peer(c)->uid;
    o->server = s;
    o->conn = conn_get_id(c);
    o->tag = f->header.tag;
    o->received = server_clock();
    o->executable = conn_frame_take_fd(f, 0);
    o->debug = conn_frame_take_fd(f, 1);
    if (!work_put(s->objects, &o->write.item)) {
        server_object_free(o);
        return profd_error_set(e, PROFD_BUSY, "too many executables wait to be read");
    }
    o->job = session_begin(conn_get_user(c));
    return PROFD_OK;
}

enum profd_status server_take_decline(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct message m;
    enum profd_status status = server_decode(f, &m, e);

    (void)context;
    if (status)
        return status;
    log_write(LOG_LEVEL_INFO, "executable declined", "user %u cannot send the executable of %s: %s",
              conn_get_peer(c)->uid, m.as.decline.build_id, m.as.decline.reason);
    message_done(&m);
    return PROFD_OK;
}

/* The id of an executable that was sent unasked, if it lacks names that a debug file could give. */
static bool server_object_wants_debug(const struct server_object *o, char id[BUILDID_TEXT_SIZE])
{
    struct arena *arena = arena_new(OBJECT_ARENA);
    struct object *object;
    bool wants = false;

    if (arena && !object_decode(arena, o->answer, o->answer_size, &object, NULL)) {
        wants = !object->has_names || object->only_dynamic;
        memcpy(id, object->id.text, BUILDID_TEXT_SIZE);
    }
    arena_free(arena);
    return wants;
}

static void server_object_read(struct broker *broker, struct server_object *o)
{
    char id[BUILDID_TEXT_SIZE];
    uint8_t *answer;
    size_t size;

    if (server_hangs_file(o->executable) || (o->debug >= 0 && server_hangs_file(o->debug))) {
        o->status = profd_error_set(&o->error, PROFD_REFUSED,
                                    "an executable is not read from a FUSE file system, where its owner may keep the "
                                    "reader waiting for ever; copy it elsewhere");
        return;
    }
    o->trusted = !o->uid || (server_trusts_file(o->executable) && (o->debug < 0 || server_trusts_file(o->debug)));
    if (o->debug < 0 && *o->build_id)
        o->debug = server_open_debug(o->build_id);
    o->status = broker_read_object(broker, o->executable, o->debug, &o->answer, &o->answer_size, &o->error);
    if (o->status || o->debug >= 0 || *o->build_id || !server_object_wants_debug(o, id))
        return;
    o->debug = server_open_debug(id);
    if (o->debug < 0 || broker_read_object(broker, o->executable, o->debug, &answer, &size, NULL))
        return;
    free(o->answer);
    o->answer = answer;
    o->answer_size = size;
}

void server_object_run(void *context, struct work_item *const *items, size_t n)
{
    struct store *store = context;

    for (size_t i = 0; i < n; i++) {
        struct server_object *o = (struct server_object *)(void *)items[i];

        /* Many processes of one build are asked at once; the first answer serves all. */
        if (!*o->build_id || store_has_object(store, o->uid, o->build_id, &o->known, NULL))
            o->known = false;
        if (!o->known)
            server_object_read(o->server->broker, o);
    }
}

void server_object_parsed(void *context, struct work_item *item)
{
    struct server_object *o = (struct server_object *)(void *)item;
    struct server *s = context;

    /* A failure is stored, too: the build then says why its names are missing. What cannot be stored is answered here.
     */
    if (o->known) {
        server_object_answer(s, o);
        return;
    }
    server_object_close(o);
    if (!work_put(s->writer, &o->write.item)) {
        o->status = profd_error_set(&o->error, PROFD_BUSY, "too many uploads wait to be stored");
        server_object_answer(s, o);
    }
}

void server_object_store(struct store *store, struct server_object *o)
{
    const bool failed = o->status != PROFD_OK;
    struct ingest_object given = {
        .uid = o->uid, .trusted = o->trusted, .received = o->received, .build_id = o->build_id};
    struct profd_error e = {""};
    enum profd_status status;

    given.name = o->name;
    given.answer = failed ? NULL : o->answer;
    given.answer_size = failed ? 0 : o->answer_size;
    given.failure = failed ? o->error.sentence : NULL;
    /* A failure has a build to be noted at only if somebody asked for one; passing troubles are not noted. */
    if (failed && (!*o->build_id || profd_status_retry(o->status)))
        return;
    status = ingest_object_store(store, &given, &e);
    if (status && !failed) {
        o->status = status;
        o->error = e;
    }
}

void server_object_stored(struct server *s, struct server_object *o)
{
    server_note_store_status(s, o->status, &o->error);
    server_object_answer(s, o);
}

void server_object_drop(void *context, struct work_item *item)
{
    struct server_object *o = (struct server_object *)(void *)item;

    o->status = profd_error_set(&o->error, PROFD_STOPPING, "the daemon is stopping");
    server_object_answer(context, o);
}
