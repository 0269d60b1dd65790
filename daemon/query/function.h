/* Functions by address or name, as several questions name them. */
#ifndef PROFD_QUERY_FUNCTION_H
#define PROFD_QUERY_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/report.h"
#include "proto/status.h"

/* "401230" or "0x401230". */
bool function_parse_address(const char *text, uint64_t *out);
/* Is it the function of that build in which the address lies? Its size is 0 where the next one bounds it. */
bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address);
/* A function of a report by the segment of a path: an address in the build, else a whole name, as shown or as in the
 * object. A text of hexadecimal digits is an address if a function is there. NOT_FOUND; AMBIGUOUS if several functions
 * of the build have the name. O(functions). */
enum profd_status function_find(const struct report *r, const char *id, const char *text, uint32_t *out,
                                struct profd_error *e);

#endif
