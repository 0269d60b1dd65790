/* Converts files of other tools to uploads. */
#ifndef PROFD_CLIENT_IMPORT_ANY_H
#define PROFD_CLIENT_IMPORT_ANY_H

#include <stddef.h>
#include <stdint.h>

#include "profd.h"

enum import_format { IMPORT_AUTO, IMPORT_GMON, IMPORT_PPROF, IMPORT_CALLGRIND, IMPORT_PERF };
#define IMPORT_FORMATS "auto|gmon|pprof|callgrind|perf" /* their names, in the same order */

/* Recognizes a format by the first bytes of a file. MALFORMED, with the list of known formats: it is none of them.
 * Pure. */
enum profd_status import_format_detect(const uint8_t *bytes, size_t n, enum import_format *out, struct profd_error *e);

/* Recognizes a file by its beginning. IMPORT_GMON must be read by the caller. NO_INPUT, IO, MALFORMED as above. */
enum profd_status import_any_detect(const char *path, enum import_format *out, struct profd_error *e);

/* The executables of the files that are imported: opened once, kept until the last upload has been sent. */
struct import_shelf {
    const char *root;               /* prefix of every path; NULL or "": none */
    const char *const *executables; /* locations of executables that are not at their paths, or have changed there */
    size_t executable_count;
    void (*found)(void *context,
                  const struct profd_executable *x); /* called once for each; x lives as long as the shelf */
    void *context;
    struct import_shelved *list;
    size_t count, capacity;
};

void import_shelf_done(struct import_shelf *s);

/* Counts that could not be placed or are uncertain, added up over profiles for the final message. */
struct import_notes {
    uint64_t ticks, outside_ticks; /* all ticks, and those in no build, which are left out */
    uint64_t calls, outside_calls; /* all calls, and those with an end outside all builds */
    uint64_t ambiguous; /* functions that cannot be distinguished from others of the same name; the first one got their
                           counts */
    uint64_t nameless;  /* functions that are not in the symbol table of their object */
    uint64_t left_out;  /* processes that ran entirely outside all builds: in the kernel */
    void (*say)(void *context,
                const char *sentence); /* called for each object that is not available; NULL: not reported */
    void *context;
};

struct import_request {
    enum import_format format; /* AUTO: by content */
    const char *event;         /* import the costs or samples of this event; NULL: the format's first event, or time */
    struct import_shelf *shelf;
    struct import_notes *notes;
    /* Takes ownership of u. process names its process if the file has several, otherwise "". */
    enum profd_status (*take)(void *context, struct profd_upload *u, const char *process, struct profd_error *e);
    void *context;
};

/* Reads the file ("-": standard input) and passes its uploads to take: one, or one for each process in the output of
 * perf. Processes that cannot be placed are reported to notes->say and left out. If it fails, the sentence begins with
 * the path. */
enum profd_status import_any_file(const struct import_request *r, const char *path, struct profd_error *e);

#endif
