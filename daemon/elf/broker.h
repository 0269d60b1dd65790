/* Executables are read in a sandboxed child, forked by a broker that was itself forked before the database was opened:
 * the child inherits nothing worth stealing, and a crash or a limit in it is a sentence. */
#ifndef PROFD_ELF_BROKER_H
#define PROFD_ELF_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct broker;

#define BROKER_NAME "profd-elf" /* argv[0] of a broker that was started again */

/* Forks a broker process, which reads one executable at a time. Call before any thread, database or secret exists. */
enum profd_status broker_start(struct broker **out, struct profd_error *e);

/* The whole program of a process that broker_restart has started: main calls it when argv[0] is BROKER_NAME. */
_Noreturn void broker_main(void);

/* One executable: a descriptor of it and, or −1, of its debug file. Descriptors stay the caller's. memory: bytes that
 * the worker may take, at most LIMIT_WORKER_MEMORY_MAX. Blocks until the worker has answered or was killed; may be
 * called from one thread at a time. On OK *answer is a new block (caller frees) in core/object.h's encoding, NOT
 * validated: the worker may be owned by the file. Otherwise: REFUSED (the worker says that the file cannot be read: no
 * ELF, not a regular file, shorter than it was…), LIMIT (the worker was stopped for its time, memory or size), INTERNAL
 * (the worker was killed otherwise, or failed; the sentence says by what), NO_MEMORY (the caller's), BUSY (the broker
 * has ended and was not started again yet). No other status is possible, whatever the worker writes. */
enum profd_status broker_read_object(struct broker *b, int executable, int debug, uint64_t memory, uint8_t **answer,
                                     size_t *size, struct profd_error *e);

/* Is a request to be answered at once, because the broker is there? Any thread. */
bool broker_is_ready(const struct broker *b);
/* These three are for one thread, which may be another than that of broker_read_object. */
/* Readable when the broker's process has ended; −1: unknown. Valid until broker_restart. */
int broker_get_handle(const struct broker *b);
/* True if the broker's process has ended and serves no request; *why says how. */
bool broker_has_ended(struct broker *b, struct profd_error *why);
/* Runs this program again as a broker, so that it inherits nothing from the threads, database and secrets that exist by
 * now. Only after broker_has_ended. */
enum profd_status broker_restart(struct broker *b, struct profd_error *e);

/* Ends the broker and waits for it. Accepts NULL. */
void broker_stop(struct broker *b);

#endif
