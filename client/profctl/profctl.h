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

#include "profd.h"
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
    char build_id[160]; /* of an argument PROGRAM@LABEL=VALUE */
    int *exit_status;   /* set by a verb that succeeds with another exit status than 0 */
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
/* Members of a verb: its table of options. */
#define OPTIONS(table) .options = (table), .option_count = COUNT(table)

extern const struct profctl_verb verb_upload, verb_symbols, verb_builds, verb_labels, verb_report, verb_export,
    verb_status, verb_gprof, verb_delete, verb_verify, verb_backup, verb_top, verb_completion, verb_groups,
    verb_run_command, verb_record, verb_ps, verb_pause, verb_reload, verb_retention, verb_token, verb_hosts, verb_relay,
    verb_tier, verb_diff, verb_functions, verb_never_called, verb_cycles, verb_callers, verb_annotate;

/* The candidate that is likely to be meant by a mistyped word: best is NULL if none is near enough. Begin with
 * {.word = word}. */
struct nearest {
    const char *word, *best;
    size_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);
/* The last value of an option, NULL if it was not given. */
const char *profctl_value(const struct profctl_call *call, const char *option);
/* The number of a word among those of a list "self|total|calls"; −1 if it is none of them. */
int profctl_alternative(const char *list, const char *word);
/* The number of the given value of an option among its alternatives; 0 if it was not given. USAGE if it is none of
 * them. */
enum profd_status profctl_choose(const struct profctl_call *call, const char *option, size_t *out,
                                 struct profd_error *e);
enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };
/* Which of these the option "format" of a verb, text|json|csv, has; FORMAT_JSON if --json is given. USAGE as
 * profctl_choose. */
enum profd_status profctl_choose_format(const struct profctl_call *call, size_t *out, struct profd_error *e);
/* The seconds of an option such as --expires, "90s", "30m", "1h" or "7d", as digits; otherwise is used if it was not
 * given. USAGE if it is none. */
enum profd_status profctl_duration(const struct profctl_call *call, const char *option, const char *otherwise,
                                   char out[24], struct profd_error *e);
/* The number that an option has, in these bounds; *out stays if it was not given. USAGE if it is none; what names it in
 * the sentence: "a number". */
enum profd_status profctl_number(const struct profctl_call *call, const char *option, const char *what,
                                 unsigned long least, unsigned long most, unsigned long *out, struct profd_error *e);
/* Prints what profctl_clean makes of the text with that size, 1024 at most, on stdout. */
void profctl_print(const char *text, size_t size);
/* A copy for a terminal, cut to size: control and bidirectional characters, line breaks too, become '?'. */
void profctl_clean(const char *text, char *out, size_t size);
/* "profctl: sentence" on stderr, control characters replaced. */
void profctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Connection options for this call; answers may take answer_ms. */
struct profd_options profctl_options(const struct profctl_call *call, unsigned answer_ms);
/* Milliseconds of the monotonic clock. */
int64_t monotonic_ms(void);
/* The list with space for one more row of that size: it may have moved. NULL without memory, and it is as it was. */
void *list_grow(void *list, size_t count, size_t *capacity, size_t size);
/* Adds each given value of the option "label". USAGE, with the verb and the value, if one is not NAME=VALUE; REFUSED if
 * it breaks a rule of labels. */
enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e);
/* Whether labels_add would succeed on an upload without labels: bad ones are refused before anything is read or sent.
 */
enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e);

/* The command line of one verb, and its help. */

/* Moves options that stand before the verb behind it. USAGE if one of them is not an option of every verb. */
enum profd_status profctl_place_verb(int argc, char **argv, struct profd_error *e);
/* Parses argv[1…] after the verb (argv[0]). *help: --help was given, the rest is ignored. USAGE names the wrong
 * argument. profctl_parse_done frees. */
enum profd_status profctl_parse(const struct profctl_verb *verb, int argc, char **argv, struct profctl_call *call,
                                bool *help, struct profd_error *e);
/* The i-th option of a verb, then those that all verbs have, if it takes them; NULL at the end. */
const struct profctl_option *profctl_option_at(const struct profctl_verb *v, size_t i);
void profctl_parse_done(struct profctl_call *call);
/* Usage, summary and every option of the verb, on stdout. */
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

/* A path with parameters in the making. Too long is noticed at the end, by ask_open_sentence or profd_query. */
struct ask_target {
    char text[ASK_TARGET_SIZE];
    size_t size;
    bool has_parameters, too_long;
    const struct profctl_call *call; /* with options that are parameters; NULL before ask_target_add_given */
    const char *if_none_match;       /* the ETag of an answer that is kept, or NULL */
};
/* A route as it stands in the daemon's table (daemon/query/run.c), with the name, percent-encoded, in the place of
 * {}; name may be NULL where there is none. */
void ask_target_init(struct ask_target *t, const char *route, const char *name);
/* A route with two of {}. */
void ask_target_init_two(struct ask_target *t, const char *route, const char *name, const char *second);
/* Appends name=value, percent-encoded. value NULL: nothing. */
void ask_target_add(struct ask_target *t, const char *name, const char *value);
/* Appends prefix, "label." and NAME=VALUE of text. USAGE if it is not NAME=VALUE. */
enum profd_status ask_target_add_label(struct ask_target *t, const struct profctl_call *call, const char *prefix,
                                       const char *text, struct profd_error *e);
/* Appends label.NAME=VALUE for each -l, each --match and --by, and the last value of each other option that is in names
 * ("a|b|c"). USAGE if -l is given what is not NAME=VALUE. */
enum profd_status ask_target_add_given(struct ask_target *t, const struct profctl_call *call, const char *names,
                                       struct profd_error *e);

/* Makes a request of libprofd, with what it needs. Its body goes to sink; answers from 400 on become a status and a
 * sentence instead. */
typedef enum profd_status (*ask_request)(struct profd_conn *c, void *what, profd_sink sink, void *context,
                                         struct profd_error *e);
enum profd_status ask_by(struct profd_conn *c, ask_request request, void *what, profd_sink sink, void *context,
                         struct profd_error *e);
/* Runs the query. Its body goes to sink; answers from 400 on become a status and a sentence instead. */
enum profd_status ask_run(struct profd_conn *c, const struct ask_target *t, profd_sink sink, void *context,
                          struct profd_error *e);
/* Reads the whole body into a new NUL-terminated block. *answer becomes what the answer says of itself; it may be NULL.
 * TOO_LARGE above max bytes. */
enum profd_status ask_read(struct profd_conn *c, const struct ask_target *t, size_t max, char **out, size_t *size,
                           struct profd_answer *answer, struct profd_error *e);

/* An answer that is an object of JSON. */
struct answer {
    json_t *whole; /* of a list in several pages the first one, with the rows of all */
    json_t *rows;  /* its rows, where it is a list; part of whole */
    char *text;    /* the daemon's own bytes; NULL where several pages are one */
    size_t size;
};

/* Asks for an object. */
enum profd_status ask_object(struct profd_conn *c, const struct ask_target *t, struct answer *out,
                             struct profd_error *e);
/* Asks for a list page by page. */
enum profd_status ask_rows(struct profd_conn *c, const struct ask_target *t, struct answer *out, struct profd_error *e);
/* Asks for all builds. */
enum profd_status ask_builds(struct profd_conn *c, struct answer *out, struct profd_error *e);
/* The first two on a connection of their own, which waits ASK_ANSWER_MS for the answer. */
enum profd_status ask_fetch_object(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                   struct profd_error *e);
enum profd_status ask_fetch_rows(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                 struct profd_error *e);
/* Sends an administrative command, with progress on a terminal. word says what is done meanwhile. */
enum profd_status ask_admin(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                            const char *word, struct answer *out, struct profd_error *e);
/* The same. With --json it prints the answer, and *out is empty: its whole is NULL. */
enum profd_status ask_admin_text(const struct profctl_call *call, const char *verb, const char *const *arguments,
                                 size_t n, const char *word, struct answer *out, struct profd_error *e);
/* {"rows":[…]} with all rows to stdout: the daemon's own bytes where one page holds them. */
enum profd_status answer_print_json(const struct answer *a, struct profd_error *e);
/* Sorts the rows by a field, descending numbers or ascending text, equal rows in the order they had. O(n log n). */
enum profd_status answer_sort(struct answer *a, const char *field, bool descending, struct profd_error *e);
/* Frees it, and clears it. */
void answer_free(struct answer *a);

/* Fields of a row, or of another object; "", 0 or false where there is no such field. Text is fit for a terminal, and
 * lives as long as the row. */
const char *row_text(json_t *row, const char *field);
/* The text as it came, which is not fit for a terminal. */
const char *row_raw(const json_t *row, const char *field);
uint64_t row_number(const json_t *row, const char *field);
double row_real(const json_t *row, const char *field);
bool row_flag(const json_t *row, const char *field);
/* True if the field is a number. */
bool row_has(const json_t *row, const char *field);
/* The last part of a field that is a path. */
const char *row_base(json_t *row, const char *field);
/* An object of strings as "name=value name=value". */
const char *row_pairs(json_t *row, const char *field);
/* A list of strings as "one, two", cut to size. */
void row_join(const json_t *row, const char *field, char *out, size_t size);
/* Are calls of this object sampled, at least in part? Its numbers of calls are then how often ticks found a callee
 * below its caller, where a program does not count. */
bool row_is_sampled(const json_t *row);

/* A number for json_pack's 'I'. JSON numbers above 2^63-1 do not exist here: such a sum has saturated. */
static inline json_int_t json_count(uint64_t n)
{
    return n > (uint64_t)INT64_MAX ? INT64_MAX : (json_int_t)n;
}
/* Prints the value on one line of stdout, and frees it. NO_MEMORY for NULL, which is what json_pack returns without
 * memory. */
enum profd_status json_print(json_t *value, struct profd_error *e);

/* HTTP over TLS, by libcurl: what libprofd leaves to its user (profd_http of profd.h). */

/* A profd_http. The context is the name of a file with the certificates of CAs, which stand in place of the system's;
 * NULL: the system's. Certificate and name of the server are always checked; no redirection is followed. UNTRUSTED: the
 * certificate is not that of the server. */
enum profd_status https_ask(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                            struct profd_error *e);

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

/* Downloads a file of a build, or finds it in the user's cache of libdebuginfod. *path: the file in the cache, which
 * the caller frees (the string). USAGE: there is no server. NOT_FOUND: they do not have it. TIMEOUT, TOO_LARGE,
 * UNAVAILABLE: as the sentence says. The content is not checked. */
enum profd_status debuginfod_fetch(const struct debuginfod_file *file, char **path, struct profd_error *e);

/* The value of --timeout; 120 if it is not given. USAGE. */
enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e);

/* Which build, side of a comparison and function a person means. */

/* The build-id or prefix for an argument: that of the file, if it contains '/' or exists; that of the program with this
 * name, as profctl builds prints it; that of the command with this name, which may be a link; otherwise the argument
 * itself, if it can be the beginning of a build-id.
 * AMBIGUOUS, with a list, if several builds have the name; NOT_FOUND if nothing stored is called so. id has 160 bytes.
 * Queries the daemon for its builds unless the argument is a file or too long for a name. */
enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[160],
                             struct profd_error *e);

/* Is the file that build? */
bool build_is_file(const char *path, const char *id);

#define SIDE_BUILD "PROGRAM|BUILD|EXE" /* a build, in the usage of a verb */

/* Replaces PROGRAM@LABEL=VALUE where a verb with -l takes a build: by the build-id, and by one more -l LABEL=VALUE. Of
 * other arguments nothing changes, nor if a file has this name. Errors as of side_add. */
enum profd_status side_take(struct profctl_call *call, struct profd_error *e);

/* Appends the side's build as parameter name ("a"), and its labels as "a.label.…". argument: what build_find accepts,
 * or such a name followed by @LABEL=VALUE: of the builds of that name the one with uploads that have the label.
 * AMBIGUOUS, with a list, if several have it; NOT_FOUND. */
enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e);

struct function_place {
    char name[256];     /* fit for a terminal */
    char build_id[160]; /* its own build's, which may be a library of the program */
    char address[24];   /* "0x401230" */
};

/* The function of a build's report that text names: by its name, its name in the symbol table, its name without the
 * parameters, or a part of these that only one function has; or by its address, if text begins with 0x. Of the uploads
 * that the call's options select. NOT_FOUND; AMBIGUOUS, with some of them. */
enum profd_status function_find(const struct profctl_call *call, const char *build_id, const char *text,
                                struct function_place *out, struct profd_error *e);

/* Sets the path of a function that was found in a build's report. path has {} for the build and for the address. */
void function_target_init(struct ask_target *target, const char *path, const char *build_id,
                          const struct function_place *place);

/* Prints why an answer's counts are not exact, as a line behind the indentation; nothing if they are. */
void function_print_reasons(const json_t *answer, const char *indentation);

/* Prints the end of a heading line: "3 calls by others", "no call by others was counted"; how sampled calls are marked.
 */
void function_print_calls(const json_t *answer);

/* Times and amounts as people read them. */

/* "12 s ago", "3 min ago", "5 h ago", "2 d ago" for a time before now (both in seconds since the epoch). */
void show_age(int64_t then, int64_t now, char *out, size_t size);
/* Seconds since the epoch of "2026-11-21T15:48:00Z"; 0 if it is no time. */
int64_t show_time_of(const char *rfc3339);
/* show_age for such a text; "-" if it is no time. */
void show_age_of(const char *rfc3339, int64_t now, char *out, size_t size);
/* "812 B", "1.4 MB". */
void show_bytes(uint64_t bytes, char *out, size_t size);
/* Two decimals, "12.34"; "<0.01" for what is above 0 and would read 0.00. */
void show_amount(double value, char *out, size_t size);
/* A percentage of that many ticks, "80.94%"; below 1,000 ticks with two significant digits, "81%". */
void show_percent(double percent, uint64_t ticks, char *out, size_t size);
/* A number above 0 with this number of digits, others rounded, without an exponent: "7.6", "520". */
void show_rounded(double value, int digits, char *out, size_t size);
/* A part of the whole, "4.74%"; "<0.001%" for what is above 0 and less than that. */
void show_share(double part, char *out, size_t size);
/* A fraction as a percentage, "+12.3%", "-2.51%"; "0.00%" for what would read 0; from 9 on as a factor, "10x". */
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
/* A number of calls: "~12" where calls were sampled and not counted, "-" where none was sampled either. */
const char *cell_calls(json_t *row, const char *field, char out[LIST_CELL]);
/* The same where the row's member calls_sampled tells it; "-" for none in any case. */
const char *cell_counted(json_t *row, const char *field, char out[LIST_CELL]);

/* The titles, then a line for each row. tail: prints what follows the last column; NULL: nothing does. */
void list_print_table(json_t *rows, const struct list_column *columns, size_t n, void (*tail)(json_t *row));

/* Prints the members of an object, separated by commas, as RFC 4180 has it: text as csv_print_text, numbers with all
 * their digits, true and false as 1 and 0, a list of texts as one, with spaces between them, nothing for null or for a
 * member that is not there. members: their names, separated by commas. */
void csv_print_row(const json_t *row, const char *members);
/* Prints the text to stdout in quotes, with a ' before what a spreadsheet would read as a formula: text that begins
 * with = + - @ or '. */
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
    const char *empty; /* what is printed instead of a table without rows; NULL: the titles are */
    void (*tail)(json_t *row);
    /* Each of these may be NULL: checks the options, and adds more parameters; judges the rows, and prepares them for
     * the format; prints the text in place of the table, and CSV where csv is NULL. */
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

/* Asks, and prints in the format of the call. */
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

/* Copies n bytes to out (TERMINAL_BOUND(n)) as utf8_escape shows them. Unless one_line, newlines and tabs stay, and
 * form feeds, which begin the pages of gprof's listing, are left out. Returns bytes written. With n = 0 at the end of
 * the stream what was held is written. Any way of cutting the stream gives the same. O(n). */
size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out);

/* How text looks where a person reads it, colours and widths, and where it goes: a terminal, a pager, a pipe, or a file
 * that appears whole or not at all. */

struct look {
    bool terminal;       /* stdout is one */
    bool colour, shades; /* shades: 256 colours, else the basic ones */
    unsigned columns;    /* columns of a line; 0: lines are not cut */
    const char *dots;    /* replaces the part that was cut */
};

/* From --color and --wide of the call, where its verb has them, and from NO_COLOR, TERM, COLORTERM, COLUMNS and the
 * locale. USAGE for a --color that is none of auto, always, never. */
enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e);

/* The parameter names= for a text: --names of the call, else "short" for a terminal that shows UTF-8, without --wide,
 * else NULL: full names. */
const char *look_names(const struct profctl_call *call, bool terminal);

/* Escape sequence for a share of the total in percent; "" for small shares and without colours. Orange and blue, never
 * red against green; the line always states the number, too. */
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

/* look outlives it. */
void paint_init(struct paint *p, const struct look *look);
/* Takes text that the terminal's filter has passed; whole lines go out. Any way of cutting the text gives the same.
 * O(n). */
void paint_run(struct paint *p, const char *text, size_t n, FILE *out);
/* What was held goes out. */
void paint_end(struct paint *p, FILE *out);

struct pager {
    pid_t pid; /* 0: none runs */
    FILE *stream;
    const char *command;
    struct sigaction interrupt, quit, pipe; /* what signals meant before */
};

/* The command; NULL where there is to be none: an empty one, cat, no less, raised rights, TERM=dumb. */
const char *pager_choose(void);

struct output {
    FILE *stream;
    char *path, *part; /* part is renamed to path at the end; both NULL on stdout */
    bool terminal;
    struct terminal_filter filter;
    struct paint *paint;       /* NULL: text goes out as it is */
    const char *pager_command; /* NULL, or what is started before the first byte */
    struct pager pager;
    bool left; /* the reader has seen enough: writing failed for that, and it is no error */
};

/* path NULL is stdout. An existing regular file is replaced at the end; a device or FIFO is written to as it is.
 * CANT_CREATE. */
enum profd_status output_open(const char *path, struct output *out, struct profd_error *e);
/* Of stdout, before the first byte: through paint (NULL: none, else it outlives out), and to a pager (NULL: none). */
void output_dress(struct output *out, struct paint *paint, const char *pager_command);
/* IO if it cannot be written, or the reader has closed the pipe (out->left). On a terminal control characters are
 * replaced. */
enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e);
/* Finishes the output; with keep false the file is removed. */
enum profd_status output_close(struct output *out, bool keep, struct profd_error *e);

/* One line on stderr that is written over while work goes on, if stderr is a terminal and the work takes a second. */

/* Zeroed it is ready. */
struct progress {
    bool began, shown;
    struct timespec start, last;
};

/* "verifying [#####.....]  50 %  12 s": done of total, and how long the rest will take. detail: what else is said, or
 * "". The first call only starts the clock. */
void progress_show(struct progress *p, const char *word, uint64_t done, uint64_t total, const char *detail);
/* Clears the line. */
void progress_end(struct progress *p);
/* Clears whatever line there is: something else is about to be said on stderr. */
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

/* Creates the child, which waits for run_command_release. Signals to profctl are blocked until run_command_end. False:
 * there is no process; said. */
bool run_command_start(struct run_command *c, const char *verb, char **argv);
/* The child calls execvp. False: it could not, which run_command_end reports after run_command_step. */
bool run_command_release(struct run_command *c);
/* Handles signals that are pending: those that were sent to profctl alone go to the command; those of the terminal
 * reach it without us. If wait is set, waits for the next one first. True: the command has ended, *status is its exit
 * status, or 128 plus the signal that ended it; its process exists until run_command_end. */
bool run_command_step(struct run_command *c, bool wait, int *status);
/* Restores the signals. If the command did not run, says why. Returns the exit status: status, if it ran. */
int run_command_end(struct run_command *c, int status);
/* Instead of run_command_release: the child ends without calling execvp, and the signals are restored. */
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

/* Opens an executable, or the file with its debug information. *out NULL: it has none, and neither has
 * /usr/lib/debug/.build-id (build_id: hex). code_lines_close frees, NULL too. NO_MEMORY. */
enum profd_status code_lines_open(const char *path, const char *build_id, struct code_lines **out,
                                  struct profd_error *e);
void code_lines_close(struct code_lines *l);
/* Frames of the instruction at an address, innermost first: at most CODE_LINES_DEPTH. 0: nothing is known.
 * O(log functions + size of the function's description). */
size_t code_lines_find(struct code_lines *l, uint64_t address, struct code_frame frames[CODE_LINES_DEPTH]);
/* The bytes of a function that hold the address, and where it begins, perhaps elsewhere: false if none does. */
bool code_lines_range(const struct code_lines *l, uint64_t address, uint64_t *low, uint64_t *high, uint64_t *entry);
/* The first address from here on, below high, where a line begins; high if none does. O(log lines). */
uint64_t code_lines_next(struct code_lines *l, uint64_t address, uint64_t high);

/* Exports get the source lines of their addresses, from executables on this machine. */

/* Executables of an export, by the numbers that it gives to builds. */
struct export_objects {
    const char *given; /* a file that the user named: it may be one of them */
    struct export_object {
        char *path, *build_id; /* NULL: not stated */
        struct code_lines *lines;
        bool sought;
    } * list;
    size_t count;
};

void export_objects_done(struct export_objects *o);
#define EXPORT_OBJECTS_MOST 65536u

/* Each writes an export of the daemon to out, with the lines of the objects. body is NUL-terminated. NO_MEMORY;
 * MALFORMED if body is not of the format. */
enum profd_status export_callgrind_fill(struct export_objects *o, char *body, FILE *out, struct profd_error *e);
enum profd_status export_pprof_fill(struct export_objects *o, const uint8_t *body, size_t size, FILE *out,
                                    struct profd_error *e);

/* Formats with lines that can be filled in; format may be NULL. */
bool export_lines_has(const char *format);
/* Writes an export of the daemon to out, with lines. given: an executable that the user named, perhaps; may be NULL. A
 * build without a file on this machine stays as it is. NO_MEMORY; MALFORMED if the daemon's answer is not of that
 * format. */
enum profd_status export_lines_fill(const char *format, const char *given, char *body, size_t size, FILE *out,
                                    struct profd_error *e);

#endif
