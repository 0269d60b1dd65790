#include "elf/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/object.h"
#include "elf/elf_dwarf.h"
#include "elf/elf_file.h"
#include "elf/sandbox.h"

#define WORKER_MEMORY "the memory limit of the worker was reached"

static bool write_at(uint64_t offset, const void *bytes, uint64_t size)
{
    const uint8_t *p = bytes;
    for (uint64_t done = 0; done < size;) {
        ssize_t n = pwrite(WORKER_ANSWER, p + done, (size_t)(size - done), (off_t)(offset + done));
        if (n <= 0) {
            return false;
        }
        done += (uint64_t)n;
    }
    return true;
}

void worker_refuse(enum profd_status status, const char *sentence)
{
    struct worker_answer a = {.magic = WORKER_MAGIC, .status = status, .done = 1};
    snprintf(a.sentence, sizeof a.sentence, "%s", sentence);
    write_at(0, &a, sizeof a);
}

/* Bytes of code, of symbols and of debug information, which determine the limits of time and memory. */
static void measure(const struct elf_file *f, uint64_t *text, uint64_t *symbols, uint64_t *debug)
{
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        uint64_t size = s->sh_type == SHT_NOBITS ? 0 : s->sh_size < f->size ? s->sh_size : f->size;
        if (s->sh_flags & SHF_EXECINSTR) {
            *text += size;
        } else if (s->sh_type == SHT_SYMTAB || s->sh_type == SHT_STRTAB || s->sh_type == SHT_DYNSYM) {
            *symbols += size;
        } else if (s->sh_type == SHT_PROGBITS && !(s->sh_flags & SHF_ALLOC)) {
            *debug += size;
        }
    }
}

/* Lowers the limits from the maximum for any file to those for this file, and reports them to the broker. */
static enum profd_status take_budget(const struct worker_job *job, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct elf_file *f;
    FAIL_IF(a == NULL, e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    uint64_t text = 0, symbols = 0, debug = 0;
    enum profd_status status = elf_file_open(WORKER_EXECUTABLE, a, &f, e);
    if (status == PROFD_OK) {
        measure(f, &text, &symbols, &debug);
        elf_file_close(f);
    }
    if (status == PROFD_OK && job->has_debug) {
        uint64_t other = 0;
        status = elf_file_open(WORKER_DEBUG, a, &f, e);
        if (status == PROFD_OK) {
            measure(f, &other, &symbols, &debug);
            elf_file_close(f);
        }
    }
    arena_free(a);
    if (status != PROFD_OK) {
        return status;
    }
    struct sandbox_limits l = {.memory = LIMIT_WORKER_MEMORY + 2 * (text + symbols) + debug,
                               .cpu_seconds =
                                   LIMIT_WORKER_CPU_SECONDS + (text >> 20) * LIMIT_WORKER_CPU_PER_MB_MS / 1000};
    if (l.cpu_seconds > job->limits.cpu_seconds) {
        l.cpu_seconds = job->limits.cpu_seconds;
    }
    sandbox_lower(&l);
    struct worker_answer head = {.magic = WORKER_MAGIC, .budget_seconds = (uint32_t)l.cpu_seconds};
    FAIL_IF(!write_at(0, &head, sizeof head), e, PROFD_INTERNAL, "the worker could not write its answer");
    return PROFD_OK;
}

/* Reads the object and writes it as the answer. */
static enum profd_status answer(const struct worker_job *job, struct arena *a, struct profd_error *e)
{
    struct object *o;
    TRY(elf_read(WORKER_EXECUTABLE, job->has_debug ? WORKER_DEBUG : -1, &job->options, a, &o, e));
    if (job->left_out[0] != '\0') {
        const char *note = arena_format(a, "%s%s%s", o->note, o->note[0] == '\0' ? "" : " ", job->left_out);
        o->note = note != NULL ? note : o->note;
    }
    uint8_t *bytes;
    size_t size;
    TRY(object_encode(o, &bytes, &size, e));
    struct worker_answer head = {.magic = WORKER_MAGIC, .status = PROFD_OK, .done = 1, .size = size};
    enum profd_status status = PROFD_OK;
    if (size > job->limits.answer_bytes - sizeof head) {
        status =
            profd_error_set(e, PROFD_LIMIT, "an object's description may have at most %llu bytes; this one has %zu",
                            (unsigned long long)job->limits.answer_bytes, size);
    } else if (!write_at(sizeof head, bytes, size) || !write_at(0, &head, sizeof head)) {
        status = profd_error_set(e, PROFD_INTERNAL, "the worker could not write its answer");
    }
    free(bytes);
    return status;
}

static void no_memory(void)
{
    worker_refuse(PROFD_LIMIT, WORKER_MEMORY);
    _exit(0);
}

void worker_read(const struct worker_job *job)
{
    struct profd_error e = {""};
    elf_dwarf_set_no_memory(no_memory);
    enum profd_status status = take_budget(job, &e);
    struct arena *a = arena_new(0);
    if (status == PROFD_OK) {
        status = a == NULL ? profd_error_set(&e, PROFD_NO_MEMORY, "out of memory for an object") : answer(job, a, &e);
    }
    arena_free(a);
    if (status == PROFD_NO_MEMORY) {
        status = profd_error_wrap(&e, PROFD_LIMIT, WORKER_MEMORY);
    }
    if (status != PROFD_OK) {
        worker_refuse(status, e.sentence);
    }
}

_Noreturn void worker_run(const struct worker_job *job, int executable, int debug, int answer_fd, worker_act *act)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "profd-worker", 0, 0, 0);

    /* A descriptor may have a number that the worker uses for another one, so that all are first copied out of the way.
     */
    const int e = fcntl(executable, F_DUPFD, 64), a = fcntl(answer_fd, F_DUPFD, 64);
    const int d = job->has_debug ? fcntl(debug, F_DUPFD, 64) : -1;
    if (e < 0 || a < 0 || (job->has_debug && d < 0) || dup2(e, WORKER_EXECUTABLE) < 0 || dup2(a, WORKER_ANSWER) < 0 ||
        (job->has_debug && dup2(d, WORKER_DEBUG) < 0)) {
        _exit(1);
    }
    if (!job->has_debug) {
        close(WORKER_DEBUG);
    }
    if (SANDBOX_POSSIBLE) {
        close(0);
        close(1);
        close(2);
    }
    const struct sandbox_limits most = {job->limits.memory, job->limits.cpu_seconds, job->limits.answer_bytes};
    struct profd_error why = {""};
    if (sandbox_enter(&most, WORKER_DESCRIPTORS, WORKER_ANSWER, &why) != PROFD_OK) {
        worker_refuse(PROFD_INTERNAL, why.sentence);
    } else {
        act(job);
    }
    _exit(0);
}
