/* Functions by address, as several questions name them. */
#ifndef PROFD_QUERY_FUNCTION_H
#define PROFD_QUERY_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/report.h"
#include "proto/status.h"

/* "401230" or "0x401230": BAD_QUERY otherwise. */
enum profd_status function_parse_address(const char *text, uint64_t *out, struct profd_error *e);
/* Is it the function of that build in which the address lies? Its size is 0 where the next one bounds it. */
bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address);
/* The position of the first that holds the address. NOT_FOUND. O(functions). */
enum profd_status function_find(const struct report *r, const char *id, uint64_t address, uint32_t *out,
                                struct profd_error *e);

#endif
