#include "relay/symbols.h"

#include <stdio.h>
#include <string.h>

#include "proto/buildid.h"
#include "proto/frame.h"

#define HASH_SIZE 32

struct symbols {
    struct talk *profd, *centre;
    char next[BUILDID_TEXT_SIZE]; /* the build to be attested; "": none */
    uint8_t hash[HASH_SIZE];      /* of its object */
    uint64_t bytes;               /* sent */
    bool ended;                   /* profd does not answer */
};

/* Takes the centre's answer to a request. */
static enum profd_status symbols_ask(struct symbols *s, const struct message *request, bool *wanted,
                                     struct profd_error *e)
{
    struct message answer;
    enum profd_status status = talk_ask(s->centre, request, FRAME_ATTESTED, &answer, e);

    if (status) {
        return status;
    }
    *wanted = answer.as.attested.wanted;
    if (request->type == FRAME_ATTEST) {
        snprintf(s->next, sizeof s->next, "%s", answer.as.attested.next);
    }
    message_done(&answer);
    return PROFD_OK;
}

static enum profd_status symbols_fetch(struct symbols *s, const char *build_id, uint64_t offset, struct message *piece,
                                       struct profd_error *e)
{
    const struct message request = {.type = FRAME_FETCH_OBJECT, .as.fetch_object = {build_id, offset}};

    return talk_ask(s->profd, &request, FRAME_PARSED, piece, e);
}

/* The rest of an object, after its first piece. */
static enum profd_status symbols_send_object(struct symbols *s, const char *build_id, struct message *piece,
                                             struct profd_error *e)
{
    struct message bytes = {.type = FRAME_OBJECT_BYTES, .as.object_bytes = {.build_id = build_id}};
    struct message_object_bytes *m = &bytes.as.object_bytes;
    enum profd_status status = PROFD_OK;
    bool wanted = true;

    m->hash = (struct message_bytes){s->hash, sizeof s->hash};
    while (!status && wanted && piece->as.parsed.piece.size && piece->as.parsed.hash.size == sizeof s->hash &&
           !memcmp(piece->as.parsed.hash.data, s->hash, sizeof s->hash)) {
        m->piece = piece->as.parsed.piece;
        status = symbols_ask(s, &bytes, &wanted, e);
        m->offset += m->piece.size;
        s->bytes += m->piece.size;
        message_done(piece);
        if (!status && wanted) {
            status = symbols_fetch(s, build_id, m->offset, piece, e);
        }
    }
    return status;
}

/* Attests one build, and sends its object if the centre wants it. */
static enum profd_status symbols_attest(struct symbols *s, struct profd_error *e)
{
    char build_id[BUILDID_TEXT_SIZE];
    struct message piece, attest = {.type = FRAME_ATTEST, .as.attest = {.build_id = build_id}};
    bool wanted = false;
    enum profd_status status;

    memcpy(build_id, s->next, sizeof build_id);
    *s->next = 0;
    status = symbols_fetch(s, build_id, 0, &piece, e);
    if (status) {
        s->ended = true;
        return status;
    }
    attest.as.attest.hash = piece.as.parsed.hash;
    attest.as.attest.size = piece.as.parsed.size;
    if (piece.as.parsed.hash.size == sizeof s->hash) {
        memcpy(s->hash, piece.as.parsed.hash.data, sizeof s->hash);
    }
    status = symbols_ask(s, &attest, &wanted, e);
    if (!status && wanted) {
        status = symbols_send_object(s, build_id, &piece, e);
    }
    message_done(&piece);
    return status;
}

enum profd_status symbols_send(struct talk *profd, struct talk *centre, struct profd_error *e)
{
    const struct message ask = {.type = FRAME_ATTEST, .as.attest = {.build_id = "", .ask = true}};
    struct symbols s = {.profd = profd, .centre = centre};
    enum profd_status refused = PROFD_OK, status = PROFD_OK;
    bool wanted;

    for (unsigned n = 0; !status && n < SYMBOLS_BUILDS && s.bytes < SYMBOLS_BYTES; n++) {
        if (!*s.next) { /* at first; after a refusal; or there is no more */
            struct profd_error other;

            status = symbols_ask(&s, &ask, &wanted, refused ? &other : e);
            if (status || !*s.next) {
                break;
            }
        }
        status = symbols_attest(&s, e);
        if (status && !s.ended && !profd_status_retry(status)) { /* of this object: others follow */
            refused = status;
            status = PROFD_OK;
        }
    }
    return refused ? refused : status;
}
