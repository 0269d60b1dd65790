/* Private to requests/centre*. */
#ifndef PROFD_REQUESTS_CENTRE_INTERNAL_H
#define PROFD_REQUESTS_CENTRE_INTERNAL_H

#include "core/hashmap.h"
#include "requests/centre.h"
#include "requests/centre_await.h"
#include "requests/intake.h"
#include "writer/writer.h"

#define CENTRE_NUMBER_MOST (UINT64_C(1) << 62) /* of a host's database */

struct centre_service {
    struct centre_config config;
    struct centre_counts *counts;  /* of the intake */
    struct hashmap conflicts;      /* identity of a host → epoch of its last conflict; forgotten by a restart */
    struct centre_objects objects; /* that hosts are sending */
};

/* May this peer send what a gate sends, and can it be stored? */
enum profd_status centre_check(const struct centre_service *s, const struct conn *c, struct profd_error *e);
/* Copies an identity, epoch and so on, which must have this size. */
enum profd_status centre_copy(const struct message_bytes *from, const char *what, uint8_t *to, size_t size,
                              struct profd_error *e);

#endif
