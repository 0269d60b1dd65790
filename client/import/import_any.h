/* A file of another tool becomes uploads. */
#ifndef PROFD_CLIENT_IMPORT_ANY_H
#define PROFD_CLIENT_IMPORT_ANY_H

#include "import/import_place.h"

enum import_format { IMPORT_AUTO, IMPORT_GMON, IMPORT_PPROF, IMPORT_CALLGRIND, IMPORT_PERF };
#define IMPORT_FORMATS "auto|gmon|pprof|callgrind|perf" /* their names, in the same order */

/* By the first bytes of a file: MALFORMED, with words on what would be taken, if it is none of them. Pure. */
enum profd_status import_format_detect(const uint8_t *bytes, size_t n, enum import_format *out, struct profd_error *e);

/* What the file's beginning says; IMPORT_GMON is then the caller's. NO_INPUT, IO, and as above. */
enum profd_status import_any_detect(const char *path, enum import_format *out, struct profd_error *e);

struct import_request {
    enum import_format format; /* AUTO: by content */
    const char *event;         /* take the costs or samples of this event; NULL: the format's first, or time */
    struct import_shelf *shelf;
    struct import_notes *notes;
    /* Takes u over. process says of which one it is if the file is of several, else "". */
    enum profd_status (*take)(void *context, struct profd_upload *u, const char *process, struct profd_error *e);
    void *context;
};

/* Reads the file ("-": standard input) and hands over its uploads: one, but one for each process of perf's output,
 * where processes that cannot be placed are told to notes->say and left out. The sentence of a failure begins with the
 * path. */
enum profd_status import_any_file(const struct import_request *r, const char *path, struct profd_error *e);

#endif
