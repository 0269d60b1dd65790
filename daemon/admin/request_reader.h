/* Parses the arguments of reader-add and reader-remove, and names of tenants. Pure. */
#ifndef PROFD_ADMIN_REQUEST_READER_H
#define PROFD_ADMIN_REQUEST_READER_H

#include "store/store.h"

/* NAME, role, tenants with commas or "all", seconds ("0": for ever), "token" or "proxy". USAGE names the rule. *lasts:
 * ns, 0 for ever. */
enum profd_status request_parse_reader(const char *const arguments[5], struct store_reader *out, int64_t *lasts,
                                       struct profd_error *e);
/* A name: 1 to STORE_NAME_MOST letters, digits, ".", "_", "-" and "@". USAGE: what it is not; what says of which. */
enum profd_status request_parse_name(const char *what, const char *text, size_t n, char out[STORE_NAME_MOST + 1],
                                     struct profd_error *e);
/* A name of a tenant, which is not "all". */
enum profd_status request_parse_tenant(const char *text, size_t n, char out[STORE_NAME_MOST + 1],
                                       struct profd_error *e);

#endif
