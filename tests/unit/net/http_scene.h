/* A real HTTP server with a client at the other end of a socket, for the tests of the server. */
#ifndef PROFD_TESTS_NET_HTTP_SCENE_H
#define PROFD_TESTS_NET_HTTP_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "net/http.h"

struct event_base;

/* The handler remembers what it was asked, and answers with status and body bytes at once or, if later, on demand. Of a
 * PUT or POST it remembers size and hash of the body. */
struct scene {
    struct event_base *base;
    struct http_server *server;
    int client;
    unsigned handled;
    char target[5000], etag[9000];
    bool head, later;
    enum coding coding; /* asked for; the answer says that it is so coded */
    bool coded_only;
    struct http_peer peer;
    size_t size;
    char hash[65], type[100];
    const uint8_t *bytes; /* of a POST, until it is answered */
    bool file;            /* it was a PUT */
    struct http_exchange *waiting;
    int status;
    size_t body;
    char *got;
    size_t got_size;
    bool ended;
};

/* http_admit: the token "secret" has this number, and others are unknown. */
#define SCENE_TOKEN 7
int scene_admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e);

/* A server with one connected client; close frees both. A deadline that config leaves 0 is a day: this process may
 * stand still for a while. */
void scene_open(struct scene *s, const struct http_server_config *config);
void scene_close(struct scene *s);
/* Another client; the one before is closed unless client is −1. */
void scene_connect(struct scene *s);
/* The client sends n bytes. */
void scene_say(struct scene *s, const char *text, size_t n);
/* Lets the server work until the client sees the end, or as many whole answers as wanted (0: the end); at least a
 * minute.
 */
void scene_pump(struct scene *s, size_t heads);
/* Takes what has arrived at the client. */
void scene_receive(struct scene *s);
/* Lets the server do what can be done at once. */
void scene_settle(struct scene *s);
/* SHA-256 in hexadecimal digits. */
void scene_hash(const void *bytes, size_t n, char hash[65]);
/* Answers an exchange that was kept for later. */
void scene_answer(struct scene *s, struct http_exchange *x);

size_t scene_count_heads(const struct scene *s);
/* Of the first answer: status, and the value of a header field (at most 500 characters, NULL if absent). */
int scene_status(const struct scene *s);
const char *scene_field(const struct scene *s, const char *name, char *value);
void scene_assert_field(const struct scene *s, const char *name, const char *wanted);
/* What every answer must carry, refusals too. */
void scene_assert_guarded(const struct scene *s);
/* A problem document with that status and word. */
void scene_assert_problem(const struct scene *s, int status, const char *word);

#endif
