/* What each user holds of things that are limited per user. Loop thread only. */
#ifndef PROFD_NET_TALLY_H
#define PROFD_NET_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/time.h>

#include "core/hashmap.h"

struct conn;

struct tally_entry {
    uint32_t uid;
    size_t connections;
    size_t bytes;   /* of bodies */
    size_t answers; /* bytes of answers not taken yet */

    /* conn_share.c */
    struct timeval pass;           /* the latest pass of the loop in which connections of the user were read, */
    unsigned reads;                /* and their number */
    TAILQ_HEAD(, conn) postponed;  /* connections that wait for the next pass */
    TAILQ_ENTRY(tally_entry) next; /* in the list of users with such connections, */
    bool queued;                   /* if it is in that list */
};

struct tally {
    struct hashmap of_uid; /* uid → struct tally_entry */
};

void tally_init(struct tally *t);

/* The user's entry, made if need be; NULL when out of memory. O(1) expected. */
struct tally_entry *tally_open(struct tally *t, uint32_t uid);
/* Forgets the entry if it holds nothing. */
void tally_release(struct tally *t, struct tally_entry *entry);
/* Frees all entries. */
void tally_done(struct tally *t);

#endif
