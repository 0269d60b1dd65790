/* Executables are read in a sandboxed worker process, one for each executable. A broker process forks the workers; it
 * was itself forked before the database was opened, so a worker inherits no secret. If a worker crashes or exceeds a
 * limit, the caller gets an error. */
#ifndef PROFD_ELF_BROKER_H
#define PROFD_ELF_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct broker;

#define BROKER_NAME "profd-elf" /* argv[0] of a restarted broker */

/* Forks a broker process, which reads one executable at a time. Call it before any thread, database or secret exists.
 */
enum profd_status broker_start(struct broker **out, struct profd_error *e);

/* Runs a broker that broker_restart has started, and exits: main calls it if argv[0] is BROKER_NAME. */
_Noreturn void broker_main(void);

struct broker_file {
    int executable, debug; /* descriptors, which stay the caller's; debug −1: none */
    uint64_t memory;       /* bytes that the worker may use, at most LIMIT_WORKER_MEMORY_MAX */
    bool instructions;     /* the object has them, too, if they are not too many */
};

/* Reads one executable. Blocks until the worker has answered or was killed; one thread may call it at a time. On OK
 * *answer is a new block, which the caller frees, in the encoding of core/object.h. It is NOT validated: the file may
 * control the worker. Otherwise: REFUSED (the worker states why the file cannot be read: not ELF, not a regular file,
 * shorter than before…), LIMIT (the worker was stopped because of its time, memory or size), INTERNAL (the worker
 * failed or was killed, and the sentence states by what; or the broker ended after it took the request), NO_MEMORY (of
 * the caller), BUSY (the broker ended before it took the request and is not restarted yet). No other status is
 * possible, whatever the worker writes. */
enum profd_status broker_read_object(struct broker *b, const struct broker_file *file, uint8_t **answer, size_t *size,
                                     struct profd_error *e);

/* True if the broker runs, so a request would be answered. Any thread. */
bool broker_is_ready(const struct broker *b);
/* The next three functions are for one thread, which may differ from that of broker_read_object. */
/* A descriptor that becomes readable when the broker's process ends; −1: none. Valid until broker_restart. */
int broker_get_handle(const struct broker *b);
/* True if the broker's process has ended; *why states how. */
bool broker_has_ended(struct broker *b, struct profd_error *why);
/* Executes this program again as a broker, so that it inherits nothing of the threads, database and secrets that exist
 * now. Only after broker_has_ended. */
enum profd_status broker_restart(struct broker *b, struct profd_error *e);

/* Ends the broker and waits for it. Accepts NULL. */
void broker_stop(struct broker *b);

#endif
