/* Formats of exports that get lines. */
#ifndef PROFD_CLIENT_EXPORT_FORMATS_H
#define PROFD_CLIENT_EXPORT_FORMATS_H

#include <stdint.h>
#include <stdio.h>

#include "profctl/export_objects.h"
#include "proto/status.h"

/* Each writes an export of the daemon to out, with the lines of the objects. body is NUL-terminated. NO_MEMORY;
 * MALFORMED if body is not of the format. */
enum profd_status export_callgrind_fill(struct export_objects *o, char *body, FILE *out, struct profd_error *e);
enum profd_status export_pprof_fill(struct export_objects *o, const uint8_t *body, size_t size, FILE *out,
                                    struct profd_error *e);

#endif
