#include "query/row.h"

static void free_counts(void *c)
{
    counts_done(c);
}

enum profd_status row_open_counts(const struct store_row *row, struct arena *a, struct row_counts *c,
                                  struct profd_error *e)
{
    *c = (struct row_counts){.arena = a};
    enum profd_status status = counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c->counts, e);
    if (status == PROFD_OK) {
        arena_defer(a, &c->deferred, free_counts, &c->counts);
        return PROFD_OK;
    }
    /* The row's number counts the uploads of all users: it is not for every reader. profctl verify names the row. */
    return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "a stored upload cannot be read");
}

void row_close_counts(struct row_counts *c)
{
    arena_undefer(c->arena, &c->deferred);
}
