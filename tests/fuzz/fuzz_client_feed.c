/* The client against any bytes from a daemon. Law: however they are cut, the same events and the same end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profd.h"
#include "proto/frame.h"
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trace {
    uint64_t hash;
    size_t events;
    enum profd_status status;
};

static void mix(struct trace *t, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        t->hash = (t->hash ^ p[i]) * 0x100000001b3u;
    }
}

static void events_take(struct profd_client *c, struct trace *t)
{
    struct profd_event e;
    while (profd_client_next(c, &e)) {
        t->events++;
        mix(t, &e.kind, sizeof e.kind);
        mix(t, &e.tag, sizeof e.tag);
        mix(t, e.sentence, strlen(e.sentence));
        mix(t, e.build_id, strlen(e.build_id));
        mix(t, e.name, strlen(e.name));
        mix(t, e.etag, strlen(e.etag));
        mix(t, e.body, e.body_size);
        if (e.kind == PROFD_EVENT_WANT_OBJECT) {
            (void)profd_client_send_decline(c, &e, "no", NULL);
        }
    }
}

/* A client that was welcomed and asked for three things (tags 2, 3, 4). */
static struct profd_client *client_open(void)
{
    struct message m = {.type = FRAME_WELCOME};
    struct profd_client *c;
    uint8_t *frame;
    size_t n;
    m.as.welcome = (struct message_welcome){FRAME_VERSION, 1 << 20, 8, "d", 1, 0, false};
    if (profd_client_new("fuzz", &c, NULL) != PROFD_OK || message_encode(&m, 0, 1, &frame, &n, NULL) != PROFD_OK) {
        abort();
    }
    if (profd_client_feed(c, frame, n, NULL) != PROFD_OK) {
        abort();
    }
    free(frame);
    (void)profd_client_send_query(c, "/q", NULL, NULL, NULL);
    (void)profd_client_send_sync(c, NULL, NULL);
    (void)profd_client_send_query(c, "/r", NULL, NULL, NULL);
    return c;
}

static struct trace run(const uint8_t *data, size_t size, size_t piece)
{
    struct trace t = {.hash = 0xcbf29ce484222325u};
    struct profd_client *c = client_open();
    events_take(c, &t);
    for (size_t at = 0; at < size && t.status == PROFD_OK; at += piece) {
        t.status = profd_client_feed(c, data + at, size - at < piece ? size - at : piece, NULL);
        events_take(c, &t);
    }
    profd_client_free(c);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace whole = run(data, size, size ? size : 1), byte = run(data, size, 1), seven = run(data, size, 7);
    if (whole.status != byte.status || whole.events != byte.events || whole.hash != byte.hash ||
        seven.hash != byte.hash) {
        abort();
    }
    return 0;
}
