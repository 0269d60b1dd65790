/* The dashboard's files with their content codings: compressed once, when the daemon starts. */
#ifndef PROFD_SERVER_WEB_CODED_H
#define PROFD_SERVER_WEB_CODED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/coding.h"
#include "pages/web_files.h"

struct web_coded;

/* NULL when out of memory. */
struct web_coded *web_coded_new(void);
/* Accepts NULL. */
void web_coded_free(struct web_coded *web);

/* One file in one coding, its strong validator and the one of its uncoded bytes. */
struct web_form {
    const char *content_type, *etag, *tag;
    const void *bytes;
    size_t size;
    enum coding coding;
};
/* The file of that path (n bytes) in the wanted coding, or, where that is not smaller, as it is. */
bool web_coded_find(const struct web_coded *web, const char *path, size_t n, enum coding wanted, struct web_form *out);

#endif
