/* Shared by the verbs of profctl: the description of a verb, and its arguments. */
#ifndef PROFD_CLIENT_PROFCTL_H
#define PROFD_CLIENT_PROFCTL_H

#include <stdbool.h>
#include <stddef.h>

#include "profd.h"

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
    const char *server; /* NULL: the default */
    const char *token_file;
    const char *ca_file; /* NULL: the system's */
    bool json;
    struct profctl_given *given; /* the verb's own options, in order */
    size_t given_count;
    char **arguments;
    size_t argument_count;
    char *server_text;               /* owned */
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
/* A decimal number in these bounds, and nothing else. False if the text is none; *out stays. */
bool profctl_number(const char *text, unsigned long least, unsigned long most, unsigned long *out);
/* Prints what profctl_clean makes of the text with that size, 1024 at most, on stdout. */
void profctl_print(const char *text, size_t size);
/* A copy for a terminal, cut to size: control and bidirectional characters, line breaks too, become '?'. */
void profctl_clean(const char *text, char *out, size_t size);
/* "profctl: sentence" on stderr, control characters replaced. */
void profctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Connection options for this call; answers may take answer_ms. */
struct profd_options profctl_options(const struct profctl_call *call, unsigned answer_ms);
/* Adds each given value of the option "label". USAGE, with the verb and the value, if one is no label. */
enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e);
/* Whether labels_add would succeed on an upload without labels: bad ones are refused before anything is read or sent.
 */
enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e);

#endif
