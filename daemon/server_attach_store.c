/* Harvests on the writer's thread: one transaction for all that came together. */
#include <stdlib.h>

#include "server_attach.h"

static void server_attach_store_all(struct store *store, struct server_harvest *const *harvests,
                                    struct store_harvest *puts, enum store_harvest_outcome *outcomes, size_t n)
{
    struct profd_error e = {""};
    enum profd_status status;

    for (size_t i = 0; i < n; i++)
        puts[i] = harvests[i]->harvest.put;
    status = store_put_harvests(store, puts, n, outcomes, &e);
    for (size_t i = 0; i < n; i++) {
        harvests[i]->status = status;
        harvests[i]->outcome = status ? STORE_STALE : outcomes[i];
        harvests[i]->error = e;
    }
}

static size_t server_attach_gather(struct work_item *const *items, size_t n, struct server_harvest **out)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (((struct server_write *)(void *)items[i])->kind == SERVER_WRITE_HARVEST)
            out[count++] = (struct server_harvest *)(void *)items[i];
    return count;
}

void server_attach_store(struct store *store, struct work_item *const *items, size_t n)
{
    struct server_harvest **harvests = malloc(n * sizeof(struct server_harvest *));
    const size_t count = harvests ? server_attach_gather(items, n, harvests) : 0;
    struct store_harvest *puts = count ? malloc(count * sizeof *puts) : NULL;
    enum store_harvest_outcome *outcomes = count ? malloc(count * sizeof *outcomes) : NULL;

    if (puts && outcomes)
        server_attach_store_all(store, harvests, puts, outcomes, count);
    else if (!harvests || count)
        for (size_t i = 0; i < n; i++) {
            struct server_harvest *h = (struct server_harvest *)(void *)items[i];

            if (h->write.kind == SERVER_WRITE_HARVEST)
                h->status = profd_error_set(&h->error, PROFD_NO_MEMORY, "no memory for a batch of %zu harvests", n);
        }
    free(outcomes);
    free(puts);
    free(harvests);
}
