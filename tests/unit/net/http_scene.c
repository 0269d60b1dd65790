/* Runs a real HTTP listener with a client at the other end of a socket, for the tests of HTTP. */
#include "tests/unit/net/http_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOT_MAX (8u << 20)
#define A_DAY 86400000u /* ms */

void scene_answer(struct scene *s, struct http_exchange *x)
{
    struct buffer body;
    buffer_init(&body, 1 << 28);
    for (size_t i = 0; i < s->body; i++) {
        buffer_add_char(&body, (char)('a' + i % 26));
    }
    struct http_answer a = {.status = s->status,
                            .content_type = "application/json; charset=utf-8",
                            .etag = "\"tag\"",
                            .cache_control = "private, no-cache",
                            .body = &body,
                            .coding = s->coding,
                            .negotiated = true};
    http_answer(x, &a);
    cr_assert_null(body.data, "the body's memory is taken over");
}

void scene_hash(const void *bytes, size_t n, char hash[65])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, n, bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        sprintf(hash + 2 * i, "%02x", digest[i]);
    }
}

/* The file in memory is whole, and nobody can change it. */
static void take_file(struct scene *s, int file)
{
    struct stat about;
    cr_assert_eq(fstat(file, &about), 0);
    cr_assert_eq(fcntl(file, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    s->size = (size_t)about.st_size;
    char *bytes = malloc(s->size + 1);
    cr_assert_eq(pread(file, bytes, s->size + 1, 0), about.st_size);
    scene_hash(bytes, s->size, s->hash);
    free(bytes);
    close(file);
}

static void handle(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct scene *s = context;
    s->handled++;
    snprintf(s->target, sizeof s->target, "%s", request->target);
    snprintf(s->etag, sizeof s->etag, "%s", request->if_none_match);
    s->head = request->head;
    s->coding = request->coding;
    s->coded_only = request->coded_only;
    s->peer = request->peer;
    s->size = request->size;
    s->bytes = request->bytes;
    s->file = request->body >= 0;
    snprintf(s->type, sizeof s->type, "%s", request->content_type);
    cr_assert_not(s->file && s->bytes != NULL);
    if (s->file) {
        take_file(s, request->body);
    } else if (s->bytes != NULL) {
        scene_hash(s->bytes, s->size, s->hash);
    }
    if (s->later) {
        s->waiting = x;
    } else {
        scene_answer(s, x);
    }
}

void scene_connect(struct scene *s)
{
    int ends[2];
    if (s->client >= 0) {
        close(s->client);
    }
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    s->client = ends[0];
    s->got_size = 0;
    s->ended = false;
    http_server_accept(s->server, ends[1], &(struct http_peer){.uid = 1000, .may_read_all = true});
}

/* What scene_assert_problem looks for. */
static void write_problem(enum profd_status status, int http_status, const char *sentence, struct buffer *out)
{
    (void)status;
    buffer_add_format(out, "{\"status\":%d,\"detail\":\"%s\"}\n", http_status, sentence);
}

int scene_admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e)
{
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx sha;
    (void)context;
    sha256_init(&sha);
    sha256_update(&sha, 6, (const uint8_t *)"secret");
    sha256_digest(&sha, sizeof hash, hash);
    *token = c->token_sha256 != NULL && memcmp(hash, c->token_sha256, sizeof hash) == 0 ? SCENE_TOKEN : 0;
    if (*token != 0 || (c->open && !c->given)) {
        return 0;
    }
    profd_error_set(e, PROFD_UNAUTHORIZED, "the token is not known");
    return 401;
}

void scene_open(struct scene *s, const struct http_server_config *config)
{
    struct http_server_config whole = *config;
    signal(SIGPIPE, SIG_IGN);
    *s = (struct scene){.client = -1, .status = 200, .body = 10};
    s->got = malloc(GOT_MAX);
    s->base = event_base_new();
    whole.write_problem = write_problem;
    whole.header_ms = config->header_ms ? config->header_ms : A_DAY;
    whole.handle_ms = config->handle_ms ? config->handle_ms : A_DAY;
    whole.write_ms = config->write_ms ? config->write_ms : A_DAY;
    whole.life_ms = config->life_ms ? config->life_ms : A_DAY;
    s->server = http_server_new(s->base, &whole, handle, s);
    cr_assert_not_null(s->server);
    scene_connect(s);
}

void scene_close(struct scene *s)
{
    http_server_free(s->server);
    event_base_free(s->base);
    close(s->client);
    free(s->got);
}

void scene_receive(struct scene *s)
{
    while (!s->ended && s->got_size < GOT_MAX) {
        ssize_t n = read(s->client, s->got + s->got_size, GOT_MAX - s->got_size);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0) {
            s->ended = true;
        } else {
            s->got_size += (size_t)n;
        }
    }
}

size_t scene_count_heads(const struct scene *s)
{
    size_t heads = 0;
    const char *end = s->got + s->got_size;
    for (const char *p = s->got; (p = memmem(p, (size_t)(end - p), "\r\n\r\n", 4)) != NULL; p += 4) {
        heads++;
    }
    return heads;
}

void scene_pump(struct scene *s, size_t heads)
{
    for (int i = 0; i < 60000 && !s->ended && (heads == 0 || scene_count_heads(s) < heads); i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        scene_receive(s);
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < 5; i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
    }
    scene_receive(s);
}

void scene_settle(struct scene *s)
{
    for (int i = 0; i < 20; i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
    }
    scene_receive(s);
}

void scene_say(struct scene *s, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t sent = write(s->client, text, n);
        if (sent < 0) {
            cr_assert(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
            if (errno != EAGAIN) {
                return;
            }
            scene_settle(s);
            continue;
        }
        text += sent;
        n -= (size_t)sent;
    }
}

int scene_status(const struct scene *s)
{
    int status = 0;
    return s->got_size > 12 && sscanf(s->got, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

const char *scene_field(const struct scene *s, const char *name, char *value)
{
    const char *end = memmem(s->got, s->got_size, "\r\n\r\n", 4);
    size_t n = strlen(name);
    for (const char *p = s->got; end != NULL && p < end;
         p = (const char *)memmem(p, (size_t)(end + 2 - p), "\r\n", 2) + 2) {
        if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
            sscanf(p + n + 1, " %500[^\r]", value);
            return value;
        }
    }
    return NULL;
}

void scene_assert_field(const struct scene *s, const char *name, const char *wanted)
{
    char value[501];
    const char *found = scene_field(s, name, value);
    cr_assert_not_null(found, "no %s in %.*s", name, (int)s->got_size, s->got);
    cr_assert_str_eq(found, wanted);
}

void scene_assert_guarded(const struct scene *s)
{
    char value[501];
    scene_assert_field(s, "X-Content-Type-Options", "nosniff");
    scene_assert_field(s, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox");
    scene_assert_field(s, "Cross-Origin-Resource-Policy", "same-origin");
    scene_assert_field(s, "Cross-Origin-Opener-Policy", "same-origin");
    scene_assert_field(s, "Referrer-Policy", "no-referrer");
    cr_assert_not_null(scene_field(s, "Cache-Control", value));
    cr_assert_not_null(scene_field(s, "Date", value));
    cr_assert_null(scene_field(s, "Server", value));
    cr_assert_null(scene_field(s, "Access-Control-Allow-Origin", value));
}

void scene_assert_problem(const struct scene *s, int status, const char *word)
{
    char text[100];
    cr_assert_eq(scene_status(s), status, "%.*s", (int)s->got_size, s->got);
    scene_assert_guarded(s);
    scene_assert_field(s, "Content-Type", "application/problem+json");
    scene_assert_field(s, "Cache-Control", "no-store");
    scene_assert_field(s, "Connection", "close");
    snprintf(text, sizeof text, "\"status\":%d,\"detail\":\"", status);
    cr_assert_not_null(memmem(s->got, s->got_size, text, strlen(text)));
    cr_assert_not_null(memmem(s->got, s->got_size, word, strlen(word)), "'%s' lacks '%s'", s->got, word);
}
