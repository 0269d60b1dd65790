#include "relay/batch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/hex.h"
#include "proto/profd.pb-c.h"

/* Generated structures have no const; packing only reads. */
static ProtobufCBinaryData batch_data(const uint8_t *bytes, size_t n)
{
    union {
        const uint8_t *from;
        uint8_t *to;
    } cast = {.from = bytes};

    return (ProtobufCBinaryData){n, cast.to};
}

static char *batch_text(const char *text)
{
    union {
        const char *from;
        char *to;
    } cast = {.from = text};

    return cast.to;
}

/* The repeated fields of a batch. */
struct batch_lists {
    ProtobufCBinaryData uploads[LIMIT_BATCH_UPLOADS];
    Profd__Wire__Offer offers[BATCH_BUILDS], *offer_at[BATCH_BUILDS];
};

enum profd_status batch_encode(const struct batch *b, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct batch_lists *lists = malloc(sizeof *lists);
    Profd__Wire__Batch message;
    uint8_t *bytes;

    TRY(lists ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < b->upload_count; i++) {
        lists->uploads[i] = batch_data(b->uploads[i].bytes, b->uploads[i].size);
    }
    for (size_t i = 0; i < b->offer_count; i++) {
        const struct batch_offer *o = &b->offers[i];

        profd__wire__offer__init(&lists->offers[i]);
        lists->offers[i].build_id = batch_text(o->build.text);
        lists->offers[i].hash = batch_data(o->hash, o->has_hash ? sizeof o->hash : 0);
        lists->offers[i].size = o->size;
        lists->offer_at[i] = &lists->offers[i];
    }
    profd__wire__batch__init(&message);
    message.centre = batch_data(b->centre, b->has_centre ? sizeof b->centre : 0);
    message.incarnation = batch_data(b->incarnation, b->has_incarnation ? sizeof b->incarnation : 0);
    message.host = batch_text(b->host);
    message.machine = batch_text(b->machine);
    message.boot = batch_text(b->boot);
    message.version = batch_text(b->version);
    message.clock = b->clock;
    message.number = b->number;
    message.held = b->held;
    message.oldest = b->oldest;
    message.n_uploads = b->upload_count;
    message.uploads = lists->uploads;
    message.n_offers = b->offer_count;
    message.offers = lists->offer_at;
    *size = profd__wire__batch__get_packed_size(&message);
    bytes = malloc(*size + 1);
    if (bytes) {
        profd__wire__batch__pack(&message, bytes);
        *out = bytes;
    }
    free(lists);
    return bytes ? PROFD_OK : profd_no_memory(e);
}

void batch_keep(struct batch *b, size_t n)
{
    while (b->upload_count > n) {
        struct batch_upload *u = &b->uploads[--b->upload_count];

        b->bytes -= u->size;
        free(u->bytes);
    }
}

/* The error of a member that is missing or is not `what`. */
static enum profd_status batch_lacks(const char *name, const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_PROTOCOL, "the answer is not that of a centre: \"%s\" is not %s", name, what);
}

static enum profd_status batch_read_number(const json_t *object, const char *name, uint64_t *out, struct profd_error *e)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return batch_lacks(name, "a whole number", e);
    }
    *out = (uint64_t)json_integer_value(value);
    return PROFD_OK;
}

static enum profd_status batch_read_bytes(const json_t *object, const char *name, uint8_t *out, size_t size,
                                          struct profd_error *e)
{
    const char *digits = json_string_value(json_object_get(object, name));
    char again[2 * BATCH_HASH_SIZE + 1];

    if (!digits || strlen(digits) != 2 * size || strspn(digits, "0123456789abcdef") != 2 * size) {
        return batch_lacks(name, size == BATCH_CENTRE_SIZE ? "32 hexadecimal digits" : "24 hexadecimal digits", e);
    }
    for (size_t i = 0; i < size; i++) {
        memcpy(again, digits + 2 * i, 2);
        again[2] = 0;
        out[i] = (uint8_t)strtoul(again, NULL, 16);
    }
    return PROFD_OK;
}

/* Reads the first BATCH_BUILDS of a list of builds. */
static enum profd_status batch_read_builds(const json_t *object, const char *name, struct buildid *out, size_t *count,
                                           struct profd_error *e)
{
    const json_t *list = json_object_get(object, name);
    const size_t n = json_array_size(list);

    if (!json_is_array(list)) {
        return batch_lacks(name, "a list", e);
    }
    *count = n < BATCH_BUILDS ? n : BATCH_BUILDS;
    for (size_t i = 0; i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text || buildid_parse(text, strlen(text), &out[i], NULL)) {
            return batch_lacks(name, "a list of build-ids", e);
        }
    }
    return PROFD_OK;
}

/* Reads the entry of an upload. The centre may be unable to read the id of an upload that it refuses, so the place in
 * the list identifies the upload. */
static enum profd_status batch_read_result(const json_t *entry, const struct batch_upload *u, struct batch_result *out,
                                           struct profd_error *e)
{
    static const char *const outcomes[BATCH_OUTCOMES] = {"counted", "known", "put-aside", "conflict", "refused"};
    const char *word = json_string_value(json_object_get(entry, "outcome"));
    const char *detail = json_string_value(json_object_get(entry, "detail"));
    uint8_t sender[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    size_t i = 0;

    while (word && i < BATCH_OUTCOMES && strcmp(word, outcomes[i]) != 0) {
        i++;
    }
    if (!word || i == BATCH_OUTCOMES) {
        return batch_lacks("outcome", "counted, known, put-aside, conflict or refused", e);
    }
    out->outcome = (enum batch_outcome)i;
    (void)snprintf(out->detail, sizeof out->detail, "%s", detail ? detail : "");
    TRY(batch_read_number(entry, "number", &out->number, e));
    if (out->outcome == BATCH_REFUSED) {
        return PROFD_OK;
    }
    TRY(batch_read_bytes(entry, "sender", sender, sizeof sender, e));
    TRY(batch_read_number(entry, "sequence", &sequence, e));
    FAIL_IF(sequence != u->sequence || memcmp(sender, u->sender, sizeof sender) != 0, e, PROFD_PROTOCOL,
            "the answer is not that to this batch: it is of an upload that was not sent");
    return PROFD_OK;
}

static enum profd_status batch_read_object(const struct batch *b, const json_t *object, struct batch_answer *out,
                                           struct profd_error *e)
{
    const json_t *uploads = json_object_get(object, "uploads"), *went_back = json_object_get(object, "went_back");

    TRY(batch_read_bytes(object, "centre", out->centre, sizeof out->centre, e));
    TRY(batch_read_bytes(object, "incarnation", out->incarnation, sizeof out->incarnation, e));
    TRY(batch_read_number(object, "backed_up", &out->backed_up, e));
    TRY(batch_read_number(object, "wait_ms", &out->wait_ms, e));
    TRY(batch_read_number(object, "number", &out->number, e));
    if (!json_is_boolean(went_back)) {
        return batch_lacks("went_back", "true or false", e);
    }
    out->went_back = json_is_true(went_back);
    FAIL_IF(!json_is_array(uploads) || json_array_size(uploads) != b->upload_count, e, PROFD_PROTOCOL,
            "the answer is not that to this batch: it has %zu uploads, not %zu", json_array_size(uploads),
            b->upload_count);
    for (size_t i = 0; i < b->upload_count; i++) {
        TRY(batch_read_result(json_array_get(uploads, i), &b->uploads[i], &out->results[i], e));
    }
    TRY(batch_read_builds(object, "wanted", out->wanted, &out->wanted_count, e));
    return batch_read_builds(object, "send", out->send, &out->send_count, e);
}

enum profd_status batch_read_answer(const struct batch *b, const char *text, size_t n, struct batch_answer *out,
                                    struct profd_error *e)
{
    json_error_t why;
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    enum profd_status status =
        object ? batch_read_object(b, object, out, e)
               : profd_error_set(e, PROFD_PROTOCOL, "the answer is not that of a centre: %s, at byte %d", why.text,
                                 why.position);

    json_decref(object);
    return status;
}

void batch_read_problem(const char *text, size_t n, char *out, size_t size)
{
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    const char *detail = json_string_value(json_object_get(object, "detail"));

    (void)snprintf(out, size, "%s", detail ? detail : "");
    json_decref(object);
}
