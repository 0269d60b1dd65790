/* One executable's parse in a process of its own: from three descriptors to an answer in the third. */
#ifndef PROFD_ELF_WORKER_H
#define PROFD_ELF_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_read.h"
#include "proto/limits.h"
#include "proto/status.h"

/* Descriptors of a worker; it has no others. */
enum { WORKER_EXECUTABLE = 3, WORKER_DEBUG = 4, WORKER_ANSWER = 5, WORKER_DESCRIPTORS = 6 };

#define WORKER_MAGIC 0x70726f66u

/* What a worker may take. */
struct worker_limits {
    uint64_t memory;       /* LIMIT_WORKER_MEMORY_MAX */
    uint64_t cpu_seconds;  /* before the sizes are known; then LIMIT_WORKER_CPU_SECONDS and so on */
    uint64_t answer_bytes; /* LIMIT_OBJECT_ANSWER */
    int headers_ms;        /* by the clock, until the headers were read; then 10 × the CPU seconds: cores are busy */
};

struct worker_job {
    bool has_debug;
    struct elf_read_options options;
    struct worker_limits limits;
    char left_out[256]; /* sentence for the note: why this is a second, lesser attempt; "" otherwise */
};

/* The answer's head; size bytes of the encoded object follow. Written by a process that may be owned by the file: every
 * field is checked by its reader. */
struct worker_answer {
    uint32_t magic, status, budget_seconds, done;
    uint64_t size;
    char sentence[512];
};

/* The function that a worker runs in the sandbox. The real one is worker_read; tests pass others to check the sandbox.
 * It returns no value: the result is the answer. */
typedef void worker_act(const struct worker_job *job);

/* Reads the executable and writes the answer. */
worker_act worker_read;

/* In a fresh child: arranges the descriptors, builds the walls, acts, exits. */
_Noreturn void worker_run(const struct worker_job *job, int executable, int debug, int answer, worker_act *act);

/* Writes an answer without an object. */
void worker_refuse(enum profd_status status, const char *sentence);

#endif
