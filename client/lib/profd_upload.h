/* The inside of struct profd_upload, for the rest of the library. */
#ifndef PROFD_CLIENT_PROFD_UPLOAD_H
#define PROFD_CLIENT_PROFD_UPLOAD_H

#include "profd.h"
#include "proto/counts.h"

/* Appends all counts. The build indices of c are those of u. */
enum profd_status upload_add_counts(struct profd_upload *u, const struct counts *c, struct profd_error *e);

/* Does the same as profd_upload_add_stack, in the dimension of the histogram that has these ticks. */
enum profd_status upload_add_stack(struct profd_upload *u, const char *dimension, char abbreviation,
                                   const struct profd_stack *stack, struct profd_error *e);

/* Encodes the UPLOAD frame with tag 0 in a new block, which the caller frees. Its host is this machine's id. */
enum profd_status upload_encode(const struct profd_upload *u, const struct profd_id *id, uint8_t **frame, size_t *size,
                                struct profd_error *e);

/* Puts all counts into the random group of the process with this key of LIMIT_PROCESS bytes. Without a key each upload
 * counts as a process of its own. */
void upload_set_process(struct profd_upload *u, const uint8_t *key);

/* States that the counts are of processes of that user, who is not the sender. */
void upload_claim_uid(struct profd_upload *u, uint32_t uid);
/* Sets *uid to the claimed user. False if none was claimed. */
bool upload_get_claim(const struct profd_upload *u, uint32_t *uid);

#define IDENTITY_HOST_SIZE 33

/* Writes the machine-id, 32 lower-case hex digits; "" if there is none. */
void identity_host(char host[IDENTITY_HOST_SIZE]);

#endif
