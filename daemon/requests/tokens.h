/* The tokens of the HTTP API (store/store.h) in memory: those that requests contain, and those that a proxy names. A
 * change of the database is repeated here, so that it applies to the next request. On the loop's thread. */
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
    bool has_proxy;        /* the user proxy_user may name tokens */
    uint32_t proxy_user;
    const struct upkeep_job *upkeep; /* its clock decides whether a token has ended */
    uint64_t refused;                /* requests with unknown or ended tokens, not logged yet */
    uint64_t logged;                 /* ms of loop_now of the latest line about them; 0: none */
};

/* Reads all tokens of the store. On failure, some of them may be in the table. */
enum profd_status tokens_load(struct tokens *all, struct store *store, struct profd_error *e);
/* Adds a token after it was added to the store. NO_MEMORY: the token is refused until the next start. */
enum profd_status tokens_add(struct tokens *all, const struct store_token *token, struct profd_error *e);
/* Removes a token after it was removed from the store. */
void tokens_remove(struct tokens *all, uint64_t id);
void tokens_done(struct tokens *all);

/* http_admit; the context is a struct tokens. Refused tokens are logged, at most once a minute. O(1). */
int tokens_admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e);
/* Returns the token with this number, or NULL. Borrowed until the token is removed. O(1). */
const struct store_token *tokens_find(const struct tokens *all, uint64_t id);

/* FORBIDDEN unless the token may send profiles: it has the right write, for one tenant. */
enum profd_status tokens_check_write(const struct store_token *token, struct profd_error *e);

struct tokens_host {
    char name[256];
    uint8_t identity[STORE_HOST_SIZE];
};
/* Finds the host of a request with a write token. Its name is that of the token, or, with a token for several hosts,
 * the name that the request states ("" if it states none). FORBIDDEN if the token is not for this host. MALFORMED if
 * the name is not valid. */
enum profd_status tokens_find_host(const struct store_token *token, const char *stated, struct tokens_host *out,
                                   struct profd_error *e);

#endif
