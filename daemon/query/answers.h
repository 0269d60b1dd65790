/* The inside of the cache of finished answers. */
#ifndef PROFD_QUERY_ANSWERS_H
#define PROFD_QUERY_ANSWERS_H

#include <stdbool.h>

#include "query/query.h"
#include "store/store.h"

/* Gives the answer that was made when the question had this tag (uncoded, not ""). Its generation becomes the
 * request's, and its epoch this one, as in answers_put. */
bool answers_take(struct query_answers *answers, const struct query_request *request, const char *tag,
                  const struct store_epoch *epoch, struct query_answer *answer);
/* Gives the answer that answers_put kept with this epoch, or a 304. */
bool answers_find_dated(struct query_answers *answers, const struct query_request *request,
                        const struct store_epoch *epoch, struct query_answer *answer);
/* Keeps a copy of a 200, or, of a 304, that the tag is the one of now. epoch: as long as this is the epoch of all
 * builds (store_epoch_all), the answer stays the same; NULL: that is not known. A failure is silent: nothing is kept.
 */
void answers_put(struct query_answers *answers, const struct query_request *request, const char *tag,
                 const struct store_epoch *epoch, const struct query_answer *answer);

#endif
