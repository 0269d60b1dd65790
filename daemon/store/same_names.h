/* Which of the objects that hosts attest of a build have the same names. While hosts are upgraded one after another,
 * those of the new version attest objects with more in them: these differ, and their names do not. */
#ifndef PROFD_STORE_SAME_NAMES_H
#define PROFD_STORE_SAME_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"
#include "store/attestations.h"

#define SAME_NAMES_MOST 8u /* objects of a build that are compared: those that most hosts attest */

/* A stored object that hosts attest. */
struct same_names {
    uint8_t *bytes; /* its encoding */
    size_t size;
    uint64_t hosts; /* that attest it */
    uint64_t asked; /* of these, those of a sum */
    int64_t id;     /* the caller's */
    size_t leader;  /* of those with the same names, the one that names functions */
};

/* Sets leader of each: of those with the same names that of the most hosts; if there are several, the one with the most
 * in it where each has a quorum's number of hosts, otherwise the one with the least. An object that cannot be decoded
 * has the names of no other. Borrowed bytes. NO_MEMORY. */
enum profd_status same_names_find(struct same_names *list, size_t n, struct profd_error *e);

/* Does a quorum of hosts attest the same names? attesting: hosts that attest any object of the build. */
bool same_names_any_quorum(const struct same_names *list, size_t n, uint64_t attesting);

/* May this leader name functions? asked: hosts of the sum, each of which must attest one with these names if there is
 * no quorum. Sets by and hosts, those that attest these names, of *naming. */
bool same_names_judge(const struct same_names *list, size_t n, size_t leader, uint64_t attesting, uint64_t asked,
                      struct store_naming *naming);

/* Frees the bytes. */
void same_names_done(struct same_names *list, size_t n);

#endif
