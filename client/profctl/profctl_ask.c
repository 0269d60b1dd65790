#include "profctl/profctl_ask.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEM_MAX 65536

static void target_put(struct ask_target *t, char c)
{
    if (t->size + 1 >= sizeof t->text) {
        t->too_long = true;
        return;
    }
    t->text[t->size++] = c;
    t->text[t->size] = '\0';
}

static void target_encode(struct ask_target *t, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("-._~", *p) != NULL;
        if (plain) {
            target_put(t, (char)*p);
        } else {
            target_put(t, '%');
            target_put(t, digits[*p >> 4]);
            target_put(t, digits[*p & 15]);
        }
    }
}

void ask_target_init_two(struct ask_target *t, const char *route, const char *name, const char *second)
{
    *t = (struct ask_target){.size = 0};
    for (; *route; route++) {
        if (strncmp(route, "{}", 2) == 0) {
            target_encode(t, name);
            name = second;
            route++;
        } else {
            target_put(t, *route);
        }
    }
}

void ask_target_init(struct ask_target *t, const char *route, const char *name)
{
    ask_target_init_two(t, route, name, NULL);
}

void ask_target_add(struct ask_target *t, const char *name, const char *value)
{
    if (value) {
        target_put(t, t->has_parameters ? '&' : '?');
        t->has_parameters = true;
        target_encode(t, name);
        target_put(t, '=');
        target_encode(t, value);
    }
}

enum profd_status ask_target_add_label(struct ask_target *t, const struct profctl_call *call, const char *prefix,
                                       const char *text, struct profd_error *e)
{
    const char *equals = strchr(text, '=');
    char name[160];
    if (!equals || equals == text || (size_t)(equals - text) > 128) {
        return profd_error_set(e, PROFD_USAGE, "%s: -l %s is not NAME=VALUE", call->verb->name, text);
    }
    (void)snprintf(name, sizeof name, "%slabel.%.*s", prefix, (int)(equals - text), text);
    ask_target_add(t, name, equals + 1);
    return PROFD_OK;
}

enum profd_status ask_target_add_given(struct ask_target *t, const struct profctl_call *call, const char *names,
                                       struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    t->call = call;
    for (size_t i = 0; i < call->given_count && status == PROFD_OK; i++) {
        const char *name = call->given[i].option->name, *value = call->given[i].value;
        bool last = profctl_value(call, name) == value;
        if (strcmp(name, "label") == 0) {
            status = ask_target_add_label(t, call, "", value, e);
        } else if (strcmp(name, "match") == 0 || strcmp(name, "by") == 0 ||
                   (last && profctl_alternative(names, name) >= 0)) {
            ask_target_add(t, name, value);
        } else if (last && strcmp(name, "partial") == 0) {
            ask_target_add(t, name, "1");
        }
    }
    return status;
}

/* The daemon's sentences name parameters, "since=yesterday is …"; the user gave options, "--since yesterday is …". */
static void sentence_name_options(const struct profctl_call *call, struct profd_error *e)
{
    for (size_t i = 0; i < call->given_count; i++) {
        const char *name = call->given[i].option->name, *value = call->given[i].value;
        char parameter[64];
        size_t n = (size_t)snprintf(parameter, sizeof parameter, "%s=", name);
        const size_t side = name[1] == '-' ? 2 : 0; /* "a-since" is the parameter since of one side of a comparison */
        char *at = value[0] && n < sizeof parameter ? strstr(e->sentence, parameter + side) : NULL;
        n -= side;
        if (at && strncmp(at + n, value, strlen(value)) == 0) {
            const struct profd_error said = *e;
            const size_t before = (size_t)(at - e->sentence);
            (void)snprintf(e->sentence, sizeof e->sentence, "%.*s--%s %s", (int)before, said.sentence, name,
                           said.sentence + before + n);
        }
    }
}

struct ask {
    profd_sink sink;
    void *context;
    int http_status;
    char problem[PROBLEM_MAX];
    size_t problem_size;
};

static enum profd_status answer_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                     struct profd_error *e)
{
    struct ask *a = context;
    a->http_status = answer->http_status;
    if (answer->http_status < 400) {
        return a->sink(a->context, answer, bytes, n, e);
    }
    size_t left = sizeof a->problem - 1 - a->problem_size, take = n < left ? n : left;
    if (take > 0) {
        memcpy(a->problem + a->problem_size, bytes, take);
        a->problem_size += take;
    }
    return PROFD_OK;
}

/* The status and sentence of a problem document (RFC 9457); of the HTTP status alone where it cannot be read. */
static enum profd_status problem_parse(const char *text, size_t n, int http_status, struct profd_error *e)
{
    json_t *problem = json_loadb(text, n, 0, NULL);
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *code = json_string_value(json_object_get(problem, "code"));
    enum profd_status status = PROFD_OK;
    for (unsigned i = 1; code && profd_status_known(i); i++) {
        if (strcmp(profd_status_name((enum profd_status)i), code) == 0) {
            status = (enum profd_status)i;
        }
    }
    for (unsigned i = 1; status == PROFD_OK && profd_status_known(i); i++) { /* an older or newer daemon */
        if (profd_status_http((enum profd_status)i) == http_status) {
            status = (enum profd_status)i;
        }
    }
    status = status == PROFD_OK ? PROFD_INTERNAL : status;
    if (detail) {
        (void)profd_error_set(e, status, "%s", detail);
    } else if (http_status == 401) {
        (void)profd_error_set(e, status,
                              "the server requires a token, or another one (HTTP status 401); "
                              "--token-file FILE names the file with it");
    } else if (http_status >= 502 && http_status <= 504) { /* a proxy's own answer */
        status = profd_error_set(e, PROFD_UNAVAILABLE,
                                 "the proxy answers with HTTP status %d: its daemon does not answer", http_status);
    } else {
        (void)profd_error_set(e, status, "the server answers with HTTP status %d", http_status);
    }
    json_decref(problem);
    return status;
}

enum profd_status ask_by(struct profd_conn *c, ask_request request, void *what, profd_sink sink, void *context,
                         struct profd_error *e)
{
    struct ask *a = calloc(1, sizeof *a);
    if (!a) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to ask");
    }
    a->sink = sink;
    a->context = context;
    enum profd_status status = request(c, what, answer_take, a, e);
    if (status == PROFD_OK && a->http_status >= 400) {
        status = problem_parse(a->problem, a->problem_size, a->http_status, e);
    }
    free(a);
    return status;
}

static enum profd_status target_query(struct profd_conn *c, void *target, profd_sink sink, void *context,
                                      struct profd_error *e)
{
    const struct ask_target *t = target;
    return profd_query(c, t->text, t->if_none_match, sink, context, e);
}

enum profd_status ask_run(struct profd_conn *c, const struct ask_target *t, profd_sink sink, void *context,
                          struct profd_error *e)
{
    struct ask_target target = *t;
    if (t->too_long) {
        return profd_error_set(e, PROFD_BAD_QUERY, "the query has more than %d bytes", ASK_TARGET_SIZE - 1);
    }
    enum profd_status status = ask_by(c, target_query, &target, sink, context, e);
    if (e && t->call && (status == PROFD_BAD_QUERY || status == PROFD_USAGE)) {
        sentence_name_options(t->call, e);
    }
    return status;
}

struct whole {
    char *bytes;
    size_t size, capacity, max;
    struct profd_answer answer;
};

static enum profd_status whole_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                    struct profd_error *e)
{
    struct whole *w = context;
    w->answer = *answer;
    if (n > w->max - w->size) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the answer has more than %zu bytes", w->max);
    }
    if (w->size + n + 1 > w->capacity) {
        size_t capacity = 2 * (w->size + n + 1);
        char *grown = realloc(w->bytes, capacity);
        if (!grown) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an answer of %zu bytes", w->size + n);
        }
        w->bytes = grown;
        w->capacity = capacity;
    }
    if (n > 0) {
        memcpy(w->bytes + w->size, bytes, n);
    }
    w->size += n;
    w->bytes[w->size] = '\0';
    return PROFD_OK;
}

enum profd_status ask_read_answer(struct profd_conn *c, const struct ask_target *t, size_t max, char **out,
                                  size_t *size, struct profd_answer *answer, struct profd_error *e)
{
    struct whole w = {.max = max};
    enum profd_status status = ask_run(c, t, whole_take, &w, e);
    if (status != PROFD_OK) {
        free(w.bytes);
        return status;
    }
    *out = w.bytes;
    *size = w.size;
    *answer = w.answer;
    return PROFD_OK;
}

enum profd_status ask_read(struct profd_conn *c, const struct ask_target *t, size_t max, char **out, size_t *size,
                           struct profd_error *e)
{
    struct profd_answer answer;
    return ask_read_answer(c, t, max, out, size, &answer, e);
}

enum profd_status ask_fetch(const struct profctl_call *call, const struct ask_target *t, size_t max, char **out,
                            size_t *size, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = ask_read(conn, t, max, out, size, e);
        profd_conn_close(conn);
    }
    return status;
}
