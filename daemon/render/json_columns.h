/* The flat profile in columns (view=flat). Internal to render. */
#ifndef PROFD_RENDER_JSON_COLUMNS_H
#define PROFD_RENDER_JSON_COLUMNS_H

#include <stdint.h>

#include "core/buffer.h"
#include "core/report.h"

/* One object of equally long arrays; list holds n positions in functions. shorts: short names by position, null in the
 * column short_name where the name is short already; NULL: no such column. */
void json_add_columns(struct buffer *out, const struct report *report, const char *const *shorts, const uint32_t *list,
                      uint32_t n);

#endif
