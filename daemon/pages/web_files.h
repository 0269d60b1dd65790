/* The dashboard's static files, embedded when the daemon is built. */
#ifndef PROFD_PAGES_WEB_FILES_H
#define PROFD_PAGES_WEB_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct web_file {
    const char *path, *content_type;
    const unsigned char *bytes;
    const size_t *size;
};

/* The file of that path (n bytes, beginning with '/'), or NULL. */
const struct web_file *web_find(const char *path, size_t n);
/* All of them. */
const struct web_file *web_list(size_t *count);
bool web_has(const char *path, size_t n);

#endif
