/* ADMIN pause and resume. Processes are selected by process id, by labels or by a prefix of their instance. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "live/live_internal.h"
#include "proto/hex.h"
#include "proto/noun.h"

static bool control_has_label(const struct live_process *a, const struct live_selector *r)
{
    const size_t n = a->summary ? a->summary->values.label_count : 0;

    for (size_t i = 0; i < n; i++) {
        const struct label_row *l = &a->summary->labels[i];

        if (strlen(l->name) == r->name_size && !memcmp(l->name, r->text, r->name_size)) {
            return !strcmp(l->value, r->value);
        }
    }
    return !*r->value; /* an absent label equals "" */
}

static bool control_has_prefix(const struct live_process *a, const char *prefix)
{
    char text[2 * ATTACH_INSTANCE_SIZE + 1];

    hex_put(text, a->instance, ATTACH_INSTANCE_SIZE);
    return !strncmp(text, prefix, strlen(prefix));
}

static bool control_is_meant(const struct live_process *a, const struct live_selection *selection)
{
    bool named = false, named_any = false;

    for (size_t i = 0; i < selection->selector_count; i++) {
        const struct live_selector *r = &selection->selectors[i];

        if (r->kind == LIVE_LABEL) {
            if (!control_has_label(a, r)) {
                return false;
            }
            continue;
        }
        named_any = true;
        named |= r->kind == LIVE_PID ? a->origin.pid == r->pid : control_has_prefix(a, r->text);
    }
    return named || !named_any;
}

/* A description of the selection, for messages. */
static void control_say(const struct live_selection *selection, char *out, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < selection->selector_count && at + 1 < size; i++) {
        const struct live_selector *r = &selection->selectors[i];
        const char *kind = r->kind == LIVE_PID ? "process " : r->kind == LIVE_INSTANCE ? "instance " : "label ";
        const int n = snprintf(out + at, size - at, "%s%s%.60s", i ? ", " : "", kind, r->text);

        at += n > 0 ? (size_t)n : 0;
    }
}

/* A prefix must select one process, so that a typing error cannot stop others. */
static enum profd_status control_judge_prefixes(struct live *l, bool all, uint32_t uid,
                                                const struct live_selection *selection, struct profd_error *e)
{
    for (size_t i = 0; i < selection->selector_count; i++) {
        const struct live_selector *r = &selection->selectors[i];
        const struct live_process *a;
        size_t n = 0;

        if (r->kind != LIVE_INSTANCE) {
            continue;
        }
        LIST_FOREACH(a, &l->processes, all)
        {
            n += (all || a->uid == uid) && !a->dead && control_has_prefix(a, r->text);
        }
        if (n > 1) {
            return profd_error_set(e, PROFD_AMBIGUOUS, "%zu live processes have an instance that begins with %s", n,
                                   r->text);
        }
    }
    return PROFD_OK;
}

enum profd_status live_control(struct live *l, const struct peer *peer, const struct live_selection *selection,
                               int64_t now, struct arena *a, struct process_row **rows, size_t *n,
                               struct profd_error *e)
{
    enum profd_status status = control_judge_prefixes(l, peer->may_admin, peer->uid, selection, e);
    struct process_row *found = status ? NULL : ARENA_ARRAY(a, l->count + 1, struct process_row);
    struct live_process *p;
    char words[400] = "";
    size_t count = 0;

    if (status) {
        return status;
    }
    control_say(selection, words, sizeof words);
    if (!found) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
    }
    LIST_FOREACH(p, &l->processes, all)
    {
        if ((!peer->may_admin && p->uid != peer->uid) || p->dead || !p->page || !control_is_meant(p, selection)) {
            continue;
        }
        const bool pause = selection->pause;

        page_write(p->page, pause, selection->has_rate ? selection->rate : p->page->rate);
        if (!list_copy_row(p, now, a, &found[count++])) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of %zu processes", l->count);
        }
    }
    if (!count) {
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "no live process%s matches %s; `profctl ps` lists the live processes",
                               peer->may_admin ? "" : " of yours", words);
    }
    log_write(LOG_LEVEL_NOTICE, "administration", "user %u: %s of %zu %s (%s)", peer->uid,
              selection->pause ? "pause" : "resume", count, noun_for(count, "process", "processes"), words);
    *rows = found;
    *n = count;
    return PROFD_OK;
}
