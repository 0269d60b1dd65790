/* Samples processes from outside: rings of the kernel, files and their unwind tables, processes, and sums of samples.
 * Private to client/record. */
#ifndef PROFD_CLIENT_RECORD_INTERNAL_H
#define PROFD_CLIENT_RECORD_INTERNAL_H

#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "client/collect/frame_entry.h"
#include "core/arena.h"
#include "core/row_table.h"
#include "profd.h"
#include "proto/buildid.h"
#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/status.h"

/* Fields of the kernel's text files. */

/* Reads a number of that base (16: with or without 0x) at *at, perhaps behind spaces, and moves *at behind it. Returns
 * false, and changes nothing, if there is none. */
static inline bool scan_number(const char **at, int base, uint64_t *out)
{
    char *end;
    const unsigned long long n = strtoull(*at, &end, base);
    if (end == *at) {
        return false;
    }
    *at = end;
    *out = n;
    return true;
}

/* Moves *at behind the character c. Returns false if another character is there. */
static inline bool scan_skip(const char **at, char c)
{
    if (**at != c) {
        return false;
    }
    ++*at;
    return true;
}

/* Copies the word at *at, perhaps behind spaces, and moves *at behind it. Returns false if there is none or if it does
 * not fit. */
static inline bool scan_word(const char **at, char *out, size_t size)
{
    const char *p = *at;
    size_t n = 0;
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    while (p[n] && p[n] != ' ' && p[n] != '\t' && p[n] != '\n' && n < size) {
        out[n] = p[n];
        n++;
    }
    if (n == 0 || n == size) {
        return false;
    }
    out[n] = '\0';
    *at = p + n;
    return true;
}

/* Records of the kernel's ring buffers, decoded. Pure. */

#define EVENT_ID_MAX 20 /* bytes of a build-id that the kernel reports */

/* All events record EVENT_ALL, those of samples also EVENT_SAMPLES. Every other record ends with pid, tid and time. */
#define EVENT_ALL (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define EVENT_SAMPLES (PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN)
#define EVENT_STACKS (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct event {
    uint32_t type; /* PERF_RECORD_…; the members below are those of MMAP2, COMM, FORK, EXIT, LOST and SAMPLE */
    uint16_t misc;
    uint32_t pid, tid, parent, parent_tid;
    uint64_t time; /* ns of CLOCK_MONOTONIC */
    uint64_t lost; /* records */
    /* MMAP2 */
    uint64_t start, size, offset;
    const char *path;
    uint8_t id[EVENT_ID_MAX];
    uint8_t id_size; /* 0: the record has no build-id, but the numbers of the file */
    uint32_t major, minor;
    uint64_t inode, generation;
    /* COMM */
    const char *comm;
    /* SAMPLE */
    const uint64_t *chain; /* innermost first, with PERF_CONTEXT_… before each part */
    uint64_t chain_count;
    const uint64_t *registers; /* in the order of the bits of attr.sample_regs_user; NULL: none */
    const uint8_t *stack;      /* a copy of the user stack, from the stack pointer upwards */
    uint64_t stack_size;
};

/* Decodes a record of an event with EVENT_ALL, of samples also with EVENT_SAMPLES and, if registers is not 0,
 * EVENT_STACKS; registers is the number of recorded registers. Pointers point into the record. False if the record
 * contradicts its size. O(1). */
bool event_decode(const struct perf_event_header *h, unsigned registers, struct event *out);

/* The kernel's events: opened on every CPU, and their records in the order of time. */

struct sampler;

struct sampler_config {
    uint32_t rate;      /* ticks per second of CPU time */
    bool kernel;        /* chains contain the kernel's frames */
    uint64_t registers; /* of the user, as in attr.sample_regs_user; 0: neither these nor stacks */
    bool tables;        /* copies of the user's stacks instead of the user's chains; else only of their ends */
    int cgroup;         /* a directory of the cgroup file system, −1: none */
    uint32_t pid;       /* sample only this process and what it starts; 0: everything */
    bool on_exec;       /* with pid: begin when it calls execve */
};

/* Opens the events, which are not enabled yet. With a pid, every process of the host is sampled if the user may do
 * that, because a process that is shorter than a tick would otherwise never have one. Then *whole is set, and the
 * caller selects. FORBIDDEN: the user may not sample; the sentence says what to do. UNAVAILABLE: the kernel has no such
 * events. */
enum profd_status sampler_open(const struct sampler_config *config, struct sampler **out, bool *whole,
                               struct profd_error *e);
/* Accepts NULL. */
void sampler_close(struct sampler *s);
/* Returns whether the kernel's time is sampled, too. perf_event_paranoid may forbid it. */
bool sampler_sees_kernel(const struct sampler *s);

/* First call: begins to record events of processes. Second call, with samples set: begins to sample. What the caller
 * reads about processes between the two calls is older than every sample. */
enum profd_status sampler_start(struct sampler *s, bool samples, struct profd_error *e);
void sampler_stop(struct sampler *s);

/* Returns the descriptors that become readable when a ring is half full. */
uint32_t sampler_get_polls(const struct sampler *s, struct pollfd *out, uint32_t most);
/* Passes all records that are older than a few milliseconds, or all if everything is set, to each() in the order of
 * time. A record of samples that were lost has type PERF_RECORD_LOST; one of other records PERF_RECORD_LOST_SAMPLES. An
 * event's pointers live until each() returns. O(records · CPUs). */
void sampler_read(struct sampler *s, bool everything, void (*each)(void *context, const struct event *e),
                  void *context);

/* A compact table of an ELF object's unwind information: for each address, how to find the caller's frame. It is made
 * once for a build from .eh_frame and .debug_frame, so that no entry is interpreted while stacks are walked. Pure.
 *
 * It is made in the process that walks: the daemon has no use for it, and on its way through the daemon a table would
 * be bytes that another process claims. Instructions of the entries are executed by the collector's code. */

#define UNWIND_ROWS (8u << 20)            /* limit of rows of a table */
#define UNWIND_MEMORY ((size_t)128 << 20) /* limit of what making it takes */

enum unwind_machine { UNWIND_X86_64, UNWIND_AARCH64 };

/* CFA: the value of the stack pointer in the caller, before the call on x86-64. */
enum unwind_cfa {
    UNWIND_CFA_ABSENT, /* no function is there */
    UNWIND_CFA_NONE,   /* no information, or a rule that is not supported */
    UNWIND_CFA_SP,     /* stack pointer + cfa_offset */
    UNWIND_CFA_FP,     /* frame pointer (rbp, x29) + cfa_offset */
    UNWIND_CFA_AT_SP,  /* the word at stack pointer + cfa_offset, + cfa_more */
    UNWIND_CFA_AT_FP,  /* the word at frame pointer + cfa_offset, + cfa_more */
    UNWIND_CFA_PLT,    /* stack pointer + cfa_offset, + 8 if the lower four bits of the address are at least cfa_more */
};

/* Location of the caller's value of a register: a word in memory, or the register itself. */
enum unwind_place {
    UNWIND_LOST, /* no information, or a rule that is not supported */
    UNWIND_SAME,
    UNWIND_AT_CFA,
    UNWIND_AT_SP,
    UNWIND_AT_FP,
    UNWIND_OUTERMOST, /* of a return address: the function has no caller */
};

struct table_rule {
    int32_t cfa_offset, cfa_more;
    int32_t fp_offset, link_offset; /* of UNWIND_AT_… */
    uint8_t cfa;                    /* enum unwind_cfa */
    uint8_t fp, link;               /* enum unwind_place; link: of the return address */
    uint8_t is_signal;              /* 1: the caller was interrupted, so its address is no return address */
};

/* Valid from base + at to the next row. Rule 0: no function is there. */
struct unwind_row {
    uint32_t at, rule;
};

struct unwind_table {
    enum unwind_machine machine;
    uint64_t base; /* link-time address of the first row */
    uint32_t row_count, rule_count;
    const struct unwind_row *rows; /* ascending; the last has rule 0 */
    const struct table_rule *rules;
};

#define UNWIND_SECTION (64u << 20) /* limit of bytes of a section */

/* Bytes of a section and its link-time address; size 0: absent. */
struct unwind_section {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;
};

struct unwind_source {
    enum unwind_machine machine;
    struct unwind_section eh_frame, debug_frame;
};

/* Makes the table. Where both sections describe an address, .eh_frame counts. Entries that cannot be read and entries
 * more than 4 GiB behind the first are left out. The caller frees it. LIMIT: a section or the table is too large.
 * NO_MEMORY, also where UNWIND_MEMORY does not do. O(bytes + entries log entries). */
enum profd_status unwind_table_make(const struct unwind_source *in, struct unwind_table **out, struct profd_error *e);
/* Its bytes. */
size_t unwind_table_size(const struct unwind_table *t);
/* Accepts NULL. */
void unwind_table_free(struct unwind_table *t);

/* Returns the rule that is valid at a link-time address; NULL: no function is there. O(log rows). */
const struct table_rule *unwind_table_find(const struct unwind_table *t, uint64_t address);

/* Reads the sections of a file (by pread: its owner may truncate it) and makes the table as unwind_table_make. A file
 * without unwind information gets a table without rows. A vDSO is read from a sealed memfd. MALFORMED: not an ELF
 * executable or shared object, or damaged. REFUSED: not of x86-64 or AArch64. IO, LIMIT, NO_MEMORY. */
enum profd_status unwind_elf_read(int fd, struct unwind_table **out, struct profd_error *e);

/* Walks a thread's stack by unwind tables: from its registers and a copy of the top of its stack to return addresses.
 * Pure. */

#define UNWIND_RETURNS 127u /* most return addresses of a stack */

struct unwind_thread {
    enum unwind_machine machine;
    uint64_t pc, sp, fp;
    uint64_t link; /* AArch64: x30 */
    uint64_t base; /* address of the copied stack's first byte */
    const uint8_t *stack;
    size_t size;
};

/* The table of the object at an address of the process, and what to subtract from addresses to get link-time ones. */
struct unwind_object {
    const struct unwind_table *table;
    uint64_t bias;
};
/* Finds it. False: there is none. */
typedef bool unwind_find(void *context, uint64_t address, struct unwind_object *out);

enum unwind_end {
    UNWIND_COMPLETE, /* the outermost frame was reached */
    UNWIND_NO_TABLE, /* an address is in no object with a table */
    UNWIND_NO_ENTRY, /* the object's table has no function at an address */
    UNWIND_NO_RULE,  /* a rule that is not supported */
    UNWIND_SHORT,    /* the stack is larger than its copy */
    UNWIND_DEEP,     /* it has more than UNWIND_RETURNS frames */
    UNWIND_BROKEN,   /* the caller's frame does not lie above that of its callee */
};

/* A frame record is the saved frame pointer of the caller, followed by the return address. The records form a chain
 * that begins at the thread's frame pointer. Functions that keep no record are not in it. This says how far a walk by
 * tables came along that chain. */
struct unwind_records {
    uint32_t passed; /* records whose return address the walk found */
    bool next;       /* true: the next record belongs to the function at which the walk ended */
};

/* Sets *count return addresses as they are in the process (AArch64: without their signatures), that of the innermost
 * function first; returns holds UNWIND_RETURNS. What was found before an end other than UNWIND_COMPLETE is right as far
 * as it goes. A signal handler's frame is left like a call: the interrupted address is among the return addresses, and
 * interrupted, if not NULL, has a true at its index. records may be NULL. A function without a table is taken to keep a
 * record. O(frames · log rows). */
enum unwind_end unwind_walk(const struct unwind_thread *thread, unwind_find *find, void *context, uint64_t *returns,
                            bool *interrupted, uint32_t *count, struct unwind_records *records);

/* Returns whether, according to its rule, the function at an address keeps a frame record there. */
bool unwind_keeps_record(enum unwind_machine machine, const struct table_rule *r);

/* What was sampled of one program: ticks at addresses, and stacks. Pure. */

struct tally_bin;

struct ticks {
    struct arena *arena;
    struct table bin_table, build_table;
    struct tally_bin *bins;
    struct counts_stacks *stacks;
    uint32_t *builds; /* those that occur, the program first: an index here is a build's number in the counts */
    uint32_t rate, bin_count, build_count;     /* rows beyond the limits are not used */
    uint64_t counters[COLLECTOR_COUNTERS_MAX]; /* added by the caller */
};

/* An empty tally of that program, which has a number that the caller chose. rate: of the ticks. Its memory is the
 * arena's, which must not be reset before tally_done. */
enum profd_status tally_init(struct ticks *t, struct arena *a, uint32_t program, uint32_t rate, struct profd_error *e);
void tally_done(struct ticks *t);

/* Counts a tick: n frames, the outermost caller's return address first, the program counter last; n is 1 to
 * LIMIT_STACK_DEPTH. Their builds are numbers that the caller chose, or COUNTS_NOWHERE as counts.h has it; that of the
 * program counter is a build. A frame of a build beyond LIMIT_BUILDS is outside. False: no memory, or the program
 * counter's build is beyond that; nothing was counted. O(n). */
bool tally_add(struct ticks *t, const struct counts_frame *frames, uint32_t n);

/* [low, high) of a build's link-time addresses. */
struct tally_range {
    uint64_t low, high;
};
/* Makes the counts: histograms of bins of one byte of each build, the counters, and the stacks. ranges[i] is that of
 * t->builds[i]; every program counter must be in its range. O(n log n). */
enum profd_status tally_make_counts(const struct ticks *t, const struct tally_range *ranges, struct counts *out,
                                    struct profd_error *e);

/* Files of other processes, opened so that their owners cannot make us wait or lead us elsewhere. */

/* Checks that the functions below work. UNAVAILABLE: the kernel lacks a system call, or a filter forbids it. */
enum profd_status image_open_check(struct profd_error *e);

/* Opens a regular file for reading by its path in the root directory of a process, of this one if pid is 0. No part of
 * the path may be a symbolic link. Does not block. Returns −1 if there is no such file, if it is on a FUSE file system,
 * if it has more than LIMIT_OBJECT_BYTES, or if permission is missing. */
int image_open(uint32_t pid, const char *path, struct stat *st);

/* Opens a regular file of this user, in the same way. Returns −1 also if the file belongs to another user. */
int image_open_of_user(uint32_t pid, const char *path, uint32_t uid);

/* Returns false if the process has ended, so that files cannot be opened in its root directory. */
bool image_process_lives(uint32_t pid);

/* Opens a copy of this process's vDSO, which all 64-bit processes share. Returns −1 if there is none. */
int image_open_vdso(void);

/* The files that processes have mapped, and the builds that they are. A file is opened when a sample fell into it for
 * the first time, as its process sees it: through /proc/PID/root. Only ELF headers and notes are read. The vDSO, which
 * the kernel maps under the name IMAGE_VDSO, is a file, too. */

struct images;

#define IMAGE_NONE UINT32_MAX
#define IMAGE_VDSO "[vdso]"

/* The identity of a mapped file, as the kernel states it. */
struct image_key {
    const char *path; /* as the process sees it */
    const uint8_t *id;
    uint8_t id_size; /* 0: not known; then the numbers of the file identify it */
    uint32_t major, minor;
    uint64_t inode, generation;
};

enum profd_status images_new(struct images **out, struct profd_error *e);
/* Accepts NULL. */
void images_free(struct images *m);

/* Returns the number of a mapped file, the same for every process that has mapped it. IMAGE_NONE: no memory. O(path).
 */
uint32_t images_take_file(struct images *m, const struct image_key *key);
/* Returns whether a limit is reached or near: then the caller must forget everything and read it again. */
bool images_full(const struct images *m);
/* Returns whether the file has the name of the library that contains the collector. */
bool images_is_collector(const struct images *m, uint32_t file);

/* A process of this user that has mapped a file. If it has ended, the file is opened as elder sees it: the process that
 * it inherited its maps from, 0 after execve. */
struct image_user {
    uint32_t pid, elder, uid;
};

/* Returns the build of a file that a process has mapped, IMAGE_NONE if it is no readable ELF file or not the file that
 * was mapped. Opens the file at the first call, and again at later ones if no process was left that could show it. */
uint32_t images_find_build(struct images *m, uint32_t file, const struct image_user *user);
/* Returns whether the build of a file was found before. */
bool images_has_build(const struct images *m, uint32_t file);
/* Adds a build that is no mapped file. fd is its ELF file, which the images own from then on; its code is at [low,
 * high). IMAGE_NONE: no memory. */
uint32_t images_add_build(struct images *m, const struct buildid *id, const char *name, int fd, uint64_t low,
                          uint64_t high);
/* Adds a build whose id is not known yet. images_set_build must set it before it is used. IMAGE_NONE: no memory, or
 * there are too many. */
uint32_t images_reserve_build(struct images *m, const char *name);
/* Sets id, ELF file and code, at [0, size), of a reserved build of this user. Takes over fd. */
void images_set_build(struct images *m, uint32_t build, const struct buildid *id, int fd, uint64_t size, uint32_t uid);
#define IMAGE_RESERVED_MAX 64u
/* Returns the number of reserved builds. */
uint32_t images_reserved(const struct images *m);
/* Finds the user that a set-user-ID program runs as. The build of the file was found. Returns false for other files. */
bool images_find_setuid(const struct images *m, uint32_t file, uint32_t *uid);
/* Finds the link-time address of an offset in a file whose build was found. Returns false if nothing is loaded there.
 * O(segments). */
bool images_find_address(const struct images *m, uint32_t file, uint64_t offset, uint64_t *address);

/* Returns the unwind table of a file whose build was found, or NULL. */
const struct unwind_table *images_find_table(const struct images *m, uint32_t file);

const char *images_get_id(const struct images *m, uint32_t build);
const char *images_get_name(const struct images *m, uint32_t build);
/* Returns the range of a build's link-time addresses. */
struct tally_range images_get_range(const struct images *m, uint32_t build);

/* Opens the ELF file of a build for the daemon, and finds the user of the process that it was opened for. The caller
 * closes the descriptor. Returns −1 if the file cannot be opened any more. */
int images_open_build(const struct images *m, const char *id, uint32_t *uid, const char **name);
/* Closes files of builds that were not opened since the call before the previous one. */
void images_close_old(struct images *m);

/* The user, the name and the control group of a process. */

#define ORIGIN_COMM_SIZE 16
#define ORIGIN_CGROUP_SIZE 1025 /* LIMIT_LABEL_VALUE and NUL */
#define ORIGIN_CONTEXT_SIZE 2048

struct sum_origin {
    uint32_t uid; /* effective */
    char comm[ORIGIN_COMM_SIZE];
    char cgroup[ORIGIN_CGROUP_SIZE];   /* "/system.slice/redis.service"; "" if it is not known */
    char context[ORIGIN_CONTEXT_SIZE]; /* labels that it publishes: names and values, each with its NUL; then NULs */
    bool context_cut;                  /* there were more, or processes of this user do not answer */
};

/* Reads uid and cgroup of a process from /proc. Returns false, with *o unchanged, if the process has ended or
 * permission is missing. */
bool origin_read(uint32_t pid, struct sum_origin *o);
/* Reads the uid alone. */
bool origin_read_user(uint32_t pid, uint32_t *uid);
/* Reads the number that a process has in its own namespace. Returns false if it has ended. */
bool origin_read_inner_pid(uint32_t pid, uint32_t *inner);
/* Reads the kernel's name of a process. Returns false if it has ended. */
bool origin_read_comm(uint32_t pid, char comm[ORIGIN_COMM_SIZE]);

/* Returns whether a line of /proc/PID/maps is of a process context. */
bool context_is_mapping(const char *line);
/* Sets the labels that a process publishes at an address (0: none) of its memory, which may be hostile. uid of o is the
 * user of the process: after three processes of a user that did not answer, no more of this user's are read. */
void context_read(uint32_t pid, uint64_t address, struct sum_origin *o);
/* Calls ask in a child process, which is killed if it does not end in a second. Returns what ask did, or false, and
 * from then on always false if that happened several times, as *silent counts. ask makes system calls only. */
bool image_ask(bool (*ask)(void *context), void *context, unsigned *silent);

/* ELF files for code that is in no file: the kernel, its modules. They contain a build-id and symbols, and no code. */

struct synthetic_symbol {
    uint64_t address, size;
    const char *name;
};

/* Makes the file in a sealed memory of that name: n functions, code at [0, size), and the note with that build-id.
 * *fd is closed by the caller. NO_MEMORY, IO. O(n). */
enum profd_status synthetic_make(const char *name, const struct buildid *id, uint64_t size,
                                 const struct synthetic_symbol *symbols, uint32_t n, int *fd, struct profd_error *e);

/* Functions of generated code: programs that compile while they run write their addresses to /tmp/perf-PID.map, a line
 * "start size name" each, hexadecimal. The functions that samples found are a build of their own for each process: the
 * addresses in it are numbers that they get in the order of their first samples. */

struct jit; /* of one process */

/* The process that generated the code. */
struct jit_owner {
    uint32_t pid, uid;
    uint8_t key[LIMIT_PROCESS];
};

/* Sets build and address of the frame at an address of generated code. False: no function is known there. *j is NULL at
 * the first call. Reads the file again, from where it ended before, if the address is not known and the previous
 * reading was long before time, in ns. The file must be a regular one of the process's user, in the process's root
 * directory and under its number there; of a file that is too large, what comes late is not known. O(log functions),
 * without reading. */
bool jit_find(struct jit **j, struct images *images, const struct jit_owner *owner, uint64_t time, uint64_t address,
              struct counts_frame *out);
/* Completes the build with the functions that were found. Its id depends on them and on the process. O(functions). */
enum profd_status jit_finish(struct jit *j, struct images *images, const struct jit_owner *owner,
                             struct profd_error *e);
/* Accepts NULL. */
void jit_free(struct jit *j);

/* The kernel and its modules as builds: their code has no files, but names in /proc/kallsyms. */

/* The files in which the kernel describes itself. */
struct kernel_files {
    const char *notes;    /* "/sys/kernel/notes" */
    const char *symbols;  /* "/proc/kallsyms" */
    const char *modules;  /* "/proc/modules"; it may be absent */
    const char *sections; /* "/sys/module": NAME/notes/.note.gnu.build-id */
};

struct kernel;

/* Reads the files (NULL: the usual ones) and adds a build [kernel], and one [NAME] for each module that has a build-id;
 * addresses are relative to _text, or to the start of the module. FORBIDDEN: the addresses are hidden from this user,
 * and what to do. NO_INPUT, MALFORMED. O(symbols log symbols). */
enum profd_status kernel_open(const struct kernel_files *files, struct images *images, struct kernel **out,
                              struct profd_error *e);
/* Adds a build [kernel] of one function, which stands for all code of the kernel and its modules. Reads nothing. */
enum profd_status kernel_make_whole(struct images *images, struct kernel **out, struct profd_error *e);
/* Accepts NULL. */
void kernel_close(struct kernel *k);

/* Returns the build of the kernel itself. */
uint32_t kernel_get_build(const struct kernel *k);
/* Returns whether a build is the kernel or one of its modules. O(modules). */
bool kernel_has_build(const struct kernel *k, uint32_t build);
/* Sets build and address of the frame at an address of the kernel. The kernel of one function has address 0. The frame
 * is outside if neither the kernel nor a known module has code there. O(modules). */
void kernel_find_frame(const struct kernel *k, uint64_t address, struct counts_frame *out);

/* The processes that samples come from: their maps, their users, and their sums. */

/* Executable memory of a process: the file's bytes from offset are at [start, end). */
struct process_map {
    uint64_t start, end, offset;
    uint32_t file; /* of struct images */
};

struct sum;

struct process {
    LIST_ENTRY(process) link;
    uint32_t pid;
    uint32_t elder; /* the process that had its maps when it was forked; 0: after execve, or it was not seen to begin */
    bool wanted;    /* its samples are taken */
    bool ended;     /* the kernel reported the end of its first thread */
    bool looked;    /* in this interval */
    bool known;     /* origin is its own; else that of its parent */
    bool collected; /* it counts itself: the collector is in it */
    bool preloaded; /* it has mapped the library of the collector */
    bool in_kernel; /* it is a thread of the kernel, without a program */
    bool counted;   /* as a process of its program */
    uint32_t map_count, map_capacity;
    struct process_map *maps; /* ascending, apart from each other */
    uint32_t program;         /* the file of its main executable; IMAGE_NONE */
    struct sum_origin origin;
    uint64_t user_read; /* time of the event at which its user was read */
    uint64_t next_from; /* next_user is its user from then on; 0: no other was read */
    uint32_t next_user;
    bool has_key;
    uint8_t key[LIMIT_PROCESS]; /* of this process among all of this host */
    struct jit *jit;            /* NULL: no tick was in generated code */
    struct sum *sum;            /* where its samples go; NULL: to be found */
    /* CPU time in ns */
    bool cpu_read, cpu_begun, clocked; /* cpu_now, cpu_before is known; the process counts as one with CPU time */
    uint64_t cpu_now, cpu_before;
    uint64_t ticks_ns; /* of ticks in known objects since cpu_before */
};

struct processes;

/* Returns the build of a file that the process has mapped, as images_find_build. */
uint32_t process_find_build(struct images *images, const struct process *p, uint32_t file);

/* images outlives the processes. */
enum profd_status processes_new(struct images *images, struct processes **out, struct profd_error *e);
/* Accepts NULL. */
void processes_free(struct processes *t);

/* Reads all processes that exist, but this one, from /proc. NO_INPUT: there is no /proc. */
enum profd_status processes_read_all(struct processes *t, struct profd_error *e);
/* Copies `counted` and `wanted` of processes that still live from another table. O(processes). */
void processes_keep_counted(struct processes *t, struct processes *before);
/* Applies a record: MMAP2, COMM, FORK or EXIT. Returns false if out of memory. */
bool processes_apply(struct processes *t, const struct event *e);
/* Returns the process with this number, or NULL if it is not known. O(1). */
struct process *processes_find(const struct processes *t, uint32_t pid);
/* Returns the process with this number. An unknown one is read from /proc. NULL: no memory. O(1). */
struct process *processes_take(struct processes *t, uint32_t pid);
/* Reads user and cgroup of a process, and whether it has a collector, once in an interval. Reads the user again once a
 * second of time, the monotonic time of an event; a new user applies from the time of the reading on. A process that
 * ended before keeps the user of its parent. Returns whether the user changed in this interval. */
bool process_look(struct process *p, uint64_t time);
/* Returns the key of a process, which is constant while it lives and differs from that of every other living process.
 */
const uint8_t *process_get_key(struct process *p);
/* Returns the executable map of an address, or NULL. O(log maps). */
const struct process_map *process_find_map(const struct process *p, uint64_t address);
typedef void processes_act(void *context, struct process *p);
/* Passes every process to act. O(processes). */
void processes_each(struct processes *t, processes_act *act, void *context);
/* Passes the processes that have ended to act, and forgets them. O(processes). */
void processes_forget_ended(struct processes *t, processes_act *act, void *context);
/* Begins an interval: no process has a sum, and process_look reads all of them again. */
void processes_begin_interval(struct processes *t);

/* The samples of an interval: a tally for each program, user, name, cgroup and random group of processes
 * (schema/spread.md). Each becomes an upload. */

struct sum {
    STAILQ_ENTRY(sum) link;
    uint32_t program; /* a build */
    struct sum_origin origin;
    uint32_t group;             /* of its processes */
    uint8_t key[LIMIT_PROCESS]; /* of the first of them */
    struct ticks tally;
    uint32_t started; /* processes whose first sample is in it */
    bool lost;        /* samples of it were lost for want of memory */
};

struct sums {
    STAILQ_HEAD(sum_list, sum) list;
    struct arena *arena;
    uint32_t count, rate;
};

enum profd_status sums_init(struct sums *s, uint32_t rate, struct profd_error *e);
void sums_done(struct sums *s);
/* Finds or makes the sum of this program, origin and group. A new one gets a copy of key, of LIMIT_PROCESS bytes. NULL:
 * no memory. O(sums). */
struct sum *sums_take(struct sums *s, uint32_t program, const struct sum_origin *origin, uint32_t group,
                      const uint8_t *key);
/* Returns whether there is a sum of this program and origin, of any group. O(sums). */
bool sums_has(const struct sums *s, uint32_t program, const struct sum_origin *origin);
/* Adds samples that the kernel lost, of unknown programs, once to each program of a user. O(sums²). */
void sums_add_lost(struct sums *s, uint64_t samples);
/* Discards all. */
void sums_clear(struct sums *s);

/* ns since 1970 */
struct sums_window {
    uint64_t start, end;
};
/* Fills the upload of a sum: builds, counts and the labels host, comm, unit, container and cgroup. Labels that the
 * upload has already stay. */
enum profd_status sum_fill_upload(const struct sum *s, const struct images *images, const struct sums_window *w,
                                  struct profd_upload *u, struct profd_error *e);

/* CPU time of the sampled processes, as the kernel states it. It is added to the sums that have their ticks. */

/* Reads the CPU time of a process now, if it exists. */
void account_read(struct process *p);
/* Adds the time since the previous call to the process's sum; of a process that is gone, or whose time at the
 * previous call was not known, the ticks as those of unknown CPU time. account_read came before. */
void account_add(struct process *p);
/* The process calls execve: its program gets no time since the previous call, if a tick found it; otherwise the next
 * program gets it. */
void account_exec(struct process *p);
/* Discards the process's CPU time until now, as account_read found it. */
void account_begin(struct process *p);

/* A sample's call chain becomes frames of builds. */

struct sample_stack {
    struct counts_frame frames[LIMIT_STACK_DEPTH]; /* outermost first; the last is the program counter */
    uint32_t count;
};

/* Registers for the walk by unwind tables, as in attr.sample_regs_user. */
#if defined __x86_64__
#define STACK_REGISTERS (UINT64_C(1) << 6 | UINT64_C(1) << 7 | UINT64_C(1) << 8) /* BP, SP, IP */
#elif defined __aarch64__
#define STACK_REGISTERS (UINT64_C(15) << 29) /* X29, LR, SP, PC */
#else
#define STACK_REGISTERS 0 /* no unwind tables */
#endif

/* The frames of a sample: the user's, and above them those of the kernel: its functions, or one for all of it. The
 * user's are those of the chain, with the callers that it skips because functions at its end keep no frame pointer; or,
 * if the event has no chain of the user, those that the unwind tables find. Without any caller, with a caller that is
 * in no executable memory, with as many frames as the kernel records, or where a table is missing, the stack begins
 * with COUNTS_FRAME_INCOMPLETE: the outer frames are not known. False: there are no frames. O(frames · log maps). */
bool stack_find(struct images *images, const struct kernel *k, struct process *p, const struct event *e,
                struct sample_stack *out);

#endif
