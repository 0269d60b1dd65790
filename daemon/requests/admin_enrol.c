/* Operators' verbs of enrolment: token, hosts, revoke. */
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "admin/revocations.h"
#include "core/container.h"
#include "log/log.h"
#include "net/loop.h"
#include "proto/enrolment.h"
#include "proto/hex.h"
#include "render/document.h"
#include "requests/admin_internal.h"
#include "requests/signing.h"
#include "store/store.h"

#define HOSTS_MAX (64u << 20) /* bytes of an answer */

/* The pin, which the signer says, and a secret; the database gets its hash. */
static enum profd_status token_make(struct admin *a, struct store *store, char *text, struct profd_error *e)
{
    struct store_enrol_token token = {
        .tenant = a->request.build, .name = "", .uses = a->request.uses, .created = loop_clock()};
    const struct message_sign nothing = {.name = "", .tenant = ""};
    uint8_t bytes[ENROLMENT_PIN_SIZE + ENROLMENT_SECRET_SIZE];
    struct base64_encode_ctx encoding;
    struct sha256_ctx sha;
    struct message issued;
    enum profd_status status = signing_ask(a->service->config.signer, &nothing, &issued, e);
    size_t n;

    if (status) {
        return status;
    }
    if (issued.as.issued.pin.size != ENROLMENT_PIN_SIZE ||
        getrandom(bytes + ENROLMENT_PIN_SIZE, ENROLMENT_SECRET_SIZE, 0) != ENROLMENT_SECRET_SIZE) {
        message_done(&issued);
        return profd_error_set(e, PROFD_IO, "no random bytes, or no pin from profd-signer");
    }
    memcpy(bytes, issued.as.issued.pin.data, ENROLMENT_PIN_SIZE);
    message_done(&issued);
    sha256_init(&sha);
    sha256_update(&sha, ENROLMENT_SECRET_SIZE, bytes + ENROLMENT_PIN_SIZE);
    sha256_digest(&sha, sizeof token.hash, token.hash);
    token.expires = token.created + (int64_t)a->request.seconds * 1000000000;
    status = store_put_enrol_token(store, &token, e);
    memcpy(text, ENROLMENT_TOKEN_PREFIX, sizeof ENROLMENT_TOKEN_PREFIX);
    base64url_encode_init(&encoding);
    n = sizeof ENROLMENT_TOKEN_PREFIX - 1;
    n += base64_encode_update(&encoding, text + n, sizeof bytes, bytes);
    text[n] = 0;
    explicit_bzero(bytes, sizeof bytes);
    a->expires = token.expires;
    return status;
}

static enum profd_status token_run(struct admin *a, struct store *store, struct profd_error *e)
{
    char text[sizeof ENROLMENT_TOKEN_PREFIX + BASE64_ENCODE_RAW_LENGTH(ENROLMENT_PIN_SIZE + ENROLMENT_SECRET_SIZE) + 4];
    enum profd_status status = token_make(a, store, text, e);

    if (!status) {
        a->answer = json_pack("{s:s, s:s, s:I, s:I}", "token", text, "tenant", a->request.build, "uses",
                              (json_int_t)a->request.uses, "expires", (json_int_t)(a->expires / 1000000000));
    }
    explicit_bzero(text, sizeof text);
    return status;
}

/* Seconds since the epoch, or null. */
static json_t *seconds_of(int64_t at)
{
    return at ? json_integer(at / 1000000000) : json_null();
}

static bool host_add(void *context, const struct store_fleet_host *h)
{
    struct admin *a = context;
    char identity[2 * STORE_HOST_SIZE + 1];
    const int64_t now = loop_clock();

    hex_put(identity, h->host, STORE_HOST_SIZE);
    a->cut = 0 != json_array_append_new(
                      json_object_get(a->answer, "rows"),
                      json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "name",
                                h->name, "identity", identity, "tenant", h->tenant, "machine_id", h->machine, "version",
                                h->version, "enrolled", h->has_enrolment, "certificate_end", seconds_of(h->not_after),
                                "revoked", seconds_of(h->revoked), "first_seen", seconds_of(h->first), "last_seen",
                                seconds_of(h->last), "last_segment", seconds_of(h->delivered), "lag_seconds",
                                h->last ? json_integer(now > h->last ? (now - h->last) / 1000000000 : 0) : json_null(),
                                "restored", seconds_of(h->restored), "two_machines", h->copied != 0,
                                "two_machines_seen", seconds_of(h->copied)));
    return !a->cut;
}

static enum profd_status hosts_run(struct admin *a, struct store *store, struct profd_error *e)
{
    enum profd_status status;

    a->answer = json_pack("{s:[], s:n}", "rows", "next");
    status = a->answer ? store_each_host(store, host_add, a, e) : PROFD_NO_MEMORY;
    return status == PROFD_NO_MEMORY || a->cut ? profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of hosts")
                                               : status;
}

static bool key_add(void *context, const struct store_enrolment *h)
{
    struct admin *a = context;
    uint8_t *larger = realloc(a->keys, (a->key_count + 1) * sizeof h->key);
    char identity[2 * STORE_HOST_SIZE + 1];

    if (!larger) {
        return false;
    }
    a->keys = larger;
    memcpy(a->keys + a->key_count++ * sizeof h->key, h->key, sizeof h->key);
    hex_put(identity, h->host, STORE_HOST_SIZE);
    return !json_array_append_new(
        json_object_get(a->answer, "rows"),
        json_pack("{s:s, s:s, s:s}", "name", h->name, "identity", identity, "tenant", h->tenant));
}

/* The file first is not possible: which keys, the database says. If the file cannot be written, the verb fails and is
 * to be repeated; it writes keys that were revoked before, too. */
static enum profd_status revoke_run(struct admin *a, struct store *store, struct profd_error *e)
{
    const int64_t now = loop_clock();
    enum profd_status status;

    a->answer = json_pack("{s:[], s:n}", "rows", "next");
    status = store_revoke(store, a->request.build, now, key_add, a, e);
    if (!status && !a->key_count) {
        status =
            profd_error_set(e, PROFD_NOT_FOUND,
                            "no enrolled host has the name or identity \"%s\"; a host with a certificate of another "
                            "CA is refused by gate-revoked",
                            a->request.build);
    }
    return status ? status
                  : revocations_write(a->service->config.revocations, REVOCATIONS_KEY, a->keys, a->key_count, now, e);
}

static void enrol_admin_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct admin *a = container_of(jobs[i], struct admin, job);

        if (full && a->request.verb == REQUEST_ENROL_TOKEN) {
            a->status = PROFD_FULL;
            a->error = *full;
        } else if (a->request.verb == REQUEST_ENROL_TOKEN) {
            a->status = token_run(a, store, &a->error);
        } else {
            a->status =
                a->request.verb == REQUEST_HOSTS ? hosts_run(a, store, &a->error) : revoke_run(a, store, &a->error);
        }
    }
}

static void enrol_admin_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);
    struct page page;

    for (size_t i = 0; i < a->key_count; i++) {
        if (!revocations_note(a->service->config.revocations, REVOCATIONS_KEY, a->keys + i * STORE_HASH_SIZE,
                              loop_clock())) {
            a->status = profd_error_set(&a->error, PROFD_NO_MEMORY, "no memory for revoked keys; repeat the command");
        }
    }
    if (a->status) {
        admin_refuse(a, a->status, a->error.sentence);
        return;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = HOSTS_MAX;
    document_write(a->answer, &page.body);
    a->answer = NULL;
    admin_answer(a, &page);
}

static const struct writer_job_type enrol_admin_type = {
    .run = enrol_admin_run, .done = enrol_admin_done, .drop = admin_drop};

enum profd_status admin_begin_enrol(struct admin *a, struct profd_error *e)
{
    const struct admin_config *c = &a->service->config;

    if (!c->revocations && a->request.verb != REQUEST_HOSTS) {
        return profd_error_set(e, PROFD_CONFIG, "this daemon is no centre: gate is not configured");
    }
    if (a->request.verb == REQUEST_ENROL_TOKEN && !c->signer) {
        return profd_error_set(e, PROFD_CONFIG, "no host can be enrolled: signer is not configured");
    }
    return writer_submit(c->writer, &a->job, &enrol_admin_type, e);
}
