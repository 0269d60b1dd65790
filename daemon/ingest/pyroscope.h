/* Reads what Pyroscope's clients push into profiles of ingest/foreign.h: the bodies of POST /ingest (pprof in a form or
 * alone, or folded text) and of PusherService/Push. Each sample type of a profile is a dimension of its own. If a
 * profile has both the number and the time of its samples, these are one measurement and count once, as ticks. */
#ifndef PROFD_INGEST_PYROSCOPE_H
#define PROFD_INGEST_PYROSCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest/foreign.h"
#include "proto/status.h"

/* Limits of a request */
#define PYROSCOPE_PROFILE_MOST (64u << 20)   /* bytes of a profile once inflated */
#define PYROSCOPE_MEMORY ((size_t)256 << 20) /* bytes of memory while it is read */
#define PYROSCOPE_PARTS 16u                  /* parts of a form */
#define PYROSCOPE_PROFILES 1000u             /* profiles */
#define PYROSCOPE_FRAMES_MOST 16000000u      /* frames of all samples, counted once for each sample type */

/* Reads the body of POST /ingest, or of PusherService/Push as protobuf or JSON, as the target says. Appends the
 * profiles to out, also on failure. The caller frees them. On OK there is at least one. MALFORMED,
 * REFUSED, TOO_LARGE, LIMIT, FORBIDDEN, NO_MEMORY. O(bytes) expected. */
enum profd_status pyroscope_read(const struct foreign_request *r, struct foreign_list *out, struct profd_error *e);
#define PYROSCOPE_PUSH "/push.v1.PusherService/Push"
#define PYROSCOPE_INGEST "/ingest"

#endif
