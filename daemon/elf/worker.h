/* Reads one executable in a process of its own, which has three descriptors and writes its answer to the third. */
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

/* The limits of a worker, and the figures that broker_start sets. */
struct worker_limits {
    uint64_t memory;       /* LIMIT_WORKER_MEMORY_MAX */
    uint64_t cpu_seconds;  /* of any file; lowered by the file's size once its headers were read */
    uint64_t answer_bytes; /* LIMIT_OBJECT_ANSWER */
    int headers_ms;        /* by the clock, for the headers; then 10 × the CPU seconds, because cores may be busy */
};

struct worker_job {
    bool has_debug;
    struct elf_read_options options;
    struct worker_limits limits;
    char left_out[256]; /* a sentence for the object's note: what this second attempt leaves out; "" in the first */
};

/* The answer's head; size bytes of the encoded object follow. The file may control the process that writes it, so its
 * reader checks every field. */
struct worker_answer {
    uint32_t magic, status, budget_seconds, done;
    uint64_t size;
    char sentence[512];
};

/* The function that a worker runs in the sandbox. Its result is the answer that it writes. Tests pass functions of
 * their own to check the sandbox. */
typedef void worker_act(const struct worker_job *job);

/* The worker_act of profd: reads the executable and writes the answer. */
worker_act worker_read;

/* Runs in a new child process: moves the descriptors to their numbers, enters the sandbox, acts and exits. */
_Noreturn void worker_run(const struct worker_job *job, int executable, int debug, int answer, worker_act *act);

/* Writes an answer without an object. */
void worker_refuse(enum profd_status status, const char *sentence);

#endif
