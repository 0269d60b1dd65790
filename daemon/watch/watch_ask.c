#include "watch/watch_ask.h"

#include <string.h>

#include "proto/limits.h"
#include "query/query.h"
#include "store/store.h"

void watch_ask_begin(struct buffer *target, const char *path)
{
    buffer_init(target, LIMIT_QUERY_BYTES + 1);
    buffer_add_text(target, path);
    buffer_add_char(target, '?');
}

static void add_encoded(struct buffer *target, const char *text, size_t n)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < n; i++) {
        if (strchr(plain, text[i]) != NULL) {
            buffer_add_char(target, text[i]);
        } else {
            buffer_add_format(target, "%%%02X", (unsigned)(unsigned char)text[i]);
        }
    }
}

void watch_ask_add(struct buffer *target, const char *name, const char *value)
{
    if (target->size > 0 && target->data[target->size - 1] != '?') {
        buffer_add_char(target, '&');
    }
    buffer_add_text(target, name);
    buffer_add_char(target, '=');
    add_encoded(target, value, strlen(value));
}

void watch_ask_add_labels(struct buffer *target, const struct watch *w)
{
    for (size_t i = 0; i < w->label_count; i++) {
        const size_t n = strcspn(w->labels[i], "=");
        buffer_add_text(target, target->size > 0 && target->data[target->size - 1] == '?' ? "label." : "&label.");
        add_encoded(target, w->labels[i], n);
        buffer_add_char(target, '=');
        add_encoded(target, w->labels[i] + n + 1, strlen(w->labels[i] + n + 1));
    }
}

void watch_ask_add_functions(struct buffer *target, const struct watch *w)
{
    for (size_t i = 0; i < w->function_count; i++) {
        watch_ask_add(target, "watch", w->functions[i]);
    }
}

enum profd_status watch_ask_send(const struct watch_ask *ask, struct buffer *target, json_t **out,
                                 struct profd_error *e)
{
    struct query_answer answer;
    struct query_request request = {.if_none_match = "", .scope = {.all = true}, .now = ask->now, .cache = ask->cache};
    buffer_add_char(target, '\0');
    if (target->failed) {
        buffer_done(target);
        return profd_error_set(e, PROFD_TOO_LARGE, "a watch is too long for one query");
    }
    request.target = target->data;
    query_run(ask->store, &request, &answer);
    enum profd_status status = answer.status;
    if (status != PROFD_OK) {
        *e = answer.why;
    } else {
        *out = json_loadb(answer.body.data, answer.body.size, 0, NULL);
        status = *out != NULL ? PROFD_OK : profd_no_memory(e);
    }
    query_answer_done(&answer);
    buffer_done(target);
    return status;
}

double watch_real(const json_t *object, const char *field)
{
    return json_number_value(json_object_get(object, field));
}

int64_t watch_integer(const json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

const char *watch_text(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text != NULL ? text : "";
}
