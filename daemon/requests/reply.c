#include "requests/reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/container.h"

#define PIECE_BYTES (256u << 10)

struct reply_source {
    struct conn_source source;
    struct replies *replies;
    uint32_t tag;
    struct page page;
    char etag[80], content_type[96];
    size_t sent, counted;
    bool begun, ended;
};

static bool reply_source_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct reply_source *s = container_of(source, struct reply_source, source);
    struct message m = {.type = FRAME_REPLY};
    size_t n = s->page.body.size - s->sent;
    uint16_t flags = 0;

    if (s->ended) {
        *size = 0;
        return true;
    }
    if (n > PIECE_BYTES) {
        n = PIECE_BYTES;
    }
    m.as.reply.content_type = m.as.reply.etag = "";
    if (!s->begun) {
        m.as.reply.http_status = (uint32_t)s->page.status;
        m.as.reply.content_type = s->content_type;
        m.as.reply.etag = s->etag;
    }
    m.as.reply.body.data = (const uint8_t *)s->page.body.data + (s->page.body.data ? s->sent : 0);
    m.as.reply.body.size = n;
    if (s->sent + n == s->page.body.size) {
        flags = FRAME_FLAG_LAST;
    }
    if (message_encode(&m, flags, s->tag, block, size, NULL)) {
        return false;
    }
    s->begun = true;
    s->sent += n;
    s->ended = flags;
    return true;
}

static void reply_source_free(struct conn_source *source)
{
    struct reply_source *s = container_of(source, struct reply_source, source);

    s->replies->bytes -= s->counted;
    buffer_done(&s->page.body);
    free(s);
}

static void reply_copy_text(char *out, size_t size, const char *text)
{
    const size_t n = text ? strlen(text) : 0;

    if (n && n < size) {
        memcpy(out, text, n);
    }
    out[n < size ? n : 0] = 0;
}

void reply_tell(struct http_exchange *x, struct page *page)
{
    struct http_answer answer = {.status = page->status, .content_type = page->content_type};

    answer.cache_control = page->cache_control;
    answer.etag = page->etag ? page->etag : "";
    answer.csp = page->csp;
    answer.coding = page->coding;
    answer.negotiated = page->negotiated;
    answer.retry_after_ms = page->retry_after_ms;
    answer.body = &page->body;
    http_answer(x, &answer);
    buffer_done(&page->body);
}

void reply_send(struct replies *replies, struct conn *c, uint32_t tag, const struct page *page)
{
    struct reply_source *source = page->body.failed ? NULL : calloc(1, sizeof *source);

    if (!source) {
        struct buffer body = page->body;

        buffer_done(&body);
        conn_nack(c, tag, PROFD_NO_MEMORY, "no memory for the answer", 1000);
        return;
    }
    source->source.make = reply_source_make;
    source->source.free = reply_source_free;
    source->replies = replies;
    source->tag = tag;
    source->page = *page;
    reply_copy_text(source->etag, sizeof source->etag, page->etag);
    reply_copy_text(source->content_type, sizeof source->content_type, page->content_type);
    source->counted = page->body.size;
    source->source.size = sizeof *source + page->body.size;
    replies->bytes += source->counted;
    conn_stream(c, &source->source);
}
