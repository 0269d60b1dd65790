/* Questions to the daemon. */
#ifndef PROFD_CLIENT_PROFCTL_ASK_H
#define PROFD_CLIENT_PROFCTL_ASK_H

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

/* ask_read on a connection of its own, which waits ASK_ANSWER_MS for the answer. */
enum profd_status ask_fetch(const struct profctl_call *call, const struct ask_target *t, size_t max, char **out,
                            size_t *size, struct profd_error *e);

#endif
