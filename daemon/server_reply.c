/* An answer to the Unix socket: cut into REPLY frames, each made when the reader has taken the ones before. */
#include <stdlib.h>
#include <string.h>

#include "server_parts.h"

#define PIECE_BYTES (256u << 10)

struct server_source {
    struct conn_source source; /* first */
    struct server *server;
    uint32_t tag;
    struct server_page page;
    char etag[80], content_type[96];
    size_t sent, counted;
    bool begun, ended;
};

static bool server_source_make(struct conn_source *source, uint8_t **block, size_t *size)
{
    struct server_source *s = (struct server_source *)(void *)source;
    struct message m = {.type = FRAME_REPLY};
    size_t n = s->page.body.size - s->sent;
    uint16_t flags = 0;

    if (s->ended) {
        *size = 0;
        return true;
    }
    if (n > PIECE_BYTES)
        n = PIECE_BYTES;
    m.as.reply.content_type = m.as.reply.etag = "";
    if (!s->begun) {
        m.as.reply.http_status = (uint32_t)s->page.status;
        m.as.reply.content_type = s->content_type;
        m.as.reply.etag = s->etag;
    }
    m.as.reply.body.data = (const uint8_t *)s->page.body.data + (s->page.body.data ? s->sent : 0);
    m.as.reply.body.size = n;
    if (s->sent + n == s->page.body.size)
        flags = FRAME_FLAG_LAST;
    if (message_encode(&m, flags, s->tag, block, size, NULL))
        return false;
    s->begun = true;
    s->sent += n;
    s->ended = flags;
    return true;
}

static void server_source_free(struct conn_source *source)
{
    struct server_source *s = (struct server_source *)(void *)source;

    s->server->answer_bytes -= s->counted;
    buffer_done(&s->page.body);
    free(s);
}

static void server_copy_text(char *out, size_t size, const char *text)
{
    const size_t n = text ? strlen(text) : 0;

    if (n && n < size)
        memcpy(out, text, n);
    out[n < size ? n : 0] = 0;
}

void server_reply(struct server *s, struct conn *c, uint32_t tag, const struct server_page *page)
{
    struct server_source *source = calloc(1, sizeof *source);

    if (!source) {
        struct buffer body = page->body;

        buffer_done(&body);
        conn_nack(c, tag, PROFD_NO_MEMORY, "no memory for the answer", 1000);
        return;
    }
    source->source.make = server_source_make;
    source->source.free = server_source_free;
    source->server = s;
    source->tag = tag;
    source->page = *page;
    server_copy_text(source->etag, sizeof source->etag, page->etag);
    server_copy_text(source->content_type, sizeof source->content_type, page->content_type);
    source->counted = page->body.size;
    source->source.size = sizeof *source + page->body.size;
    s->answer_bytes += source->counted;
    conn_stream(c, &source->source);
}
