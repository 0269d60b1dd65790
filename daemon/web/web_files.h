/* The dashboard's static files: embedded when the daemon is built, compressed once when it starts. */
#ifndef PROFD_WEB_FILES_H
#define PROFD_WEB_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/coding.h"

/* True if there is a file of that path (n bytes, beginning with "/"). */
bool web_has(const char *path, size_t n);

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
