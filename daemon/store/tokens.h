/* Tokens of the HTTP API, and their tenants: part of the contract of store.h, which includes this. */
#ifndef PROFD_STORE_TOKENS_H
#define PROFD_STORE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define STORE_NAME_MOST 64u /* bytes of the name of a token or tenant, and of a pattern of names */
#define STORE_TOKENS_MOST 65536u
#define STORE_TOKEN_HASH 32u

/* Rights. STORE_MAY_ADMIN: it may name functions for its tenant. */
enum { STORE_MAY_READ = 1, STORE_MAY_WRITE = 2, STORE_MAY_ADMIN = 4 };

struct store_token {
    uint64_t id; /* never used again */
    char name[STORE_NAME_MOST + 1];
    unsigned rights;                  /* sum */
    bool all;                         /* it is for all users and tenants: uid is UINT32_MAX, tenant "all" */
    uint32_t uid;                     /* of the tenant */
    char tenant[STORE_NAME_MOST + 1]; /* name */
    char hosts[STORE_NAME_MOST + 1];  /* pattern of the names of hosts that its holder may state; "": name alone */
    bool has_hash;                    /* else a proxy names it */
    uint8_t hash[STORE_TOKEN_HASH];   /* SHA-256 of the token */
    int64_t expires, created;         /* ns; expires 0: never */
};

struct store;

/* Adds a token; its tenant is made if there is none of this name. Sets id and uid. REFUSED: there is a token of this
 * name. LIMIT: STORE_TOKENS_MOST, or too many tenants. On the writing handle, one transaction, as the next. */
enum profd_status store_add_token(struct store *s, struct store_token *token, struct profd_error *e);
/* NOT_FOUND: there is none of this name. *id is the number of the removed token. */
enum profd_status store_remove_token(struct store *s, const char *name, uint64_t *id, struct profd_error *e);
/* On any handle: calls each with every token, in the order in which they were added; each returns false to stop. */
enum profd_status store_each_token(struct store *s, bool (*each)(void *context, const struct store_token *t),
                                   void *context, struct profd_error *e);

#endif
