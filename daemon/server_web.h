/* The dashboard's static files, embedded when the daemon is built. */
#ifndef PROFD_SERVER_WEB_H
#define PROFD_SERVER_WEB_H

#include <stdbool.h>
#include <stddef.h>

struct server_web_file {
    const char *path, *content_type;
    const unsigned char *bytes;
    const size_t *size;
};

/* The file of that path (n bytes, beginning with '/'), or NULL. */
const struct server_web_file *server_web_find(const char *path, size_t n);
/* All of them. */
const struct server_web_file *server_web_list(size_t *count);
bool server_web_has(const char *path, size_t n);

#endif
