/* Executables on this machine that have the code of an export. */
#ifndef PROFD_CLIENT_EXPORT_OBJECTS_H
#define PROFD_CLIENT_EXPORT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The object of this number, below EXPORT_OBJECTS_MOST; NULL beyond it, and when memory is exhausted. */
struct export_object *export_objects_take(struct export_objects *o, uint64_t number);
/* Its lines; *lines NULL: there is no file of that build here, or it has no lines. NO_MEMORY. */
enum profd_status export_objects_find(struct export_objects *o, uint64_t number, struct code_lines **lines,
                                      struct profd_error *e);
void export_objects_done(struct export_objects *o);
#define EXPORT_OBJECTS_MOST 65536u

#endif
