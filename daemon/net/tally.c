#include "net/conn_internal.h"

void tally_init(struct tally *t)
{
    hashmap_init(&t->of_uid, 0);
}

struct tally_entry *tally_open(struct tally *t, uint32_t uid)
{
    const struct tally_entry none = {.uid = uid};
    struct tally_entry *entry = hashmap_find(&t->of_uid, &uid, sizeof uid);

    if (!entry) {
        entry = hashmap_put(&t->of_uid, &uid, sizeof uid, &none, sizeof none);
        if (entry) {
            TAILQ_INIT(&entry->postponed);
        }
    }
    return entry;
}

void tally_release(struct tally *t, struct tally_entry *entry)
{
    if (!entry->connections && !entry->bytes && !entry->answers && !entry->queued) {
        hashmap_remove(&t->of_uid, entry);
    }
}

void tally_done(struct tally *t)
{
    hashmap_clear(&t->of_uid);
}
