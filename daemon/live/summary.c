/* A summary of each live process, which the loop can show while the process is being read. */
#include <stdlib.h>
#include <string.h>

#include "live/live_internal.h"

/* Puts a text behind the others. */
static const char *summary_put(char **at, const char *text)
{
    const size_t n = strlen(text) + 1;
    const char *place = memcpy(*at, text, n);

    *at += n;
    return place;
}

void summary_copy(struct live_process *a)
{
    struct attach_summary f;
    struct live_summary *copy;
    size_t size;
    char *at;

    attach_get_summary(a->process, &f);
    size =
        sizeof *copy + f.label_count * sizeof *copy->labels + strlen(f.build_id) + strlen(f.name) + strlen(f.why) + 3;
    for (size_t i = 0; i < f.label_count; i++) {
        size += strlen(f.labels[i].name) + strlen(f.labels[i].value) + 2;
    }
    copy = malloc(size);
    if (!copy) {
        return; /* the older summary stays */
    }
    copy->values = f;
    at = (char *)(copy->labels + f.label_count);
    copy->values.build_id = summary_put(&at, f.build_id);
    copy->values.name = summary_put(&at, f.name);
    copy->values.why = summary_put(&at, f.why);
    for (size_t i = 0; i < f.label_count; i++) {
        copy->labels[i].uploads = 0;
        copy->labels[i].name = summary_put(&at, f.labels[i].name);
        copy->labels[i].value = summary_put(&at, f.labels[i].value);
    }
    copy->values.labels = NULL;
    free(a->summary);
    a->summary = copy;
}
