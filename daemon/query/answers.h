/* The inside of the cache of finished answers. */
#ifndef PROFD_QUERY_ANSWERS_H
#define PROFD_QUERY_ANSWERS_H

#include <stdbool.h>

#include "query/query.h"

/* Gives the answer that was made when the question had this tag (uncoded, not ""). Its generation becomes the
 * request's. */
bool answers_take(struct query_answers *answers, const struct query_request *request, const char *tag,
                  struct query_answer *answer);
/* Keeps a copy of a 200, or, of a 304, that the tag is the current one. A failure is silent: nothing is kept. */
void answers_put(struct query_answers *answers, const struct query_request *request, const char *tag,
                 const struct query_answer *answer);

#endif
