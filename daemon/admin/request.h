/* What an operator asks for (ADMIN frames), judged before anything is done. Pure. */
#ifndef PROFD_ADMIN_REQUEST_H
#define PROFD_ADMIN_REQUEST_H

#include <stddef.h>

#include "proto/status.h"

enum request_verb { REQUEST_DELETE, REQUEST_VERIFY, REQUEST_BACKUP };

struct request {
    enum request_verb verb;
    char build[160]; /* of DELETE: a build-id or a prefix of one, not yet looked for; else "" */
};

/* METHOD names a verb that there is not; USAGE: a wrong number of arguments, or one that cannot be a build. */
enum profd_status request_parse(const char *verb, const char *const *arguments, size_t n, struct request *out,
                                struct profd_error *e);

#endif
