/* Which frames of a host may pass the gate, and what the gate adds to them. Pure. */
#ifndef PROFD_GATE_FRAMES_H
#define PROFD_GATE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "tls/tls_identity.h"

/* What may be appended to the payload of a frame: host and name. */
#define FRAMES_ADDED_MAX (2 + TLS_HOST_SIZE + 2 * (3 + TLS_NAME_SIZE) + 2 + TLS_KEY_SIZE + 9)
#define FRAMES_PAYLOAD_MAX (LIMIT_FRAME_PAYLOAD - FRAMES_ADDED_MAX)
#define FRAMES_HELLO_MAX 1024u /* also of ATTEST, and of what OBJECT_BYTES has beside its piece */

#define FRAMES_ENROLL_MAX 8192u /* also of RENEW */

enum frames_stage {
    FRAMES_BEFORE_HELLO,
    FRAMES_BEFORE_ARRIVE,
    FRAMES_AFTER_ARRIVE,
    FRAMES_BEFORE_ENROLL, /* there is no certificate: only ENROLL may come */
    FRAMES_BEFORE_RENEW,  /* the certificate has expired: only RENEW may come */
    FRAMES_ENROLLED       /* after ENROLL or RENEW: nothing may come */
};

/* May a frame with this header, of frame_decode, come in this stage? UNAUTHORIZED: not with this certificate, or not
 * without one. PROTOCOL: HELLO or ARRIVE is missing or repeated,
 * descriptors. FORBIDDEN: a type that does not pass, compression. MALFORMED: empty. TOO_LARGE. */
enum profd_status frames_check(const struct frame *f, enum frames_stage stage, struct profd_error *e);

/* Is the payload of a frame that is passed on a sequence of whole protobuf fields, none of which states what the gate
 * sets? MALFORMED, FORBIDDEN. Only then frames_add is safe. O(n). */
enum profd_status frames_check_fields(unsigned type, const uint8_t *payload, size_t n, struct profd_error *e);

/* Appends host, and to ARRIVE the name, as protobuf fields; out has place for FRAMES_ADDED_MAX bytes. Returns their
 * number. */
size_t frames_add(unsigned type, const struct tls_identity *host, uint8_t *out);

/* May a frame of this type pass from the daemon to a host? */
bool frames_may_answer(unsigned type);

#endif
