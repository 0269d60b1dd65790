#include "query/row.h"

enum profd_status row_decode_counts(const struct store_row *row, struct counts *c, struct profd_error *e)
{
    enum profd_status status = counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, c, e);
    if (status == PROFD_OK) {
        return PROFD_OK;
    }
    /* The row's number counts the uploads of all users: it is not for every reader. profctl verify names the row. */
    return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "a stored upload cannot be read");
}
