/* Asks the daemon's own interface on behalf of the watch list: what a watch shows is what any reader of all profiles
 * would be shown. */
#ifndef PROFD_WATCH_WATCH_ASK_H
#define PROFD_WATCH_WATCH_ASK_H

#include <stdint.h>

#include "core/buffer.h"
#include "core/watch_list.h"
#include "proto/status.h"
#include "render/document.h"

struct query_cache;
struct store;

struct watch_ask {
    struct store *store;       /* a reading handle of the calling thread */
    struct query_cache *cache; /* may be NULL */
    int64_t now;               /* ns */
};

/* Begins a target with path, and adds parameters to it: those of a watch's labels, and name=value percent-encoded. */
void watch_ask_begin(struct buffer *target, const char *path);
void watch_ask_add(struct buffer *target, const char *name, const char *value);
void watch_ask_add_labels(struct buffer *target, const struct watch *w);
void watch_ask_add_functions(struct buffer *target, const struct watch *w);
/* Sends the target and ends it. *out is the answer, owned. The status of the answer with its sentence. Takes as long as
 * the report. */
enum profd_status watch_ask_send(const struct watch_ask *ask, struct buffer *target, json_t **out,
                                 struct profd_error *e);

/* Fields of an object: 0 or "" where there is none. */
double watch_real(const json_t *object, const char *field);
int64_t watch_integer(const json_t *object, const char *field);
const char *watch_text(const json_t *object, const char *field);

#endif
