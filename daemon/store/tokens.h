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

/* Rights. STORE_MAY_ADMIN includes sending symbols that name functions for the tenant. */
enum { STORE_MAY_READ = 1, STORE_MAY_WRITE = 2, STORE_MAY_ADMIN = 4 };

struct store_token {
    uint64_t id; /* never used again */
    char name[STORE_NAME_MOST + 1];
    unsigned rights;                  /* sum */
    bool all;                         /* for all users and tenants: uid is UINT32_MAX, tenant is "all" */
    uint32_t uid;                     /* of the tenant */
    char tenant[STORE_NAME_MOST + 1]; /* name */
    char hosts[STORE_NAME_MOST + 1];  /* pattern of the names of hosts; "": the host is name */
    bool has_hash;                    /* false: a proxy names the token */
    uint8_t hash[STORE_TOKEN_HASH];   /* SHA-256 of the token */
    int64_t expires, created;         /* ns; expires 0: never */
};

struct store;

/* Adds a token, and its tenant if it does not exist. Sets id and uid. REFUSED: a token has this name. LIMIT: there are
 * STORE_TOKENS_MOST tokens, or too many tenants. On the writing handle, one transaction, like store_remove_token. */
enum profd_status store_add_token(struct store *s, struct store_token *token, struct profd_error *e);
/* Removes a token; *id is its number. NOT_FOUND: no token has this name. */
enum profd_status store_remove_token(struct store *s, const char *name, uint64_t *id, struct profd_error *e);
/* Calls each with every token, in the order of their addition. each returns false to stop. On any handle. */
enum profd_status store_each_token(struct store *s, bool (*each)(void *context, const struct store_token *t),
                                   void *context, struct profd_error *e);

#endif
