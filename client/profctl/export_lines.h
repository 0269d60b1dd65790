/* Exports get the source lines of their addresses, from executables on this machine. */
#ifndef PROFD_CLIENT_EXPORT_LINES_H
#define PROFD_CLIENT_EXPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/status.h"

/* Formats with lines that can be filled in; format may be NULL. */
bool export_lines_has(const char *format);
/* Writes an export of the daemon to out, with lines. given: an executable that the user named, perhaps; may be NULL. A
 * build without a file on this machine stays as it is. NO_MEMORY; MALFORMED if the daemon's answer is not of that
 * format. */
enum profd_status export_lines_fill(const char *format, const char *given, char *body, size_t size, FILE *out,
                                    struct profd_error *e);

#endif
