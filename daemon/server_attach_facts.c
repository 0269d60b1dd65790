/* What people ask about live processes: a copy for the loop, which answers while the process itself is being read. */
#include <stdlib.h>
#include <string.h>

#include "server_attach.h"

/* Puts a text behind the others. */
static const char *server_attach_put(char **at, const char *text)
{
    const size_t n = strlen(text) + 1;
    const char *place = memcpy(*at, text, n);

    *at += n;
    return place;
}

void server_attach_copy_facts(struct server_attached *a)
{
    struct attach_facts f;
    struct server_attach_facts *copy;
    size_t size;
    char *at;

    attach_get_facts(a->process, &f);
    size =
        sizeof *copy + f.label_count * sizeof *copy->labels + strlen(f.build_id) + strlen(f.name) + strlen(f.why) + 3;
    for (size_t i = 0; i < f.label_count; i++)
        size += strlen(f.labels[i].name) + strlen(f.labels[i].value) + 2;
    copy = malloc(size);
    if (!copy)
        return; /* the older facts stay */
    copy->facts = f;
    at = (char *)(copy->labels + f.label_count);
    copy->facts.build_id = server_attach_put(&at, f.build_id);
    copy->facts.name = server_attach_put(&at, f.name);
    copy->facts.why = server_attach_put(&at, f.why);
    for (size_t i = 0; i < f.label_count; i++) {
        copy->labels[i].uploads = 0;
        copy->labels[i].name = server_attach_put(&at, f.labels[i].name);
        copy->labels[i].value = server_attach_put(&at, f.labels[i].value);
    }
    copy->facts.labels = NULL;
    free(a->facts);
    a->facts = copy;
}

void server_attach_view(const struct server *s, struct metrics_view *v)
{
    const struct server_attach *t = s->attach;

    v->attached = t->count;
    v->kept = t->kept;
    v->harvest_pending = t->in_hand;
    for (size_t b = 0; b < SERVER_ATTACH_BUCKETS; b++)
        for (const struct server_attached *a = t->buckets[b]; a; a = a->next) {
            v->silent += !a->conn;
            v->paused += a->page && a->page->paused;
        }
}
