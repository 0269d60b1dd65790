/* State of the parser of callgrind.out. Private to import_callgrind*.c. */
#ifndef PROFD_CLIENT_IMPORT_CALLGRIND_INTERNAL_H
#define PROFD_CLIENT_IMPORT_CALLGRIND_INTERNAL_H

#include "import/import_callgrind.h"
#include "import/import_scan.h"

enum callgrind_names { CALLGRIND_OBJECT, CALLGRIND_FILE, CALLGRIND_FUNCTION };
enum callgrind_pending { CALLGRIND_NOTHING, CALLGRIND_CALL, CALLGRIND_JUMP };

/* "(12) name": the meaning of a number in one kind of names. */
struct callgrind_id {
    enum callgrind_names kind;
    uint64_t number;
    const char *text;
};

struct import_callgrind {
    struct import_profile profile;
    struct import_texts texts;
    struct callgrind_id *ids;
    uint32_t id_count, id_capacity;
    struct table id_table;
    const char *wanted;       /* event, or NULL */
    const char *event;        /* the imported event; NULL before "events:" */
    uint32_t column;          /* of its cost */
    bool instructions, lines; /* subpositions at the beginning of lines */
    uint64_t instruction;     /* of the last cost line; "+n" and "*" refer to it */
    uint64_t line;
    const char *object, *file, *function; /* NULL before the first; file: source of the code, also of inlined code */
    const char *function_file;            /* where the function is */
    const char *called_object, *called_file, *called_function; /* NULL: as the caller's */
    enum callgrind_pending pending;                            /* to which the next cost line belongs */
    uint64_t calls, target;
    uint64_t pid, part, thread; /* of the current header; 0: not stated */
    uint64_t *pids;             /* processes with a first part, each once */
    uint32_t pid_count, pid_capacity;
    struct table pid_table;
    bool part_seen;
    bool counted;            /* the file states how many processes it is of */
    bool waiting;            /* time is elapsed time */
    uint32_t tick_rate;      /* ticks a second that every part so far says its ns are made of; 0: not stated */
    uint32_t part_tick_rate; /* of the current header */
};

/* A line "key: value". */
enum profd_status callgrind_take_header(struct import_callgrind *c, const struct import_scan *key,
                                        struct import_scan *value, uint64_t number, struct profd_error *e);

#endif
