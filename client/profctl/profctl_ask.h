/* Questions and commands to the daemon, and the objects and lists of its answers. */
#ifndef PROFD_CLIENT_PROFCTL_ASK_H
#define PROFD_CLIENT_PROFCTL_ASK_H

#include <jansson.h>

#include "profctl/profctl.h"

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
/* A route as it stands in the daemon's table (daemon/query/route.c), with the name, percent-encoded, in the place of
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
/* The whole body in a new NUL-terminated block. TOO_LARGE above max bytes. */
enum profd_status ask_read(struct profd_conn *c, const struct ask_target *t, size_t max, char **out, size_t *size,
                           struct profd_error *e);
/* The same, and what the answer says of itself. */
enum profd_status ask_read_answer(struct profd_conn *c, const struct ask_target *t, size_t max, char **out,
                                  size_t *size, struct profd_answer *answer, struct profd_error *e);

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

#endif
