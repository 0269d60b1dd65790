/* One query in progress. */
#ifndef PROFD_QUERY_JOB_H
#define PROFD_QUERY_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/status.h"
#include "query/etag.h"
#include "query/params.h"
#include "store/store.h"

struct query_request;
struct query_answer;
struct query_answers;

struct job {
    struct store *store;
    const struct query_request *request;
    const struct params *params;
    const char *build;             /* full id of the build that the path names, once it is known */
    struct arena *arena;           /* everything the job computes */
    struct query_answer *answer;   /* body, content type and ETag are the handler's */
    struct query_answers *answers; /* NULL: the answer depends on the moment of asking, or none are kept */
    char tag[ETAG_SIZE];           /* of the answer uncoded, "" while there is none */
    bool unsettled; /* by the handler, before job_set_etag: rolling up changes the answer; it has no tag */
    bool kept;      /* the answer was made before, for the same tag */
};

/* A handler appends the body and returns OK, or a status with a sentence (what it appended is then dropped). */
typedef enum profd_status (*job_handler)(struct job *job, struct profd_error *e);

/* Sets the answer's ETag, on data of that epoch. Version, visibility, path and all parameters are part of it, so that
 * no parameter can be forgotten; resolved (n bytes) is what they do not say: what relative times and short ids meant,
 * and the edges of the window that were used. True if the asker holds this answer, and the status is 304, or if it was
 * made before: nothing remains to be done. Does nothing for an unsettled answer. */
bool job_set_etag(struct job *job, const void *resolved, size_t n, const struct store_epoch *epoch);
/* The same for lists: the state is that of all builds. */
enum profd_status job_set_list_etag(struct job *job, bool *fresh, struct profd_error *e);
/* limit= of a list of pages. As everywhere it is the most rows that are wanted, 0 for all; a page has no more than
 * LIMIT_PAGE of them, and its cursor leads to the others. */
enum profd_status job_parse_page(const struct job *job, unsigned long long *limit, struct profd_error *e);
/* The same of a list that is one page unless a limit is given. */
enum profd_status job_parse_whole(const struct job *job, unsigned long long *limit, struct profd_error *e);
/* A copy in the arena. NULL is "". */
const char *job_copy(struct job *job, const char *text);

#endif
