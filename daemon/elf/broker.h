/* Executables are read in a sandboxed worker process, one for each executable. A broker process forks the workers; it
 * was itself forked before the database was opened, so a worker inherits no secret. If a worker crashes or exceeds a
 * limit, the caller gets an error. */
#ifndef PROFD_ELF_BROKER_H
#define PROFD_ELF_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/worker.h"
#include "proto/status.h"

struct broker;

#define BROKER_NAME "profd-elf" /* argv[0] of a restarted broker */

/* Forks a broker process, which reads one executable at a time. Call it before any thread, database or secret exists.
 */
enum profd_status broker_start(struct broker **out, struct profd_error *e);
/* The same with another function and other limits of the workers, for tests. */
enum profd_status broker_start_with(struct broker **out, worker_act *act, const struct worker_limits *limits,
                                    struct profd_error *e);

/* Runs a broker that broker_restart has started, and exits: main calls it if argv[0] is BROKER_NAME. */
_Noreturn void broker_main(void);

struct broker_file {
    int executable, debug; /* descriptors, which stay the caller's; debug −1: none */
    uint64_t memory;       /* bytes that the worker may use, at most LIMIT_WORKER_MEMORY_MAX */
    bool instructions;     /* the object has them, too, if they are not too many */
};

/* Reads one executable. Blocks until the worker has answered or was killed; one thread may call it at a time. On OK
 * *answer is a new block, which the caller frees, in the encoding of core/object.h. It is NOT validated: the file may
 * control the worker. Fails with no other status than these, whatever the worker writes:
 *   REFUSED    the file cannot be read: not ELF, not a regular file, shorter than before …; the sentence says why
 *   LIMIT      the worker was stopped because of its time, memory or size
 *   INTERNAL   the worker failed or was killed, and the sentence says how; or the broker ended during the request
 *   NO_MEMORY  the caller's memory is exhausted
 *   BUSY       the broker ended before it took the request, and is not restarted yet */
enum profd_status broker_read_object(struct broker *b, const struct broker_file *file, uint8_t **answer, size_t *size,
                                     struct profd_error *e);

/* Returns whether the broker runs, so that a request would be answered. Any thread may call it. */
bool broker_is_ready(const struct broker *b);

/* The next three functions are for one thread, which may differ from that of broker_read_object. */

/* Returns a descriptor that becomes readable when the broker's process ends; −1: none. Valid until broker_restart. */
int broker_get_handle(const struct broker *b);
/* Returns whether the broker's process has ended; *why then states how. Kills a broker that only closed its socket. */
bool broker_has_ended(struct broker *b, struct profd_error *why);
/* Executes this program again as a broker, so that it inherits nothing of the threads, database and secrets that exist
 * now. Call it only after broker_has_ended returned true. INTERNAL if no process can be started. */
enum profd_status broker_restart(struct broker *b, struct profd_error *e);

/* Ends the broker and waits for it. Accepts NULL. */
void broker_stop(struct broker *b);

#endif
