/* The inside of struct profd_upload, for the rest of the library. */
#ifndef PROFD_CLIENT_PROFD_UPLOAD_H
#define PROFD_CLIENT_PROFD_UPLOAD_H

#include "profd.h"
#include "proto/counts.h"

/* Appends all of c. The build indices of c are those of u. */
enum profd_status upload_add_counts(struct profd_upload *u, const struct counts *c, struct profd_error *e);

/* As profd_upload_add_stack, in any dimension: that of the histogram that has these ticks. */
enum profd_status upload_add_stack(struct profd_upload *u, const char *dimension, char abbreviation,
                                   const struct profd_stack *stack, struct profd_error *e);

/* The whole UPLOAD frame with tag 0, in a new block that the caller frees. The host is
 * this machine's id. */
enum profd_status upload_encode(const struct profd_upload *u, const struct profd_id *id, uint8_t **frame, size_t *size,
                                struct profd_error *e);

/* All the counts are of processes of one random group: that of the process with this key of LIMIT_PROCESS bytes.
 * Without it, each upload is a process of its own. */
void upload_set_process(struct profd_upload *u, const uint8_t *key);

/* The counts are of processes of that user, which is not the sender's. */
void upload_claim_uid(struct profd_upload *u, uint32_t uid);
/* The user that was claimed; false: none. */
bool upload_get_claim(const struct profd_upload *u, uint32_t *uid);

#define IDENTITY_HOST_SIZE 33

/* The machine-id, 32 lower-case hex digits; "" where there is none. */
void identity_host(char host[IDENTITY_HOST_SIZE]);

#endif
