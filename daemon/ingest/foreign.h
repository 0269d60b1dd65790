/* Turns profiles in the formats of other tools into uploads. An adaptor reads a format and fills a struct foreign with
 * labels, samples, and frames by address or by name. The profile is then stored like every other upload.
 *
 * The names of frames without a build (interpreted code, the kernel) are symbols of a names build. There is one for
 * each user or tenant, service and frame type. Its build-id is a hash of these three. A symbol's address is a hash of
 * its name and file, so a name has the same address in every profile and at every centre. Symbols are never removed. */
#ifndef PROFD_INGEST_FOREIGN_H
#define PROFD_INGEST_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "core/foreign_clock.h"
#include "ingest/ingest.h"
#include "proto/status.h"

#define FOREIGN_NAMES_MOST 1000000u         /* limit of symbols of a names build */
#define FOREIGN_NAMES_BYTES (64u << 20)     /* limit of bytes of their names and files */
#define FOREIGN_OTHER_NAMES "[other names]" /* symbol that stands for all names beyond these limits */
#define FOREIGN_NAME_BYTES 1024u            /* limit of a name or file; a longer one is cut */
#define FOREIGN_TYPES_MOST 32u              /* limit of names builds of a profile */
#define FOREIGN_MEMORY ((size_t)256 << 20)  /* limit of the memory that one profile takes */

/* Adds the size and the bytes of a text to a digest. */
struct sha256_ctx;
void foreign_hash(struct sha256_ctx *c, struct foreign_text t);

/* One profile, until it is stored. */
struct foreign {
    TAILQ_ENTRY(foreign) next;
    struct ingest_item item; /* after foreign_check and foreign_batch: its status */
    struct foreign_parts *parts;
};
TAILQ_HEAD(foreign_list, foreign);

/* What the daemon remembers of stored names builds. One for all adaptors. */
struct foreign_names;
enum profd_status foreign_names_new(struct foreign_names **out, struct profd_error *e);
/* Accepts NULL. */
void foreign_names_free(struct foreign_names *names);

/* A request with profiles. */
struct foreign_request {
    struct foreign_names *names;
    uint32_t uid;     /* of the sender: a user, or a tenant */
    int64_t received; /* ns */
    /* Sets *name to the name of the sending host. stated is the host that the labels name, "" if they name none.
     * FORBIDDEN if the sender may not send for that host. NULL: the label host is the stated one. */
    enum profd_status (*find_host)(void *context, const char *stated, char name[256], struct profd_error *e);
    void *context;
    const char *target, *content_type; /* of the request; target with its query */
    const uint8_t *body;
    size_t size;
};

/* What every profile has. Texts are copied. */
struct foreign_head {
    uint32_t uid;        /* of the sender: a user, or a tenant */
    int64_t received;    /* ns */
    uint64_t start, end; /* ns; 0: unknown */
    struct foreign_text service;
    const uint8_t *id;      /* UPLOAD_SENDER_SIZE bytes, or NULL. Profiles with the same id count once in a day */
    const uint8_t *seed;    /* 32 bytes. If id is NULL, the id is a digest of these, the builds and the counts.
                               If both are NULL, the profile counts each time that it is sent */
    const uint8_t *process; /* 16 bytes that all profiles of one process have; NULL: unknown */
    uint32_t inexact;       /* reasons besides INEXACT_SAMPLED, which each profile has */
};
/* Returns an empty profile, which the caller frees with foreign_free. names outlives it. */
enum profd_status foreign_new(struct foreign_names *names, const struct foreign_head *head, struct foreign **out,
                              struct profd_error *e);
/* Accepts NULL. */
void foreign_free(struct foreign *f);

/* Adds a label. Characters that the name of a label cannot have become '_'. Bytes of the value that are not UTF-8
 * become '?'. If the value is too long or there are too many labels, the label is left out, and the upload is marked
 * label-left-out. Does nothing if the value is empty or the label exists. NO_MEMORY or OK. */
enum profd_status foreign_add_label(struct foreign *f, struct foreign_text name, struct foreign_text value,
                                    struct profd_error *e);

/* Finds or adds a build. REFUSED if id is not a build-id, TOO_LARGE if there are too many. */
enum profd_status foreign_take_build(struct foreign *f, struct foreign_text id, struct foreign_text name,
                                     uint32_t *build, struct profd_error *e);
/* The main executable. Default: the first build of a frame. */
void foreign_set_program(struct foreign *f, uint32_t build);

/* Code at a link-time address. The address of a caller lies inside its call instruction, as in pprof and OTLP. The
 * upload has this address plus 1, as a return address. */
struct foreign_frame {
    uint32_t build;
    uint64_t address;
};
/* Finds or adds the frame of a name. type is that of the code, such as "cpython" or "kernel". file may be empty. An
 * empty name becomes "[unnamed]". TOO_LARGE if there are more than FOREIGN_TYPES_MOST types, or if FOREIGN_MEMORY is
 * used up. O(name) expected. */
enum profd_status foreign_take_name(struct foreign *f, struct foreign_text type, struct foreign_text name,
                                    struct foreign_text file, struct foreign_frame *out, struct profd_error *e);

/* Adds a sample: n frames, the innermost first. If there are more than LIMIT_STACK_DEPTH, the outer ones are left out.
 * Nothing is added if n or value is 0. NO_MEMORY, TOO_LARGE or OK. O(n) expected. */
enum profd_status foreign_add(struct foreign *f, const struct foreign_clock *clock, const struct foreign_frame *frames,
                              size_t n, uint64_t value, struct profd_error *e);

/* Makes the upload and validates it, as ingest_check does. f->item.status says whether it can be stored. */
void foreign_check(struct foreign *f, struct build_cache *cache, uint64_t generation);
/* Runs on the writer's thread. Stores new names, then the uploads of all profiles that can be stored, in one
 * transaction, as ingest_batch does. generation is as there. full says why nothing may be stored, or is NULL.
 * f->item.status has the outcome of each profile. It is BUSY if the address of a new name was taken by another name.
 * When the profile is sent again, the name gets another address. */
void foreign_batch(struct foreign_names *names, struct store *s, uint64_t generation, const struct profd_error *full,
                   struct foreign *const *list, size_t n);

#endif
