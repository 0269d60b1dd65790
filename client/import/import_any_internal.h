/* Shared by the readers of the formats: text and input, the profile that each makes, and its place in builds. Private
 * to client/import. */
#ifndef PROFD_CLIENT_IMPORT_ANY_INTERNAL_H
#define PROFD_CLIENT_IMPORT_ANY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "core/symtab.h"
#include "core/row_table.h"
#include "import/import_any.h"
#include "lib/executable.h"
#include "proto/status.h"

/* Reads words and numbers from one line of text with any bytes. Pure. */

/* [at, end) is the rest of the line. */
struct import_scan {
    const char *at, *end;
};

static inline struct import_scan import_scan_of(const char *text, size_t n)
{
    return (struct import_scan){text, text + n};
}

static inline size_t import_scan_left(const struct import_scan *s)
{
    return (size_t)(s->end - s->at);
}

static inline void import_scan_blanks(struct import_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) {
        s->at++;
    }
}

/* Removes blanks at both ends. */
static inline void import_scan_trim(struct import_scan *s)
{
    import_scan_blanks(s);
    while (s->at < s->end && (s->end[-1] == ' ' || s->end[-1] == '\t')) {
        s->end--;
    }
}

static inline bool import_scan_is(const struct import_scan *s, const char *word)
{
    size_t n = strlen(word);
    return import_scan_left(s) == n && memcmp(s->at, word, n) == 0;
}

static inline bool import_scan_begins(const struct import_scan *s, const char *word)
{
    size_t n = strlen(word);
    return import_scan_left(s) >= n && memcmp(s->at, word, n) == 0;
}

/* Skips a word at the beginning; false if it is not there. */
static inline bool import_scan_skip(struct import_scan *s, const char *word)
{
    bool begins = import_scan_begins(s, word);
    s->at += begins ? strlen(word) : 0;
    return begins;
}

/* Reads the next word up to a blank, after blanks; empty at the end. */
static inline struct import_scan import_scan_word(struct import_scan *s)
{
    import_scan_blanks(s);
    struct import_scan word = {s->at, s->at};
    while (s->at < s->end && *s->at != ' ' && *s->at != '\t') {
        s->at++;
    }
    word.end = s->at;
    return word;
}

static inline bool import_scan_digit(char c, unsigned base, unsigned *digit)
{
    *digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                    : 99;
    return *digit < base;
}

/* Reads a number of that base at the beginning, with at least one digit. False, and nothing is read, if there is none
 * or it exceeds 64 bits. */
static inline bool import_scan_number(struct import_scan *s, unsigned base, uint64_t *out)
{
    const char *at = s->at;
    uint64_t value = 0;
    unsigned digit;
    for (; at < s->end && import_scan_digit(*at, base, &digit); at++) {
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    if (at == s->at) {
        return false;
    }
    s->at = at;
    *out = value;
    return true;
}

/* Likewise, hexadecimal after "0x". */
static inline bool import_scan_any_number(struct import_scan *s, uint64_t *out)
{
    if (import_scan_begins(s, "0x")) {
        struct import_scan rest = {s->at + 2, s->end};
        if (!import_scan_number(&rest, 16, out)) {
            return false;
        }
        s->at = rest.at;
        return true;
    }
    return import_scan_number(s, 10, out);
}

/* Length for printf's "%.*s": as much of the rest as fits into a sentence. */
static inline int import_scan_shown(const struct import_scan *s)
{
    size_t n = import_scan_left(s);
    return n > 60 ? 60 : (int)n;
}

/* Reads a file or standard input. The beginning can be inspected before the rest is read, by lines or completely. */

#define IMPORT_INPUT_PEEK ((size_t)64 << 10)
#define IMPORT_LINE_MAX ((size_t)1 << 20) /* bytes of a line, because names of C++ functions are long */

struct import_input {
    int fd;
    uint8_t *buffer; /* unread bytes: [at, have) */
    size_t capacity, at, have;
    bool ended;
    uint64_t size; /* of the file; 0 of a pipe */
    uint64_t time; /* modification time of the file, or now if it is not a file; ns since 1970 */
};

/* Opens path. "-" is standard input, which may be a pipe. NO_INPUT: cannot be opened; REFUSED: not a regular file. */
enum profd_status import_input_open(const char *path, struct import_input *in, struct profd_error *e);
void import_input_close(struct import_input *in);

/* Returns the first bytes, IMPORT_INPUT_PEEK or all that there are. They stay unread. IO. */
enum profd_status import_input_peek(struct import_input *in, const uint8_t **bytes, size_t *n, struct profd_error *e);

/* Calls each with every line, without its end ("\n" or "\r\n"), numbered from 1; any status but PROFD_OK ends it.
 * TOO_LARGE: a line exceeds IMPORT_LINE_MAX; IO. Memory O(line). */
typedef enum profd_status import_line(void *context, const char *line, size_t n, uint64_t number,
                                      struct profd_error *e);
enum profd_status import_input_each_line(struct import_input *in, import_line *each, void *context,
                                         struct profd_error *e);

/* Reads everything into a new block, which the caller frees, inflated if it is gzip. TOO_LARGE: above max bytes,
 * compressed or not; MALFORMED: damaged gzip. */
enum profd_status import_input_take_all(struct import_input *in, size_t max, uint8_t **bytes, size_t *n,
                                        struct profd_error *e);

/* The common result of all parsers: what another tool measured in one process, before addresses are assigned to builds.
 * Pure; everything lives in an arena with a boundary: without memory, that ends the parser. */

#define IMPORT_NONE UINT32_MAX
#define IMPORT_NO_OFFSET UINT64_MAX

/* Kinds of addresses of an object's frames. */
enum import_addressing {
    IMPORT_LINK_TIME, /* addresses of the build */
    IMPORT_IN_FILE,   /* offsets in its file */
    IMPORT_MOVED,     /* they differ from link-time addresses by whole pages, which the names of functions determine */
};

struct import_object {
    const char *path;     /* a text; never NULL */
    const char *build_id; /* as the file states it; NULL if it does not */
    enum import_addressing addressing;
    bool outside;       /* not a file: the kernel, generated code */
    uint64_t low, high; /* mapped range, in addresses of this kind; both 0 if unknown */
};

/* A place in the code. */
struct import_frame {
    const char *name, *file; /* texts; NULL if unknown */
    uint64_t address;        /* 0 without has_address */
    uint64_t offset;         /* offset of the address in the function of that name, or IMPORT_NO_OFFSET */
    uint32_t object;
    uint32_t has_address; /* 1 or 0; the end of what it is */
    uint64_t ticks;
};

/* Calls from one frame to another. from and to are numbers of frames. */
struct import_pair {
    uint32_t from, to;
    uint64_t calls;
};

/* A node of the tree of stacks, after its parent: a frame that the parent's called. */
struct import_node {
    uint32_t parent; /* IMPORT_NONE: the outermost frame that is known */
    uint32_t frame;  /* IMPORT_CUT: frames that are left out, only without a parent */
    uint32_t leaf;   /* 1: where the sample was taken, not a caller */
    uint64_t ticks;  /* of the stacks that end here */
};
#define IMPORT_CUT (UINT32_MAX - 1)

struct import_profile {
    struct arena *arena;
    const char *process; /* "main (12345)", for sentences; "": nothing to say */
    struct import_object *objects;
    struct import_frame *frames; /* in order of arrival, each once */
    struct import_pair *pairs;   /* the same */
    struct import_node *nodes;   /* the same; of ticks that frames have, too */
    uint32_t object_count, frame_count, pair_count, node_count;
    uint32_t object_capacity;
    const char **paths; /* of import_profile_take_object: of each object */
    struct table path_table, frame_table, pair_table, node_table;
    const char *program;     /* name of the program in the file, perhaps cut; "" if it has none */
    const char *program_id;  /* the program's build-id, NULL if unknown */
    uint32_t program_object; /* object of the program, or IMPORT_NONE if it must be determined by name */
    bool saturated;          /* a sum reached its end */
    bool whole_stacks;       /* they begin where all stacks of a thread do; else frames say so, or do not */
    bool sampled;            /* an export of profd: its calls were sampled, not counted */
    uint32_t reasons;        /* INEXACT_… bits that an upload may have */
    uint32_t processes;      /* processes that began with this profile; 0: it continues a process */
    char dimension[16], abbreviation;
    uint32_t rate;       /* ticks per unit of the dimension */
    uint64_t start, end; /* ns since 1970, 0 if unknown */
};

/* Sets the reasons for inexact counts that an export of profd names. A process that was live at the export had later
 * counts, which are not in it. */
void import_profile_set_reasons(struct import_profile *p, const char *text, size_t n);
/* Sets the number of processes that the file states, at most 2^32-1. */
void import_profile_set_processes(struct import_profile *p, uint64_t n);
/* Returns the text of n bytes, which may contain any byte but NUL, stored once: equal texts are equal pointers.
 * Expected O(n). */
const char *import_texts_take(struct set *t, const char *text, size_t n);

/* Initialises an empty profile of "seconds" with rate 1 in the arena. */
void import_profile_init(struct import_profile *p, struct arena *a);
/* Sets the dimension, of at most 15 bytes, and its first letter as abbreviation; 'I' for instructions. */
void import_profile_set_dimension(struct import_profile *p, const char *name, uint32_t rate);
/* Sets the dimension of an event that is no time (core/foreign_clock.h). */
void import_profile_set_event(struct import_profile *p, const char *name, size_t n);
/* Appends an object. A path that is "???" or "", or begins with '[' or "//", is not a
 * file: outside. */
struct import_object *import_profile_add_object(struct import_profile *p, const char *path);
/* Returns the number of the object with that path, which is a text; appended on first use. Do not use both functions on
 * one profile. Expected O(1). */
uint32_t import_profile_take_object(struct import_profile *p, const char *path);
/* Returns the number of the frame, created on first use; its ticks are unchanged. Expected O(1). */
uint32_t import_profile_take_frame(struct import_profile *p, const struct import_frame *key);
void import_profile_add_ticks(struct import_profile *p, uint32_t frame, uint64_t ticks);
/* Adds calls of a pair. Expected O(1). */
void import_profile_add_pair(struct import_profile *p, uint32_t from, uint32_t to, uint64_t calls);
/* Adds ticks of a stack of n frames, the leaf first; the last one may be IMPORT_CUT, if there are others. Frames beyond
 * LIMIT_STACK_DEPTH are left out. Nothing is added if there are no ticks or no frames. Expected O(n). */
void import_profile_add_stack(struct import_profile *p, const uint32_t *frames, uint32_t n, uint64_t ticks);
/* Sets the sentence for exhausted memory: NO_MEMORY, or LIMIT if the arena's own limit was reached. */
enum profd_status import_profile_exhausted(const struct arena *a, struct profd_error *e);

/* Parses callgrind.out ("Callgrind Format Specification" of Valgrind's manual), line by line. Pure. Call counts are
 * exact. Frames are functions, or instructions if the file was made with --dump-instr=yes. The cost of one event
 * becomes ticks: "instructions" for Ir, "seconds" for times (ns, us, ms, s), otherwise a dimension with the name of the
 * event. */

struct import_callgrind;

/* Creates a parser in the arena. event is the event to import; NULL: the first one. NO_MEMORY. */
enum profd_status import_callgrind_new(struct arena *a, const char *event, struct import_callgrind **out,
                                       struct profd_error *e);

/* Parses one line; its context is the parser. MALFORMED: not of the format, a number above 64 bits, or a cost before
 * "events:" or "fn=". REFUSED: a version other than 1, no such event, or parts with different events. LIMIT, NO_MEMORY.
 * Expected O(n). */
import_line import_callgrind_line;

/* Ends parsing. The profile lives as long as the arena. Functions without an object or a name that only call one other
 * function (slots of a PLT that callgrind did not recognize) are merged with their callers. MALFORMED: there was no
 * "events:". O(frames + pairs). */
enum profd_status import_callgrind_finish(struct import_callgrind *c, struct import_profile **out,
                                          struct profd_error *e);

/* Parses the text of perf script, line by line: its default output, with or without call chains, and every -F that
 * includes ip. Pure. The samples of one event become ticks, and their chains stacks. Clock events (cpu-clock,
 * task-clock) become seconds of their period, other events a dimension with their name. */

struct import_perf;

/* Creates a parser in the arena. event is a name without modifiers; NULL: the event of the first sample. NO_MEMORY. */
enum profd_status import_perf_new(struct arena *a, const char *event, struct import_perf **out, struct profd_error *e);

/* Parses one line; its context is the parser. MALFORMED: neither a sample, a location nor a comment; the sentence
 * quotes the line. LIMIT, NO_MEMORY. Expected O(n). */
import_line import_perf_line;

/* Ends parsing: *count processes with samples, in order of first appearance. end is the time of the last sample; the
 * length of the windows before it is that of the time stamps. MALFORMED: no samples. REFUSED: no samples of the event.
 */
enum profd_status import_perf_finish(struct import_perf *f, uint64_t end, uint32_t *count, struct profd_error *e);
const struct import_profile *import_perf_process(const struct import_perf *f, uint32_t index);

/* After finish: a sentence about what was left out and how threads were distinguished; "": nothing to report. */
const char *import_perf_words(const struct import_perf *f);

/* Splits one line of perf script's output. Pure. */

/* "comm pid/tid [cpu] time: period event:", optionally followed by a location. Missing parts are empty or 0. */
struct perf_heading {
    struct import_scan comm, event, place;
    bool has_pid, has_time, has_period;
    uint64_t pid, tid, period;
    uint64_t time; /* ns since some beginning */
};

/* "55d0c0de1234 main+0x1f (/usr/bin/x)" */
struct perf_place {
    uint64_t address, offset;
    bool has_offset;
    struct import_scan name, object; /* empty if there is none */
};

/* False if the line is not the first line of a sample. O(n · words of comm). */
bool perf_heading_parse(struct import_scan line, struct perf_heading *out);
/* False if the line is not a location, which begins with hexadecimal digits. */
bool perf_place_parse(struct import_scan line, struct perf_place *out);
/* The name of an event without its modifiers and its unit: "cycles" of "cycles:uppp" and of "cpu_core/cycles/". */
struct import_scan perf_event_name(struct import_scan event);

/* Parses profile.proto of github.com/google/pprof, inflated. Pure. The leaf of each sample gets its ticks. Each
 * adjacent pair of its stack gets as many sampled calls as there were samples; calls in exports of profd are exact.
 * Inlined lines of a location belong to the function at its address. */

/* Parses the profile into the arena. event is the sample type that becomes ticks; NULL: CPU time, otherwise samples and
 * their period, otherwise the default type. MALFORMED, with the offset of the byte: not protobuf, or a reference to a
 * message that does not exist. REFUSED: no samples, no such type, negative values (a difference of profiles), or no
 * location with an address (symbolized or generated code cannot be assigned to a build). LIMIT, NO_MEMORY. Expected
 * O(n). */
enum profd_status import_pprof_parse(const uint8_t *in, size_t n, const char *event, struct arena *a,
                                     struct import_profile **out, struct profd_error *e);

/* Function names and addresses of an executable or library that is available. */

struct import_binary;

/* Opens and reads the file; fails as profd_executable_open does. O(symbols log symbols). */
enum profd_status import_binary_open(const char *path, struct import_binary **out, struct profd_error *e);
/* Accepts NULL. */
void import_binary_free(struct import_binary *b);

const struct profd_executable *import_binary_executable(const struct import_binary *b);
/* Sets [*low, *high) to the range of its code. */
void import_binary_span(const struct import_binary *b, uint64_t *low, uint64_t *high);
/* True if the address is code. */
bool import_binary_holds(const struct import_binary *b, uint64_t address);
/* Returns the first address of the function that owns the address, or the address itself if no function owns it. */
uint64_t import_binary_entry(const struct import_binary *b, uint64_t address);
/* Sets the address at which an offset of the file is loaded; false if it is not loaded. */
bool import_binary_load(const struct import_binary *b, uint64_t offset, uint64_t *address);

struct import_function {
    uint64_t address, size; /* size: at least 1 */
    bool ambiguous;         /* other functions have the same name, and file does not distinguish them */
};
/* Finds the function that a tool calls by this name: its symbol or demangled name, optionally followed by a version
 * ("@@GLIBC_2.34"), a context ("f'main") or a depth ("f'2"); callgrind's "(below main)" and hexadecimal link-time
 * addresses; and the names in profd's exports: "[plt]", "[gap]", "f (a.c)" and "f (libx.so) [0x1234]". file (may be
 * NULL) is its source file. False if there is none. O(log symbols + functions of that name). */
bool import_binary_find(const struct import_binary *b, const char *name, const char *file, struct import_function *out);

/* Finds the binary of an object. First, one of the given executables with its build-id or file name. The first given
 * executable that matches no object of the profile by name is the program, unless the profile is one of several
 * processes. Otherwise, the file at its path. time: the profile's end, 0 if unknown. NO_INPUT: no such file.
 * WRONG_BUILD: it has another build-id, or, if no build-id is stated, it was written after the profile. Other statuses
 * as profd_executable_open. */
enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e);

/* Converts a profile of another tool to an upload: its frames get link-time addresses of builds. */

/* Creates the upload, with window, dimension and reasons; the caller adds labels and frees it. Ticks are in bins of one
 * byte over the code of their build. If counts of a build have no address in it, the upload is marked inexact. An
 * object that is not a file, or that has neither a build-id nor an available file, is outside all builds; if strict
 * is set, the second case refuses the profile. REFUSED: the program is unknown, or no counts are inside any build.
 * WRONG_BUILD: the program's file has less than half of the names and addresses of the profile, or none although its
 * build-id is right. NO_INPUT and others: the program's file cannot be read, as in import_shelf_find. If it fails,
 * nothing is created, but notes may have been changed. O(frames · log symbols + pairs). */
enum profd_status import_place_profile(struct import_shelf *shelf, const struct import_profile *p, bool strict,
                                       struct import_notes *notes, struct profd_upload **out, struct profd_error *e);

/* Returns the object that is the program: the one that the file names, the one with the program's name, or the one that
 * contains main. IMPORT_NONE if all are outside. */
uint32_t import_place_program(const struct import_profile *p);

#endif
