#include <stdlib.h>

#include "store/memory.h"

static void close_memory(struct store *base)
{
    struct memory_store *s = memory_self(base);
    for (size_t i = 0; i < s->upload_count; i++) {
        memory_free_upload(&s->uploads[i]);
    }
    for (size_t i = 0; i < s->sender_count; i++) {
        free(s->senders[i]);
    }
    for (size_t i = 0; i < s->build_count; i++) {
        free(s->builds[i].name);
    }
    for (size_t i = 0; i < s->object_count; i++) {
        free(s->objects[i].encoded);
        free(s->objects[i].bounds);
    }
    for (size_t i = 0; i < s->object_sender_count; i++) {
        free(s->object_senders[i].note);
    }
    for (size_t i = 0; i < s->instance_count; i++) {
        free(s->instances[i].snapshot);
    }
    memory_relay_done(&s->relay);
    memory_centre_done(&s->centre);
    free(s->instances);
    free(s->uploads);
    free(s->senders);
    free(s->builds);
    free(s->objects);
    free(s->object_senders);
    free(s->users);
    free(s->readers);
    memory_remove_watch_rows(s);
    free(s);
}

#define MEMORY_VERB(name, parameters, arguments) .name = memory_##name,
static const struct store_ops memory_ops = {.close = close_memory, STORE_VERBS(MEMORY_VERB)};
#undef MEMORY_VERB

enum profd_status store_memory_open(struct store **out, struct profd_error *e)
{
    struct memory_store *s = calloc(1, sizeof *s);
    if (!s || !memory_centre_init(&s->centre)) {
        free(s);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the store");
    }
    s->base = (struct store){.ops = &memory_ops, .writable = true};
    *out = &s->base;
    return PROFD_OK;
}
