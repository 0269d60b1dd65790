/* A checked upload between check and store. Private to ingest*. */
#ifndef PROFD_INGEST_INGEST_VALIDATED_H
#define PROFD_INGEST_INGEST_VALIDATED_H

#include "core/arena.h"
#include "ingest/ingest.h"
#include "ingest/build_cache.h"
#include "proto/message.h"
#include "store/store.h"

struct ingest_validated {
    struct message message;     /* keeps strings and counts */
    struct arena *arena;        /* keeps builds and labels */
    uint8_t *cut;               /* counts without what cannot be, in place of those of the message; or NULL */
    struct store_upload upload; /* of a refusal only its id may be looked at */
};

/* What the checker remembers of builds. */
struct build_cache *ingest_checker_get_cache(struct ingest_checker *c);
/* Frees what ingest_check made, if anything. */
void ingest_validated_free(struct ingest_item *item);

#endif
