/* Shared by the verbs of profctl: the description of a verb and its arguments, and what they ask, find and print. */
#ifndef PROFD_CLIENT_PROFCTL_H
#define PROFD_CLIENT_PROFCTL_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "core/arena.h"
#include "profd.h"
#include "proto/sort.h"
#include "proto/status.h"

struct profctl_option {
    const char *name;     /* "since" of --since */
    char letter;          /* 'l' of -l; 0 if none */
    const char *argument; /* "T", or all its values as "self|total"; NULL if it takes none */
    const char *help;
};

struct profctl_given {
    const struct profctl_option *option;
    const char *value; /* "" for an option without argument */
};

struct profctl_call {
    const struct profctl_verb *verb;
    char *server; /* owned; NULL: the default */
    const char *token_file;
    const char *ca_file; /* NULL: the system's */
    bool json;
    struct profctl_given *given; /* the verb's own options, in order */
    size_t given_count;
    char **arguments;
    size_t argument_count;
    const struct profctl_row *verbs; /* all, in the order of the help */
    size_t verb_count;
    char build_id[160];  /* of an argument PROGRAM@LABEL=VALUE */
    int *exit_status;    /* set by a verb that succeeds with another exit status than 0 */
    struct arena *arena; /* memory until the end of the call; it never returns NULL, but ends the verb */
};

struct profctl_verb {
    const char *name, *arguments, *summary;
    const char *details; /* paragraphs for --help; "" if none */
    const struct profctl_option *options;
    size_t option_count;
    size_t arguments_least, arguments_most;
    bool has_command; /* the first argument that is not an option begins a command: its options are its own */
    bool is_local;    /* of the options that all verbs have, it takes only --socket and --help */
    /* Runs the verb; the status becomes the exit status. The sentence is in *e. */
    enum profd_status (*run)(const struct profctl_call *call, struct profd_error *e);
    /* Replaces run and all members above except name and summary: parses its arguments and reports errors itself.
     * Returns the exit status. program is the prefix of its messages. */
    int (*run_alone)(const char *program, int argc, char **argv);
};

/* A group of verbs in help, completion and profctl(1). */
struct profctl_group {
    const char *name, *title;
};

/* A row of the table of verbs. The verbs of a group are adjacent. */
struct profctl_row {
    const struct profctl_group *group;
    const struct profctl_verb *verb;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* The members of a verb for its table of options. */
#define OPTIONS(table) .options = (table), .option_count = COUNT(table)

extern const struct profctl_verb verb_upload, verb_symbols, verb_builds, verb_labels, verb_report, verb_export,
    verb_status, verb_health, verb_gprof, verb_delete, verb_verify, verb_backup, verb_top, verb_completion, verb_groups,
    verb_run_command, verb_record, verb_ps, verb_pause, verb_reload, verb_retention, verb_token, verb_hosts, verb_relay,
    verb_tier, verb_diff, verb_functions, verb_never_called, verb_cycles, verb_callers, verb_annotate;

/* The candidate that a mistyped word probably means; best is NULL if none is near enough. Begin with {.word = word}. */
struct nearest {
    const char *word, *best;
    size_t distance;
};
/* Takes the candidate if it is nearer than the best so far. O(length of the word x length of the candidate). */
void nearest_offer(struct nearest *n, const char *candidate);
/* Returns the last value of an option; NULL if it was not given. */
const char *profctl_value(const struct profctl_call *call, const char *option);
/* Returns the index of a word in a list such as "self|total|calls"; -1 if it is not there. */
int profctl_alternative(const char *list, const char *word);
/* Sets *out to the index of an option's value among its alternatives; 0 if it was not given. USAGE if it is none of
 * them. */
enum profd_status profctl_choose(const struct profctl_call *call, const char *option, size_t *out,
                                 struct profd_error *e);
enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };
/* Sets *out to the value of a verb's option "format", text|json|csv; FORMAT_JSON with --json. USAGE as for
 * profctl_choose. */
enum profd_status profctl_choose_format(const struct profctl_call *call, size_t *out, struct profd_error *e);
/* Writes the value of an option such as --expires, "90s", "30m", "1h" or "7d", as a number of seconds. Uses otherwise
 * if the option was not given. USAGE if the value has another form. */
enum profd_status profctl_duration(const struct profctl_call *call, const char *option, const char *otherwise,
                                   char out[24], struct profd_error *e);
/* Sets *out to the value of an option; unchanged if it was not given. USAGE if the value is not a number from least to
 * most; what stands for it in the sentence: "a number". */
enum profd_status profctl_number(const struct profctl_call *call, const char *option, const char *what,
                                 unsigned long least, unsigned long most, unsigned long *out, struct profd_error *e);
/* Prints the text on stdout as profctl_clean makes it, cut to size, which is at most 1024. */
void profctl_print(const char *text, size_t size);
/* Copies the text for one line of a terminal, cut to size. Control and bidirectional characters, and line breaks, are
 * escaped. */
void profctl_clean(const char *text, char *out, size_t size);
/* Prints "profctl: " and the sentence on stderr, escaped as profctl_clean does. */
void profctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns the connection options of this call. An answer may take answer_ms. */
struct profd_options profctl_options(const struct profctl_call *call, unsigned answer_ms);
/* Adds each value of the option "label" to the upload. USAGE if one is not NAME=VALUE; REFUSED if it breaks a rule of
 * labels. */
enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e);
/* Fails as labels_add would with an upload that has no labels yet. Called before anything is read or sent. */
enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e);

/* The command line of one verb, and its help. */

/* Moves options that stand before the verb behind it. USAGE if one is not an option of every verb. */
enum profd_status profctl_place_verb(int argc, char **argv, struct profd_error *e);
/* Parses argv[1...] after the verb, argv[0]. Sets *help if --help was given, and ignores the rest. USAGE names the
 * wrong argument. profctl_parse_done frees, after failure too. */
enum profd_status profctl_parse(const struct profctl_verb *verb, int argc, char **argv, struct profctl_call *call,
                                bool *help, struct profd_error *e);
/* Returns option i of a verb: its own come first, then those that all verbs have. NULL at the end. */
const struct profctl_option *profctl_option_at(const struct profctl_verb *v, size_t i);
void profctl_parse_done(struct profctl_call *call);
/* Prints usage, summary and every option of the verb on stdout. */
void profctl_print_help(const struct profctl_verb *verb);

/* Options that several verbs have. An argument in lower case is the list of its values, as "auto|always|never": help
 * shows it, completion offers it, and profctl_choose accepts nothing else. */

#define OPTION(...)                                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define OPTION_FORMAT OPTION("format", 'f', "text|json|csv", "output format (default text)")

#define OPTION_SINCE                                                                                                   \
    OPTION("since", 0, "T", "start of the time range: RFC 3339, a date, seconds since 1970, or now-1h, -30m, -7d")
#define OPTION_UNTIL OPTION("until", 0, "T", "end of the time range")
#define OPTION_LABEL OPTION("label", 'l', "K=V", "use only uploads with this label; may be repeated")
#define OPTION_MATCH                                                                                                   \
    OPTION("match", 'm', "MATCHER",                                                                                    \
           "use only uploads with a matching label: K=\"V\", K!=\"V\", K=~\"V\" or K!~\"V\"; may be repeated")
#define OPTION_SCOPE                                                                                                   \
    OPTION("scope", 0, "program|build|everywhere",                                                                     \
           "the program with all its builds, this build in it alone, or this build in all programs")
#define OPTION_DIMENSION                                                                                               \
    OPTION("dimension", 0, "D", "what the samples measure: seconds, cycles, … (default seconds if there are any)")
#define OPTION_TIME                                                                                                    \
    OPTION("time", 0, "best|measured|calls",                                                                           \
           "times of stacks, or by numbers of calls (default best: measured if 95 % of the ticks have stacks)")
#define OPTION_PARTIAL OPTION("partial", 0, NULL, "answer from the readable part if a part of the data cannot be read")
#define OPTION_UID OPTION("uid", 0, "UID", "use only uploads of this user")
/* Options that select what an answer is about. */
#define OPTIONS_SELECTION OPTION_SINCE, OPTION_UNTIL, OPTION_LABEL, OPTION_MATCH, OPTION_UID, OPTION_PARTIAL
#define OPTION_COLOR                                                                                                   \
    OPTION("color", 0, "auto|always|never", "colour the text (default auto: on a terminal, unless NO_COLOR is set)")
#define OPTION_VERBOSE                                                                                                 \
    OPTION("verbose", 'v', NULL, "print all lines of the heading (default: the usual ones, and those about faults)")
#define OPTION_NAMES                                                                                                   \
    OPTION("names", 0, "short|full", "short: C++ names without template arguments (default on a terminal)")
#define OPTION_WIDE OPTION("wide", 0, NULL, "do not shorten lines and names on a terminal")

/* Questions and commands to the daemon, and the objects and lists of its answers. */

#define ASK_TARGET_SIZE 4097
#define ASK_ANSWER_MS 120000

/* A path with parameters. If it becomes too long, ask_run and ask_read refuse it. */
struct ask_target {
    char text[ASK_TARGET_SIZE];
    size_t size;
    bool has_parameters, too_long;
    const struct profctl_call *call; /* with options that are parameters; NULL before ask_target_add_given */
    const char *if_none_match;       /* the ETag of an answer that is kept, or NULL */
};
/* Begins with a route of the daemon, in which {} is replaced by the percent-encoded name. name may be NULL if the route
 * has no {}. */
void ask_target_init(struct ask_target *t, const char *route, const char *name);
/* Begins with a route that has two of {}. */
void ask_target_init_two(struct ask_target *t, const char *route, const char *name, const char *second);
/* Appends name=value, percent-encoded; nothing if value is NULL. */
void ask_target_add(struct ask_target *t, const char *name, const char *value);
/* Appends the parameter "label.NAME", with that prefix, for a text NAME=VALUE. USAGE if the text has another form. */
enum profd_status ask_target_add_label(struct ask_target *t, const struct profctl_call *call, const char *prefix,
                                       const char *text, struct profd_error *e);
/* Appends the call's options: each -l, each --match and --by, and the last value of each option that is in names
 * ("a|b|c"). USAGE if a label is not NAME=VALUE. */
enum profd_status ask_target_add_given(struct ask_target *t, const struct profctl_call *call, const char *names,
                                       struct profd_error *e);

/* A request of libprofd, with its argument what. It gives the answer to sink. */
typedef enum profd_status (*ask_request)(struct profd_conn *c, void *what, profd_sink sink, void *context,
                                         struct profd_error *e);
/* Makes the request and gives the body of its answer to sink. An answer from HTTP status 400 on becomes a status and a
 * sentence instead. */
enum profd_status ask_by(struct profd_conn *c, ask_request request, void *what, profd_sink sink, void *context,
                         struct profd_error *e);
/* Runs a query in the same way. In a sentence about parameters it names the options of the call. */
enum profd_status ask_run(struct profd_conn *c, const struct ask_target *t, profd_sink sink, void *context,
                          struct profd_error *e);
/* Reads the whole body into a new NUL-terminated block. *answer gets the header of the answer; it may be NULL.
 * TOO_LARGE above max bytes. */
enum profd_status ask_read(struct profd_conn *c, const struct ask_target *t, size_t max, char **out, size_t *size,
                           struct profd_answer *answer, struct profd_error *e);

/* An answer that is a JSON object. It lives until answers_free, at the end of the run. */
struct answer {
    json_t *whole; /* of a list with several pages: the first page, with the rows of all */
    json_t *rows;  /* the rows of a list; part of whole */
    char *text;    /* the daemon's own bytes; NULL if several pages were joined */
    size_t size;
};

/* Asks for an object. MALFORMED if the answer is not an object. */
enum profd_status ask_object(struct profd_conn *c, const struct ask_target *t, struct answer *out,
                             struct profd_error *e);
/* Asks for a list, page by page. MALFORMED if a page has no rows. */
enum profd_status ask_rows(struct profd_conn *c, const struct ask_target *t, struct answer *out, struct profd_error *e);
/* Asks for all builds. */
enum profd_status ask_builds(struct profd_conn *c, struct answer *out, struct profd_error *e);
/* Asks for an object on a connection of its own, which waits ASK_ANSWER_MS for the answer. */
enum profd_status ask_fetch_object(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                   struct profd_error *e);
/* Asks for a list in the same way. */
enum profd_status ask_fetch_rows(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                 struct profd_error *e);
/* Sends an administrative command, and shows progress on a terminal; word says what is in progress, as "verifying". */
enum profd_status ask_admin(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                            const char *word, struct answer *out, struct profd_error *e);
/* Does the same. With --json it prints the answer and empties *out: whole is NULL. */
enum profd_status ask_admin_text(const struct profctl_call *call, const char *verb, const char *const *arguments,
                                 size_t n, const char *word, struct answer *out, struct profd_error *e);
/* Prints {"rows":[...]} with all rows on stdout: the daemon's own bytes if one page holds them. */
enum profd_status answer_print_json(const struct answer *a, struct profd_error *e);
/* Sorts the rows by a field: numbers descending or texts ascending. Stable. O(n log n). */
enum profd_status answer_sort(struct answer *a, const char *field, bool descending, struct profd_error *e);
/* Frees all answers. */
void answers_free(void);

/* Returns a text field of a row or another object; "" if it has none. It is fit for a terminal and lives as long as the
 * row. The functions below return 0 or false for a missing field. */
const char *row_text(json_t *row, const char *field);
/* Returns the text as it came, which is not fit for a terminal. */
const char *row_raw(const json_t *row, const char *field);
uint64_t row_number(const json_t *row, const char *field);
double row_real(const json_t *row, const char *field);
bool row_flag(const json_t *row, const char *field);
/* Returns whether the field is a number. */
bool row_has(const json_t *row, const char *field);
/* Returns the file name of a field that is a path. */
const char *row_base(json_t *row, const char *field);
/* Returns an object of strings as "name=value name=value". */
const char *row_pairs(json_t *row, const char *field);
/* Writes a list of strings as "one, two", cut to size. */
void row_join(const json_t *row, const char *field, char *out, size_t size);
/* Returns whether calls of this object are sampled, at least in part. Its numbers of calls then say how often ticks
 * found a callee below its caller, in programs that do not count. */
bool row_is_sampled(const json_t *row);

/* A number for json_pack's 'I'. JSON numbers above 2^63-1 do not exist here: such a sum has saturated. */
static inline json_int_t json_count(uint64_t n)
{
    return n > (uint64_t)INT64_MAX ? INT64_MAX : (json_int_t)n;
}
/* Prints the value on one line of stdout, and frees it. NO_MEMORY if it is NULL, as json_pack returns it. */
enum profd_status json_print(json_t *value, struct profd_error *e);

/* HTTP over TLS, by libcurl: what libprofd leaves to its user (profd_http of profd.h). */

/* A profd_http, by libcurl. The context is the name of a file with the certificates of CAs, or NULL for the system's.
 * The certificate and the name of the server are always checked; redirections are not followed. UNTRUSTED if the
 * certificate is not the server's. */
enum profd_status https_ask(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                            struct profd_error *e);

/* A body for https_post: gzip of protobuf. */
struct https_post {
    const char *ca_file; /* as the context of https_ask */
    const void *body;
    size_t size;
    char retry_after[32]; /* the header of the answer; "" if it has none */
};
/* A profd_http that sends a POST with that body; the context is a struct https_post. Otherwise as https_ask. */
enum profd_status https_post(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                             struct profd_error *e);

/* Sends the sum of the build of the call's first argument to a receiver of OTLP at http://127.0.0.1:PORT or
 * https://HOST. If the receiver is busy, it is asked again a few times. REFUSED if the receiver rejects profiles,
 * UNAVAILABLE if it stays busy. */
enum profd_status export_otlp(const struct profctl_call *call, const char *url, struct profd_error *e);

/* Debug files of builds, from debuginfod servers. Only verbs that are asked to use this: the daemon has no network. */

#define DEBUGINFOD_SIZE_MAX (512ul << 20) /* bytes of a file */

enum debuginfod_kind { DEBUGINFOD_DEBUG, DEBUGINFOD_EXECUTABLE, DEBUGINFOD_SOURCE };

struct debuginfod_file {
    const char *url; /* servers, separated by spaces; NULL: those of DEBUGINFOD_URLS */
    const char *build_id;
    enum debuginfod_kind kind;
    const char *source; /* absolute path of a SOURCE, as DWARF has it */
    unsigned seconds;   /* the download takes at most these and one more */
};

/* Downloads a file of a build, or finds it in the user's cache of libdebuginfod. *path is the name of the file in the
 * cache; the caller frees it. The content is not checked. USAGE without a server; NOT_FOUND if no server has it;
 * TIMEOUT, TOO_LARGE, UNAVAILABLE. */
enum profd_status debuginfod_fetch(const struct debuginfod_file *file, char **path, struct profd_error *e);

/* Sets *seconds to the value of --timeout; 120 if it is not given. USAGE. */
enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e);

/* Which build, side of a comparison and function a person means. */

/* Writes the build-id, or a prefix of it, that an argument means. A file stands for its own build. Otherwise it is the
 * program with this name, as profctl builds prints it; the command with this name, which may be a link; or the
 * beginning of a build-id. Asks the daemon for its builds unless the argument is a file or a whole build-id. AMBIGUOUS,
 * with a list, if several builds have the name; NOT_FOUND. */
enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[160],
                             struct profd_error *e);

/* Returns whether the file is that build. */
bool build_is_file(const char *path, const char *id);

#define SIDE_BUILD "PROGRAM|BUILD|EXE" /* a build, in the usage of a verb */

/* Replaces the argument PROGRAM@LABEL=VALUE of a verb with -l by the build-id, and adds -l LABEL=VALUE. Other arguments
 * stay, and so does the name of a file. Errors as of side_add. */
enum profd_status side_take(struct profctl_call *call, struct profd_error *e);

/* Appends one side of a comparison as parameter name ("a"), and its label as "a.label...". The argument is one of
 * build_find, or PROGRAM@LABEL=VALUE, which means the build of that name that has uploads with the label. AMBIGUOUS if
 * several have it; NOT_FOUND. */
enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e);

struct function_place {
    char name[256];     /* fit for a terminal */
    char build_id[160]; /* its own build's, which may be a library of the program */
    char address[24];   /* "0x401230" */
};

/* Finds the function that text names in a build's report, among the uploads that the call's options select: by its
 * name, its name in the symbol table, its name without parameters, or a part of these that only one function has; or by
 * its address, if text begins with 0x. NOT_FOUND; AMBIGUOUS, with some of them. */
enum profd_status function_find(const struct profctl_call *call, const char *build_id, const char *text,
                                struct function_place *out, struct profd_error *e);

/* Begins with the path of a function, which has {} for the build and for the address. */
void function_target_init(struct ask_target *target, const char *path, const char *build_id,
                          const struct function_place *place);

/* Prints why an answer's counts are not exact, as a line after the indentation; nothing if they are exact. */
void function_print_reasons(const json_t *answer, const char *indentation);

/* Prints the end of a heading line: "3 calls by others", or that no call was counted. Explains the mark of sampled
 * calls. */
void function_print_calls(const json_t *answer);

/* Times and amounts as people read them. */

/* Writes "12 s ago", "3 min ago", "5 h ago" or "2 d ago" for a time; both times are in seconds since 1970. */
void show_age(int64_t then, int64_t now, char *out, size_t size);
/* Returns the seconds since 1970 of "2026-11-21T15:48:00Z"; 0 if the text is not a time. */
int64_t show_time_of(const char *rfc3339);
/* Writes the age of such a text; "-" if it is not a time. */
void show_age_of(const char *rfc3339, int64_t now, char *out, size_t size);
/* Writes "812 B" or "1.4 MB". */
void show_bytes(uint64_t bytes, char *out, size_t size);
/* Writes two decimals, "12.34"; "<0.01" for a value above 0 that would read 0.00. */
void show_amount(double value, char *out, size_t size);
/* Writes a percentage of that many ticks, "80.94%"; with fewer than 1,000 ticks two significant digits, "81%". */
void show_percent(double percent, uint64_t ticks, char *out, size_t size);
/* Writes a number above 0 with that many significant digits, without an exponent: "7.6", "520". */
void show_rounded(double value, int digits, char *out, size_t size);
/* Writes a part of the whole, "4.74%"; "<0.001%" for less than that, but more than 0. */
void show_share(double part, char *out, size_t size);
/* Writes a fraction as a percentage, "+12.3%"; "0.00%" if it would read 0; from 9 on as a factor, "10x". */
void show_change(double change, char *out, size_t size);

/* Lists: one way from the daemon's rows to text, JSON and comma-separated values. */

#define LIST_CELL 224
#define LIST_COLUMNS_MOST 16
#define LIST_FIT 1000000 /* a width: as wide as its cells, up to LIST_FIT_MOST, aligned to the left */
#define LIST_FIT_MOST 40

struct list_column {
    const char *title;
    int width;         /* as printf's: negative is aligned to the left; 0 for the last column; or LIST_FIT */
    const char *field; /* member of the row */
    /* What the row shows of the member: text of the row, or out. NULL: the list's tail prints it. */
    const char *(*cell)(json_t *row, const char *field, char out[LIST_CELL]);
    bool cut; /* to its width */
};

/* The usual cells. */
const char *cell_text(json_t *row, const char *field, char out[LIST_CELL]);
const char *cell_base(json_t *row, const char *field, char out[LIST_CELL]); /* of a path its last part */
const char *cell_dash(json_t *row, const char *field, char out[LIST_CELL]); /* text; "-" for none */
const char *cell_number(json_t *row, const char *field, char out[LIST_CELL]);
const char *cell_amount(json_t *row, const char *field, char out[LIST_CELL]); /* show_amount */
const char *cell_yes(json_t *row, const char *field, char out[LIST_CELL]);    /* "yes" or "no" */
const char *cell_join(json_t *row, const char *field, char out[LIST_CELL]);   /* a list of texts */
/* A number of calls: "~12" if calls were sampled, not counted; "-" for a sampled 0. */
const char *cell_calls(json_t *row, const char *field, char out[LIST_CELL]);
/* The same for rows with a member calls_sampled; "-" for every 0. */
const char *cell_counted(json_t *row, const char *field, char out[LIST_CELL]);

/* Prints the titles, then a line for each row. tail prints the end of a line, after the last column; NULL: none. */
void list_print_table(json_t *rows, const struct list_column *columns, size_t n, void (*tail)(json_t *row));

/* Prints members of an object, separated by commas, as RFC 4180 has it. Texts are printed by csv_print_text, numbers
 * with all their digits, true and false as 1 and 0, a list of texts as one text with spaces; null and missing members
 * are empty. members has their names, separated by commas. */
void csv_print_row(const json_t *row, const char *members);
/* Prints the text in quotes, after a ' if a spreadsheet would read it as a formula: if it begins with = + - @ or '. */
void csv_print_text(const char *text);

struct list_view;
/* A list that a verb shows. */
struct list {
    const char *route;      /* with {} where the verb's first argument is a build */
    const char *limit;      /* rows of a page, or of the text where --limit is not given */
    bool limit_is_text;     /* JSON and CSV have all rows */
    bool is_one_page;       /* the rows after --limit stay with the daemon */
    const char *parameters; /* options that are parameters, "since|until" */
    const char *csv;        /* members of a row, which are the header, too */
    const struct list_column *columns;
    size_t column_count;
    const char *empty; /* printed instead of a table without rows; NULL: print the titles */
    void (*tail)(json_t *row);
    /* Functions that may be NULL. ask checks the options and adds parameters; prepare checks the rows and changes them
     * for the format; print prints the text instead of the table, and CSV if csv is NULL. */
    enum profd_status (*ask)(struct list_view *l, struct profd_error *e);
    enum profd_status (*prepare)(struct list_view *l, struct profd_error *e);
    void (*print)(struct list_view *l);
};

/* A list that is being shown. */
struct list_view {
    struct list list; /* a copy: ask and prepare may change it */
    const struct profctl_call *call;
    size_t format;
    struct ask_target target;
    struct answer answer;
};

/* Asks for the list, and prints it in the format of the call. */
enum profd_status list_run(const struct profctl_call *call, const struct list *list, struct profd_error *e);

/* Names are untrusted, and terminals obey control characters. */

/* A stream of text on its way to a terminal. Zeroed it is ready. */
struct terminal_filter {
    bool one_line;         /* newlines, tabs and form feeds are escaped, too */
    unsigned char held[4]; /* the beginning of a character that is not yet whole */
    size_t held_count;
};

/* Bytes that are enough for what n bytes become. */
#define TERMINAL_BOUND(n) (4 * ((n) + 4))

/* Copies n bytes to out, of TERMINAL_BOUND(n) bytes, as utf8_escape shows them. Unless one_line, newlines and tabs
 * stay, and form feeds, which begin the pages of gprof's listing, are left out. Returns the bytes written. n = 0 at the
 * end of the stream writes the held bytes. The result does not depend on how the stream is cut. O(n). */
size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out);

/* How text looks where a person reads it, colours and widths, and where it goes: a terminal, a pager, a pipe, or a file
 * that appears whole or not at all. */

struct look {
    bool terminal;       /* stdout is one */
    bool colour, shades; /* shades: 256 colours, else the basic ones */
    unsigned columns;    /* columns of a line; 0: lines are not cut */
    const char *dots;    /* replaces the part that was cut */
};

/* Chooses by --color and --wide, if the verb has them, NO_COLOR, TERM, COLORTERM, COLUMNS and the locale. USAGE if
 * --color is not auto, always or never. */
enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e);

/* Returns the parameter names= for a text: --names of the call; "short" for a terminal that shows UTF-8, without
 * --wide; otherwise NULL, which means full names. */
const char *look_names(const struct profctl_call *call, bool terminal);

/* Returns the escape sequence for a share of the total in percent; "" for small shares and without colours. The colours
 * are orange and blue, never red against green, and the line always states the number, too. */
const char *look_heat(const struct look *look, double percent);

enum paint_part { PAINT_HEADING, PAINT_FLAT, PAINT_GRAPH };

struct paint {
    const struct look *look;
    enum paint_part part;
    double total;       /* of the heading; 0 before */
    size_t name_column; /* where names begin; 0 before the header of a table */
    bool passing;       /* the rest of a line that is too long to be looked at */
    size_t size;
    char line[8192]; /* its beginning */
};

/* look must outlive the painter. */
void paint_init(struct paint *p, const struct look *look);
/* Takes text that the terminal's filter has passed, and writes whole lines. The result does not depend on how the text
 * is cut. O(n). */
void paint_run(struct paint *p, const char *text, size_t n, FILE *out);
/* Writes the line that is held. */
void paint_end(struct paint *p, FILE *out);

struct pager {
    pid_t pid; /* 0: none runs */
    FILE *stream;
    const char *command;
    struct sigaction interrupt, quit, pipe; /* what signals meant before */
};

/* Returns the command; NULL if there is to be no pager: an empty command, cat, no less, raised rights, or TERM=dumb. */
const char *pager_choose(void);

struct output {
    FILE *stream;
    char *path, *part; /* part is renamed to path at the end; both NULL on stdout */
    bool terminal;
    struct terminal_filter filter;
    struct paint *paint;       /* NULL: text goes out as it is */
    const char *pager_command; /* the pager, which is started before the first byte; NULL: none */
    struct pager pager;
    bool left; /* the reader has seen enough: writing failed for that, and it is no error */
};

/* Opens path, or stdout if it is NULL. An existing regular file is replaced at the end; a device or FIFO is written to
 * as it is. CANT_CREATE. */
enum profd_status output_open(const char *path, struct output *out, struct profd_error *e);
/* Sends stdout through paint (which outlives out; NULL: none) and to a pager (NULL: none). Before the first byte. */
void output_dress(struct output *out, struct paint *paint, const char *pager_command);
/* Writes n bytes. On a terminal control characters are replaced. IO if they cannot be written, or the reader has closed
 * the pipe (out->left). */
enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e);
/* Finishes the output. If keep is false, the file is removed. */
enum profd_status output_close(struct output *out, bool keep, struct profd_error *e);

/* One line on stderr that is written over while work goes on, if stderr is a terminal and the work takes a second. */

/* Zeroed it is ready. */
struct progress {
    bool began, shown;
    struct timespec start, last;
};

/* Shows "verifying [#####.....] 50 % 12 s": done of total, and the time that is left. detail is more text, or "". The
 * first call only starts the clock. */
void progress_show(struct progress *p, const char *word, uint64_t done, uint64_t total, const char *detail);
/* Clears the line. */
void progress_end(struct progress *p);
/* Clears the line of any progress, before something else is printed on stderr. */
void progress_clear(void);

/* A command that profctl starts: its signals and its exit status are passed on. */

#define COMMAND_PATH_SIZE 4096
/* Finds the file that execvp() runs for a name. False if there is none. */
bool command_find(const char *name, char out[COMMAND_PATH_SIZE]);

struct run_command {
    const char *verb, *name; /* for messages */
    pid_t child;
    int gate, report; /* pipes */
    int why;          /* errno of execvp; 0: it succeeded */
    sigset_t watched, before;
};

/* Creates the child, which waits for run_command_release. Signals to profctl are blocked until run_command_end. False,
 * with a complaint, if there is no process. */
bool run_command_start(struct run_command *c, const char *verb, char **argv);
/* Lets the child call execvp. False if that failed; run_command_end says so, after run_command_step. */
bool run_command_release(struct run_command *c);
/* Handles pending signals: those that were sent to profctl alone go to the command; a terminal sends its signals to the
 * command itself. If wait is set, waits for the next one first. Returns whether the command has ended; *status is then
 * its exit status, or 128 plus the signal that ended it. Its process exists until run_command_end. */
bool run_command_step(struct run_command *c, bool wait, int *status);
/* Restores the signals. Complains if the command did not run. Returns the exit status: status if it ran. */
int run_command_end(struct run_command *c, int status);
/* Instead of run_command_release: ends the child without execvp, and restores the signals. */
void run_command_abandon(struct run_command *c);

/* Starts the program words[0] of PATH with these words, at most 15, ended by NULL. Its standard input is the descriptor
 * input; with -1 it is empty, and there is no standard error. *from becomes a pipe with its standard output, which the
 * caller closes. Returns 0, or errno. */
int program_start(const char *const *words, int input, pid_t *pid, int *from);

/* Source lines of addresses, with what was inlined there, from an executable's debug information. */

#define CODE_LINES_DEPTH 64 /* calls that inlining removed above one instruction; inner ones are left out */

/* A position in a function: that of the instruction, or of the call that was replaced by the frame before. Texts live
 * as long as the lines. */
struct code_frame {
    const char *function; /* as linkers know it; "" if unknown */
    const char *file;     /* the whole path; "" if unknown */
    unsigned line;        /* 0 if unknown */
    unsigned discriminator;
    unsigned first_line; /* of the function */
};

struct code_lines;

/* Opens an executable, or the file with its debug information. *out is NULL if neither it nor /usr/lib/debug/.build-id
 * has any; build_id is hexadecimal. code_lines_close frees, NULL too. NO_MEMORY. */
enum profd_status code_lines_open(const char *path, const char *build_id, struct code_lines **out,
                                  struct profd_error *e);
void code_lines_close(struct code_lines *l);
/* Writes the frames of the instruction at an address, innermost first, at most CODE_LINES_DEPTH. Returns their number;
 * 0 if nothing is known. O(log functions + size of the function's description). */
size_t code_lines_find(struct code_lines *l, uint64_t address, struct code_frame frames[CODE_LINES_DEPTH]);
/* Sets the range of the function's code that holds the address, and the function's entry, which may be elsewhere. False
 * if no function holds it. */
bool code_lines_range(const struct code_lines *l, uint64_t address, uint64_t *low, uint64_t *high, uint64_t *entry);
/* Returns the first address from this one on, below high, where a line begins; high if none does. O(log lines). */
uint64_t code_lines_next(struct code_lines *l, uint64_t address, uint64_t high);

/* Writes a callgrind.out of the daemon, which is NUL-terminated, to out, with the source lines of its addresses. given
 * is an executable that the user named, or NULL. A build without a file on this machine stays as it is. NO_MEMORY;
 * MALFORMED if body is not of the format. */
enum profd_status export_lines_fill(struct arena *a, const char *given, char *body, FILE *out, struct profd_error *e);

#endif
