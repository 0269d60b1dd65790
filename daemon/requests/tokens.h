/* Which tokens there are (store/tokens.h), for HTTP: those that requests show, and the names that a proxy gives. What
 * the database has is kept here, and changes with it, so that the next request is judged by it. On the loop's thread,
 * if nothing else is said. */
#ifndef PROFD_REQUESTS_TOKENS_H
#define PROFD_REQUESTS_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hashmap.h"
#include "net/http.h"
#include "proto/status.h"
#include "store/store.h"

struct upkeep_job;

/* Begins as zeros. */
struct tokens {
    struct hashmap by_key; /* SHA-256 of a token, or the name that a proxy gives → struct store_token */
    struct hashmap by_id;  /* → pointer to it */
    bool has_proxy;        /* a proxy of this user may name tokens */
    uint32_t proxy_user;
    const struct upkeep_job *upkeep; /* knows whether the clock is trusted: no token ends by one that is not */
    uint64_t refused;                /* requests with unknown or ended tokens, not logged yet */
    uint64_t logged;                 /* ms of loop_now: the latest line about them; 0: none */
};

/* Reads all tokens of the store. On failure there may be some. */
enum profd_status tokens_load(struct tokens *all, struct store *store, struct profd_error *e);
/* One that was added to the store; NO_MEMORY: it is refused until the next start. */
enum profd_status tokens_add(struct tokens *all, const struct store_token *token, struct profd_error *e);
/* One that was removed from it. */
void tokens_remove(struct tokens *all, uint64_t id);
void tokens_done(struct tokens *all);

/* http_admit; the context is a struct tokens. Refused tokens are logged, at most once a minute. O(1). */
int tokens_admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e);
/* The token of this number; NULL: there is none. Borrowed until it is removed. O(1). */
const struct store_token *tokens_find(const struct tokens *all, uint64_t id);

#endif
