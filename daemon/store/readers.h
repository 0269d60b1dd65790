/* Readers over the network, and the tenants of which they see the data: part of the contract of store.h, which includes
 * this. */
#ifndef PROFD_STORE_READERS_H
#define PROFD_STORE_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

#define STORE_NAME_MOST 64u /* bytes of the name of a reader or tenant */
#define STORE_READERS_MOST 4096u
#define STORE_READER_TENANTS 32u
#define STORE_TOKEN_HASH 32u

struct store_reader {
    uint64_t id; /* never used again */
    char name[STORE_NAME_MOST + 1];
    bool admin;                     /* may send symbols for its tenants, too */
    bool has_token;                 /* else a proxy names it */
    uint8_t hash[STORE_TOKEN_HASH]; /* SHA-256 of the token */
    int64_t expires, created;       /* ns; expires 0: never */
    bool all;                       /* it sees what all users and tenants have */
    size_t tenant_count;            /* 0 if all */
    struct store_reader_tenant {
        char name[STORE_NAME_MOST + 1];
        uint32_t uid;                /* not read by store_add_reader */
    } tenants[STORE_READER_TENANTS]; /* ascending by uid */
};

struct store;

/* Adds a reader; its tenants are made if there are none of these names. REFUSED: there is one of this name. LIMIT:
 * STORE_READERS_MOST, or too many tenants. On the writing handle, one transaction, as the next. */
enum profd_status store_add_reader(struct store *s, const struct store_reader *reader, struct profd_error *e);
/* NOT_FOUND: there is none of this name. */
enum profd_status store_remove_reader(struct store *s, const char *name, struct profd_error *e);
/* On any handle: calls each with every reader, in the order in which they were added; each returns false to stop. */
enum profd_status store_each_reader(struct store *s, bool (*each)(void *context, const struct store_reader *r),
                                    void *context, struct profd_error *e);

#endif
