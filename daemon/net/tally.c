#include "net/tally.h"

#include <stdlib.h>

static struct tally_entry **tally_find(struct tally *t, uint32_t uid)
{
    struct tally_entry **at = &t->buckets[(uid * 2654435761u) >> 22];

    while (*at && (*at)->uid != uid)
        at = &(*at)->next;
    return at;
}

struct tally_entry *tally_open(struct tally *t, uint32_t uid)
{
    struct tally_entry **at = tally_find(t, uid);

    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (*at)
            (*at)->uid = uid;
    }
    return *at;
}

void tally_release(struct tally *t, struct tally_entry *entry)
{
    if (entry->connections || entry->bytes || entry->answers)
        return;
    *tally_find(t, entry->uid) = entry->next;
    free(entry);
}

void tally_done(struct tally *t)
{
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        struct tally_entry *entry = t->buckets[i], *next;

        for (; entry; entry = next) {
            next = entry->next;
            free(entry);
        }
        t->buckets[i] = NULL;
    }
}
