/* The reader of HTTP answers. Law: however they are cut, the same body and the same end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/http_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trace {
    uint64_t hash, bytes;
    enum profd_status status;
    bool done;
};

static enum profd_status take(void *context, const struct profd_answer *a, const void *bytes, size_t n,
                              struct profd_error *e)
{
    struct trace *t = context;
    const uint8_t *p = bytes;
    (void)e;
    if (strlen(a->etag) >= sizeof a->etag || a->http_status < 200 || a->http_status > 599) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        t->hash = (t->hash ^ p[i]) * 0x100000001b3u;
    }
    t->bytes += n;
    return PROFD_OK;
}

static struct trace run(const uint8_t *data, size_t size, size_t piece)
{
    struct trace t = {.hash = 0xcbf29ce484222325u};
    struct http_reply *r = malloc(sizeof *r);
    if (!r) {
        abort();
    }
    http_reply_init(r);
    for (size_t at = 0; at < size && t.status == PROFD_OK && !t.done; at += piece) {
        t.status = http_reply_feed(r, data + at, size - at < piece ? size - at : piece, take, &t, &t.done, NULL);
    }
    free(r);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace whole = run(data, size, size ? size : 1), byte = run(data, size, 1), five = run(data, size, 5);
    if (whole.status != byte.status || whole.done != byte.done || whole.bytes != byte.bytes ||
        whole.hash != byte.hash || five.hash != byte.hash || five.status != byte.status) {
        abort();
    }
    return 0;
}
