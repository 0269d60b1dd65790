/* Exports get the source lines of their addresses, from executables on this machine. */
#ifndef PROFD_CLIENT_EXPORT_LINES_H
#define PROFD_CLIENT_EXPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profctl/code_lines.h"
#include "proto/status.h"

/* Executables of an export, by the numbers that it gives to builds. */
struct export_objects {
    const char *given; /* a file that the user named: it may be one of them */
    struct export_object {
        char *path, *build_id; /* NULL: not stated */
        struct code_lines *lines;
        bool sought;
    } * list;
    size_t count;
};

void export_objects_done(struct export_objects *o);
#define EXPORT_OBJECTS_MOST 65536u

/* Each writes an export of the daemon to out, with the lines of the objects. body is NUL-terminated. NO_MEMORY;
 * MALFORMED if body is not of the format. */
enum profd_status export_callgrind_fill(struct export_objects *o, char *body, FILE *out, struct profd_error *e);
enum profd_status export_pprof_fill(struct export_objects *o, const uint8_t *body, size_t size, FILE *out,
                                    struct profd_error *e);

/* Formats with lines that can be filled in; format may be NULL. */
bool export_lines_has(const char *format);
/* Writes an export of the daemon to out, with lines. given: an executable that the user named, perhaps; may be NULL. A
 * build without a file on this machine stays as it is. NO_MEMORY; MALFORMED if the daemon's answer is not of that
 * format. */
enum profd_status export_lines_fill(const char *format, const char *given, char *body, size_t size, FILE *out,
                                    struct profd_error *e);

#endif
