/* ADMIN pause and resume: a word to live processes, who may have been chosen by number, by labels or by instance. */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "server_attach.h"

static bool server_attach_has_label(const struct server_attached *a, const struct request_selector *r)
{
    const size_t n = a->facts ? a->facts->facts.label_count : 0;

    for (size_t i = 0; i < n; i++) {
        const struct label_row *l = &a->facts->labels[i];

        if (strlen(l->name) == r->name_size && !memcmp(l->name, r->text, r->name_size))
            return !strcmp(l->value, r->value);
    }
    return !*r->value; /* an absent label equals "" */
}

static bool server_attach_has_prefix(const struct server_attached *a, const char *prefix)
{
    char text[2 * ATTACH_INSTANCE_SIZE + 1];

    for (size_t i = 0; i < ATTACH_INSTANCE_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", a->instance[i]);
    return !strncmp(text, prefix, strlen(prefix));
}

static bool server_attach_is_meant(const struct server_attached *a, const struct request *request)
{
    bool named = false, named_any = false;

    for (size_t i = 0; i < request->selector_count; i++) {
        const struct request_selector *r = &request->selectors[i];

        if (r->kind == REQUEST_LABEL) {
            if (!server_attach_has_label(a, r))
                return false;
            continue;
        }
        named_any = true;
        named |= r->kind == REQUEST_PID ? a->origin.pid == r->pid : server_attach_has_prefix(a, r->text);
    }
    return named || !named_any;
}

/* What was looked for, in words. */
static void server_attach_say(const struct request *request, char *out, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < request->selector_count && at + 1 < size; i++) {
        const struct request_selector *r = &request->selectors[i];
        const char *kind = r->kind == REQUEST_PID ? "process " : r->kind == REQUEST_INSTANCE ? "instance " : "label ";
        const int n = snprintf(out + at, size - at, "%s%s%.60s", i ? ", " : "", kind, r->text);

        at += n > 0 ? (size_t)n : 0;
    }
}

/* A prefix is to name one process: who mistypes must not stop others. */
static enum profd_status server_attach_judge_prefixes(struct server *s, bool all, uint32_t uid,
                                                      const struct request *request, struct profd_error *e)
{
    for (size_t i = 0; i < request->selector_count; i++) {
        const struct request_selector *r = &request->selectors[i];
        size_t n = 0;

        if (r->kind != REQUEST_INSTANCE)
            continue;
        for (size_t b = 0; b < SERVER_ATTACH_BUCKETS; b++)
            for (const struct server_attached *a = s->attach->buckets[b]; a; a = a->next)
                n += (all || a->uid == uid) && !a->dead && server_attach_has_prefix(a, r->text);
        if (n > 1)
            return profd_error_set(e, PROFD_AMBIGUOUS, "%zu attached processes have an instance that begins with %s", n,
                                   r->text);
    }
    return PROFD_OK;
}

static void server_attach_switch_one(struct server_attached *a, const struct request *request)
{
    const bool pause = request->verb == REQUEST_PAUSE;

    server_attach_page_write(a->page, pause, request->has_rate ? request->rate : a->page->rate);
}

enum profd_status server_attach_switch(struct server *s, const struct peer *peer, const struct request *request,
                                       struct server_page *page, struct profd_error *e)
{
    const char *verb = request->verb == REQUEST_PAUSE ? "pause" : "resume";
    const int64_t now = server_clock();
    enum profd_status status = server_attach_judge_prefixes(s, peer->may_admin, peer->uid, request, e);
    char words[400] = "";
    size_t n = 0;

    if (status)
        return status;
    server_attach_say(request, words, sizeof words);
    server_page_init(page, 200, "application/json; charset=utf-8");
    page->body.limit = SERVER_ATTACH_PAGE_MAX;
    buffer_add_text(&page->body, "{\"rows\":[");
    for (size_t b = 0; b < SERVER_ATTACH_BUCKETS; b++)
        for (struct server_attached *a = s->attach->buckets[b]; a; a = a->next) {
            if ((!peer->may_admin && a->uid != peer->uid) || a->dead || !a->page || !server_attach_is_meant(a, request))
                continue;
            server_attach_switch_one(a, request);
            if (n++)
                buffer_add_char(&page->body, ',');
            server_attach_add_json(a, now, &page->body);
        }
    buffer_add_text(&page->body, "],\"next\":null}\n");
    if (n) {
        log_write(LOG_LEVEL_NOTICE, "administration", "user %u: %s of %zu processes (%s)", peer->uid, verb, n, words);
        return PROFD_OK;
    }
    buffer_done(&page->body);
    return profd_error_set(e, PROFD_NOT_FOUND, "no attached process%s is %s", peer->may_admin ? "" : " of yours",
                           words);
}
