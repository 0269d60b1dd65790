/* The dashboard's files as they are sent: coded once, when the daemon starts. */
#ifndef PROFD_SERVER_WEB_CODED_H
#define PROFD_SERVER_WEB_CODED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/coding.h"
#include "server_web.h"

struct server_web_coded;

/* NULL when out of memory. */
struct server_web_coded *server_web_coded_new(void);
/* Accepts NULL. */
void server_web_coded_free(struct server_web_coded *web);

/* One file in one coding, its strong validator and the one of its uncoded bytes. */
struct server_web_form {
    const char *content_type, *etag, *tag;
    const void *bytes;
    size_t size;
    enum coding coding;
};
/* The file of that path (n bytes) in the wanted coding, or, where that is not smaller, as it is. */
bool server_web_coded_find(const struct server_web_coded *web, const char *path, size_t n, enum coding wanted,
                           struct server_web_form *out);

#endif
