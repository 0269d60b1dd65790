/* The sans-I/O client against frames made by hand: every cut, every refusal, every order. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profd.h"
#include "proto/counts.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/message.h"

struct bytes {
    uint8_t *data;
    size_t size;
};

static void add(struct bytes *b, const struct message *m, uint16_t flags, uint32_t tag)
{
    uint8_t *frame;
    size_t size;
    cr_assert_eq(message_encode(m, flags, tag, &frame, &size, NULL), PROFD_OK);
    b->data = realloc(b->data, b->size + size);
    memcpy(b->data + b->size, frame, size);
    b->size += size;
    free(frame);
}

static void add_welcome(struct bytes *b, uint32_t version)
{
    struct message m = {.type = FRAME_WELCOME};
    m.as.welcome = (struct message_welcome){version, 1 << 20, 16, "profd test", 1, 0, false};
    add(b, &m, 0, 1);
}

static void add_ack(struct bytes *b, uint32_t tag, bool duplicate)
{
    struct message m = {.type = FRAME_ACK};
    m.as.ack.duplicate = duplicate;
    add(b, &m, 0, tag);
}

static void add_nack(struct bytes *b, uint32_t tag, uint32_t status, bool retry)
{
    struct message m = {.type = FRAME_NACK};
    m.as.nack = (struct message_nack){status, retry, 77, "because of 42"};
    add(b, &m, 0, tag);
}

static void add_reply(struct bytes *b, uint32_t tag, const char *body, bool last)
{
    struct message m = {.type = FRAME_REPLY};
    m.as.reply = (struct message_reply){200, "text/plain", "\"e\"", {(const uint8_t *)body, strlen(body)}, 0, 0};
    add(b, &m, last ? FRAME_FLAG_LAST : 0, tag);
}

/* Takes everything that waits to be sent, in pieces of at most `piece` bytes; returns the number of descriptors. */
static size_t drain(struct profd_client *c, struct bytes *b, size_t piece)
{
    size_t fds_seen = 0;
    for (;;) {
        const void *p;
        size_t n, fd_count;
        int fds[2];
        profd_client_output(c, &p, &n, fds, &fd_count);
        if (n == 0) {
            return fds_seen;
        }
        for (size_t i = 0; i < fd_count; i++) {
            struct stat s;
            cr_assert_eq(fstat(fds[i], &s), 0, "a descriptor is open while it waits");
        }
        fds_seen += fd_count;
        n = n < piece ? n : piece;
        b->data = realloc(b->data, b->size + n);
        memcpy(b->data + b->size, p, n);
        b->size += n;
        profd_client_sent(c, n);
    }
}

/* The i-th frame of a run of frames. */
static void frame_at(const struct bytes *b, size_t i, struct frame_header *f, struct message *m)
{
    size_t at = 0;
    for (;; i--) {
        cr_assert_leq(at + FRAME_HEADER_SIZE, b->size);
        cr_assert_eq(frame_decode(b->data + at, f, NULL), PROFD_OK);
        if (i == 0) {
            break;
        }
        at += FRAME_HEADER_SIZE + f->length;
    }
    cr_assert_eq(message_decode(f->type, b->data + at + FRAME_HEADER_SIZE, f->length, m, NULL), PROFD_OK);
}

static struct profd_client *client_open(void)
{
    struct profd_client *c;
    struct profd_event event;
    struct bytes welcome = {0}, out = {0};
    cr_assert_eq(profd_client_new("test 1", &c, NULL), PROFD_OK);
    drain(c, &out, 1000);
    add_welcome(&welcome, FRAME_VERSION);
    cr_assert_eq(profd_client_feed(c, welcome.data, welcome.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &event));
    cr_assert_eq(event.kind, PROFD_EVENT_READY);
    cr_assert_str_eq(event.name, "profd test");
    cr_assert_eq(profd_client_in_flight(c), 0);
    free(welcome.data);
    free(out.data);
    return c;
}

static struct profd_upload *upload_make(void)
{
    struct profd_upload *u;
    uint32_t at;
    const uint32_t index[] = {0, 3};
    const uint64_t ticks[] = {5, 7};
    const struct profd_histogram h = {0, 10, 100, 2, 0x1000, 0x1040, index, ticks};
    const struct profd_arc arc = {PROFD_NOWHERE, 0, 0x99, 0x1010, 12};
    cr_assert_eq(profd_upload_new(&u, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_build(u, "ABCD0123", "/bin/x", &at, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_histogram(u, &h, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_arc(u, &arc, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_label(u, "service", "web", NULL), PROFD_OK);
    profd_upload_set_window(u, 3, 9);
    profd_upload_set_inexact(u, PROFD_INEXACT_CALLS_LOST);
    return u;
}

Test(client_wire, hello_goes_first_and_alone)
{
    struct profd_client *c;
    struct bytes out = {0}, welcome = {0};
    struct frame_header f;
    struct message m;
    cr_assert_eq(profd_client_new("test 1", &c, NULL), PROFD_OK);
    cr_assert_eq(profd_client_send_query(c, "/x", NULL, NULL, NULL), PROFD_OK);
    drain(c, &out, 3);
    frame_at(&out, 0, &f, &m);
    cr_assert_eq(f.type, FRAME_HELLO);
    cr_assert_eq(out.size, FRAME_HEADER_SIZE + f.length, "nothing but HELLO before WELCOME");
    cr_assert_str_eq(m.as.hello.client, "test 1");
    cr_assert_eq(m.as.hello.version_newest, FRAME_VERSION);
    message_done(&m);
    add_welcome(&welcome, FRAME_VERSION);
    cr_assert_eq(profd_client_feed(c, welcome.data, welcome.size, NULL), PROFD_OK);
    drain(c, &out, 3);
    frame_at(&out, 1, &f, &m);
    cr_assert_eq(f.type, FRAME_QUERY);
    cr_assert_str_eq(m.as.query.target, "/x");
    message_done(&m);
    free(out.data);
    free(welcome.data);
    profd_client_free(c);
}

Test(client_wire, an_upload_arrives_as_it_was_made)
{
    struct profd_client *c = client_open();
    struct profd_upload *u = upload_make();
    struct profd_id id = {.sender = {1, 2, 3}, .sequence = 7};
    struct bytes out = {0};
    struct frame_header f;
    struct message m;
    struct counts counts;
    uint32_t tag = 0;
    cr_assert_eq(profd_client_send_upload(c, u, &id, &tag, NULL), PROFD_OK);
    drain(c, &out, 7);
    frame_at(&out, 0, &f, &m);
    cr_assert_eq(f.type, FRAME_UPLOAD);
    cr_assert_eq(f.tag, tag);
    const struct message_upload *up = &m.as.upload;
    cr_assert_eq(up->sender.size, 12);
    cr_assert_eq(memcmp(up->sender.data, id.sender, 12), 0);
    cr_assert_eq(up->sequence, 7);
    cr_assert_eq(up->start, 3);
    cr_assert_eq(up->end, 9);
    cr_assert_eq(up->inexact, INEXACT_CALLS_LOST);
    cr_assert_eq(up->processes_started, 1);
    cr_assert_eq(up->build_count, 1);
    cr_assert_str_eq(up->builds[0].build_id, "abcd0123", "folded to lower case");
    cr_assert_str_eq(up->labels[0].value, "web");
    cr_assert_eq(counts_decode(up->counts.data, up->counts.size, 1, &counts, NULL), PROFD_OK);
    cr_assert_eq(counts.bin_count, 2);
    cr_assert_eq(counts.bin_ticks[1], 7);
    cr_assert_eq(counts.bin_index[1], 3);
    cr_assert_eq(counts.from_build[0], COUNTS_NOWHERE);
    cr_assert_eq(counts.calls[0], 12);
    counts_done(&counts);
    message_done(&m);
    free(out.data);
    profd_upload_free(u);
    profd_client_free(c);
}

/* All kinds of answers, out of order, cut at every byte: the same events. */
static void events_check(struct profd_client *c)
{
    struct profd_event e;
    cr_assert(profd_client_next(c, &e));
    cr_assert(e.kind == PROFD_EVENT_WANT_OBJECT && strcmp(e.build_id, "abcd0123") == 0 &&
              strcmp(e.name, "/bin/x") == 0);
    cr_assert(profd_client_next(c, &e));
    cr_assert(e.kind == PROFD_EVENT_ACK && e.tag == 3 && e.duplicate);
    cr_assert(profd_client_next(c, &e));
    cr_assert(e.kind == PROFD_EVENT_REPLY && e.tag == 4 && !e.last && e.http_status == 200);
    cr_assert_eq(e.body_size, 3);
    cr_assert_eq(memcmp(e.body, "one", 3), 0);
    cr_assert(profd_client_next(c, &e));
    cr_assert(e.kind == PROFD_EVENT_NACK && e.tag == 2 && e.status == PROFD_BUSY && e.retry && e.retry_after_ms == 77);
    cr_assert_str_eq(e.sentence, "because of 42");
    cr_assert(profd_client_next(c, &e));
    cr_assert(e.kind == PROFD_EVENT_REPLY && e.tag == 4 && e.last && e.body_size == 0);
    cr_assert(!profd_client_next(c, &e));
    cr_assert_eq(profd_client_in_flight(c), 0);
}

Test(client_wire, answers_cut_at_every_byte)
{
    struct bytes b = {0};
    struct message want = {.type = FRAME_WANT_OBJECT};
    want.as.want_object = (struct message_want_object){"abcd0123", "/bin/x"};
    add(&b, &want, 0, 0);
    add_ack(&b, 3, true);
    add_reply(&b, 4, "one", false);
    add_nack(&b, 2, PROFD_BUSY, true);
    add_reply(&b, 4, "", true);
    struct profd_upload *u = upload_make();
    const struct profd_id id = {.sender = {1}, .sequence = 1};
    for (size_t cut = 0; cut <= b.size; cut++) {
        struct profd_client *c = client_open();
        uint32_t tag = 0;
        cr_assert_eq(profd_client_send_upload(c, u, &id, &tag, NULL), PROFD_OK);
        cr_assert_eq(tag, 2);
        cr_assert_eq(profd_client_send_sync(c, &tag, NULL), PROFD_OK);
        cr_assert_eq(profd_client_send_query(c, "/q", "\"e\"", &tag, NULL), PROFD_OK);
        cr_assert_eq(tag, 4);
        cr_assert_eq(profd_client_feed(c, b.data, cut, NULL), PROFD_OK);
        cr_assert_eq(profd_client_feed(c, b.data + cut, b.size - cut, NULL), PROFD_OK);
        events_check(c);
        profd_client_free(c);
    }
    struct profd_client *c = client_open();
    uint32_t tag = 0;
    profd_client_send_upload(c, u, &id, &tag, NULL);
    profd_client_send_sync(c, &tag, NULL);
    profd_client_send_query(c, "/q", NULL, &tag, NULL);
    for (size_t i = 0; i < b.size; i++) {
        cr_assert_eq(profd_client_feed(c, b.data + i, 1, NULL), PROFD_OK);
    }
    events_check(c);
    profd_client_free(c);
    profd_upload_free(u);
    free(b.data);
}

/* What breaks the protocol: the status, a word of the sentence, and that the client stays dead. */
static void dies(struct profd_client *c, const struct bytes *b, enum profd_status status, const char *word)
{
    struct profd_error e = {""};
    cr_assert_eq(profd_client_feed(c, b->data, b->size, &e), status, "%s", e.sentence);
    cr_assert(strstr(e.sentence, word), "\"%s\" lacks \"%s\"", e.sentence, word);
    cr_assert_eq(profd_client_feed(c, "", 0, NULL), status);
    cr_assert_eq(profd_client_send_sync(c, NULL, NULL), status);
    const void *p;
    size_t n, fd_count;
    int fds[2];
    profd_client_output(c, &p, &n, fds, &fd_count);
    cr_assert_eq(n, 0, "a dead client sends nothing");
    profd_client_free(c);
    free(b->data);
}

Test(client_wire, unknown_type)
{
    struct bytes b = {calloc(1, 12), 12};
    frame_encode(&(struct frame_header){0, FRAME_VERSION, 99, 0, 5}, b.data);
    dies(client_open(), &b, PROFD_UNKNOWN_TYPE, "99");
}

Test(client_wire, a_length_beyond_the_limit)
{
    struct bytes b = {calloc(1, 12), 12};
    frame_encode(&(struct frame_header){UINT32_MAX, FRAME_VERSION, FRAME_ACK, 0, 5}, b.data);
    dies(client_open(), &b, PROFD_TOO_LARGE, "4294967295");
}

Test(client_wire, descriptors_from_the_daemon)
{
    struct bytes b = {calloc(1, 12), 12};
    frame_encode(&(struct frame_header){0, FRAME_VERSION, FRAME_ACK, 1 << FRAME_FLAG_FDS_SHIFT, 5}, b.data);
    dies(client_open(), &b, PROFD_PROTOCOL, "descriptors");
}

Test(client_wire, an_answer_nobody_asked_for)
{
    struct bytes b = {0}, q = {0}, p = {0};
    add_ack(&b, 42, false);
    dies(client_open(), &b, PROFD_PROTOCOL, "42");
    struct profd_client *c = client_open(); /* an ACK is no answer to a QUERY */
    uint32_t tag = 0;
    profd_client_send_query(c, "/q", NULL, &tag, NULL);
    add_ack(&q, tag, false);
    dies(c, &q, PROFD_PROTOCOL, "tag 2");
    c = client_open(); /* nor is a REPLY one to a SYNC */
    profd_client_send_sync(c, &tag, NULL);
    add_reply(&p, tag, "x", true);
    dies(c, &p, PROFD_PROTOCOL, "REPLY");
}

Test(client_wire, a_client_gets_no_uploads)
{
    struct bytes b = {0};
    struct message m = {.type = FRAME_QUERY};
    m.as.query = (struct message_query){"/", ""};
    add(&b, &m, 0, 1);
    dies(client_open(), &b, PROFD_PROTOCOL, "QUERY");
}

Test(client_wire, welcome_of_another_version_or_twice)
{
    struct profd_client *c;
    struct bytes b = {0}, twice = {0}, early = {0};
    cr_assert_eq(profd_client_new(NULL, &c, NULL), PROFD_OK);
    add_welcome(&b, 9);
    dies(c, &b, PROFD_UNKNOWN_VERSION, "9");
    add_welcome(&twice, FRAME_VERSION);
    dies(client_open(), &twice, PROFD_PROTOCOL, "twice");
    cr_assert_eq(profd_client_new(NULL, &c, NULL), PROFD_OK);
    add_ack(&early, 1, false);
    dies(c, &early, PROFD_PROTOCOL, "before WELCOME");
}

Test(client_wire, garbage_payload)
{
    struct bytes b = {calloc(1, 15), 15};
    frame_encode(&(struct frame_header){3, FRAME_VERSION, FRAME_REPLY, 0, 5}, b.data);
    memset(b.data + 12, 0xff, 3);
    dies(client_open(), &b, PROFD_MALFORMED, "byte 0");
}

Test(client_wire, a_nack_of_the_connection_is_an_event_and_the_end)
{
    struct profd_client *c = client_open();
    struct bytes b = {0};
    struct profd_event e;
    add_nack(&b, 0, PROFD_STOPPING, true);
    cr_assert_eq(profd_client_feed(c, b.data, b.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &e));
    cr_assert_eq(e.kind, PROFD_EVENT_CLOSED);
    cr_assert_eq(e.status, PROFD_STOPPING);
    cr_assert_eq(profd_client_feed(c, "garbage behind it", 17, NULL), PROFD_OK);
    cr_assert(!profd_client_next(c, &e));
    cr_assert_eq(profd_client_send_sync(c, NULL, NULL), PROFD_STOPPING);
    profd_client_free(c);
    free(b.data);
}

Test(client_wire, a_nack_instead_of_welcome)
{
    struct profd_client *c;
    struct bytes b = {0};
    struct profd_event e;
    cr_assert_eq(profd_client_new(NULL, &c, NULL), PROFD_OK);
    add_nack(&b, 1, PROFD_UNKNOWN_VERSION, false);
    cr_assert_eq(profd_client_feed(c, b.data, b.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &e) && e.kind == PROFD_EVENT_CLOSED && e.status == PROFD_UNKNOWN_VERSION);
    profd_client_free(c);
    free(b.data);
}

Test(client_wire, an_unknown_status_code_keeps_its_sentence)
{
    struct profd_client *c = client_open();
    struct bytes b = {0};
    struct profd_event e;
    uint32_t tag = 0;
    profd_client_send_sync(c, &tag, NULL);
    add_nack(&b, tag, 999, true);
    cr_assert_eq(profd_client_feed(c, b.data, b.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &e) && e.kind == PROFD_EVENT_NACK);
    cr_assert_eq(e.status, PROFD_INTERNAL);
    cr_assert(e.retry);
    cr_assert_str_eq(e.sentence, "because of 42");
    profd_client_free(c);
    free(b.data);
}

Test(client_wire, objects_travel_with_their_first_byte)
{
    struct profd_client *c = client_open();
    struct profd_executable *x;
    struct bytes b = {0}, out = {0};
    struct profd_event e;
    struct frame_header f;
    struct message m;
    cr_assert_eq(profd_executable_open("/proc/self/exe", &x, NULL), PROFD_OK);
    struct message want = {.type = FRAME_WANT_OBJECT};
    want.as.want_object = (struct message_want_object){profd_executable_build_id(x), "me"};
    add(&b, &want, 0, 900);
    add(&b, &want, 0, 901);
    cr_assert_eq(profd_client_feed(c, b.data, b.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &e));
    cr_assert_eq(profd_client_send_object(c, &e, x, NULL, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &e));
    cr_assert_eq(profd_client_send_decline(c, &e, "no", NULL), PROFD_OK);
    cr_assert_eq(drain(c, &out, 5), 1, "one descriptor, once");
    frame_at(&out, 0, &f, &m);
    cr_assert(f.type == FRAME_OBJECT && f.tag == 900 && frame_fds(&f) == 1);
    cr_assert_str_eq(m.as.object.build_id, profd_executable_build_id(x));
    message_done(&m);
    frame_at(&out, 1, &f, &m);
    cr_assert(f.type == FRAME_DECLINE && f.tag == 901 && frame_fds(&f) == 0);
    cr_assert_str_eq(m.as.decline.reason, "no");
    message_done(&m);
    cr_assert_eq(profd_client_in_flight(c), 1, "an OBJECT is answered, a DECLINE is not");
    profd_client_send_object(c, NULL, x, NULL, NULL); /* never sent: its descriptor is closed by free */
    int next = dup(0);
    profd_client_free(c);
    close(next);
    int after = dup(0);
    cr_assert_lt(after, next, "descriptors that were not sent are closed");
    close(after);
    profd_executable_free(x);
    free(b.data);
    free(out.data);
}

Test(client_wire, an_upload_without_builds_and_a_bad_query)
{
    struct profd_client *c = client_open();
    struct profd_upload *u;
    struct profd_id id = {.sequence = 1};
    char target[LIMIT_QUERY_BYTES + 2];
    cr_assert_eq(profd_upload_new(&u, NULL), PROFD_OK);
    cr_assert_eq(profd_client_send_upload(c, u, &id, NULL, NULL), PROFD_REFUSED);
    cr_assert_eq(profd_client_send_query(c, "no-slash", NULL, NULL, NULL), PROFD_BAD_QUERY);
    memset(target, '/', sizeof target - 1);
    target[sizeof target - 1] = '\0';
    cr_assert_eq(profd_client_send_query(c, target, NULL, NULL, NULL), PROFD_BAD_QUERY);
    cr_assert_eq(profd_client_in_flight(c), 0);
    profd_upload_free(u);
    profd_client_free(c);
}

Test(client_wire, an_operators_verb_is_told_how_far_it_is)
{
    static const char *const arguments[] = {"abcd", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct profd_client *c = client_open();
    struct bytes out = {0}, in = {0};
    struct profd_event event;
    struct profd_error e = {""};
    struct frame_header f;
    struct message m;
    uint32_t tag = 0, other = 0;
    cr_assert_eq(profd_client_send_admin(c, "delete", arguments, 9, &tag, &e), PROFD_USAGE);
    cr_assert_not_null(strstr(e.sentence, "9 arguments, at most 8"), "%s", e.sentence);
    cr_assert_eq(profd_client_send_admin(c, "delete", arguments, 1, &tag, NULL), PROFD_OK);
    cr_assert_eq(profd_client_send_admin(c, "verify", NULL, 0, &other, NULL), PROFD_OK);
    drain(c, &out, 5);
    frame_at(&out, 0, &f, &m);
    cr_assert(f.type == FRAME_ADMIN && f.tag == tag && m.as.admin.argument_count == 1);
    cr_assert_str_eq(m.as.admin.verb, "delete");
    cr_assert_str_eq(m.as.admin.arguments[0], "abcd");
    message_done(&m);
    m = (struct message){.type = FRAME_REPLY};
    m.as.reply = (struct message_reply){.content_type = "", .etag = "", .done = 3, .total = 9};
    add(&in, &m, 0, other);
    add_reply(&in, other, "{}", true);
    add_nack(&in, tag, PROFD_NOT_FOUND, false);
    cr_assert_eq(profd_client_feed(c, in.data, in.size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(profd_client_next(c, &event) && event.kind == PROFD_EVENT_REPLY && event.tag == other);
    cr_assert(!event.last && event.http_status == 0 && event.body_size == 0 && event.done == 3 && event.total == 9);
    cr_assert(profd_client_next(c, &event) && event.last && event.http_status == 200 && event.done == 0);
    cr_assert(profd_client_next(c, &event) && event.kind == PROFD_EVENT_NACK && event.status == PROFD_NOT_FOUND);
    cr_assert_eq(profd_client_in_flight(c), 0);
    /* an answer to what was not asked */
    in.size = 0;
    add_reply(&in, other, "x", true);
    cr_assert_eq(profd_client_feed(c, in.data, in.size, NULL), PROFD_PROTOCOL);
    free(in.data);
    free(out.data);
    profd_client_free(c);
}

static void expect_upload(const struct bytes *b, size_t at, uint64_t ticks)
{
    struct frame_header f;
    struct message m;
    struct counts c;
    frame_at(b, at, &f, &m);
    cr_assert_eq(f.type, FRAME_UPLOAD);
    cr_assert_eq(f.version, FRAME_VERSION);
    cr_assert_eq(counts_decode(m.as.upload.counts.data, m.as.upload.counts.size, 1, &c, NULL), PROFD_OK);
    cr_assert(c.arc_count == 1 && c.calls[0] == 12 && c.bin_count == 2);
    cr_assert_str_eq(m.as.upload.labels[0].name, "service");
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c.node_count; i++) {
        sum += c.node_ticks[i];
    }
    cr_assert_eq(sum, ticks);
    counts_done(&c);
    message_done(&m);
}

static void add_stacks(struct profd_upload *u)
{
    const uint32_t build[] = {0, PROFD_NOWHERE, 0};
    const uint64_t address[] = {0x1010, 77, 0x1020};
    const struct profd_stack stack = {
        .rate = 100, .frames = 3, .pc = true, .build = build, .address = address, .ticks = 5};
    const struct profd_stack cut = {
        .rate = 100, .frames = 1, .incomplete = true, .build = build, .address = address, .ticks = 7};
    cr_assert_eq(profd_upload_add_stack(u, &stack, NULL), PROFD_OK);
    cr_assert_eq(profd_upload_add_stack(u, &cut, NULL), PROFD_OK);
}

/* Queued before and after the daemon's answer to HELLO. */
Test(client_wire, stacks_are_sent)
{
    struct profd_client *c;
    struct profd_event event;
    struct bytes out = {0}, welcome = {0};
    struct profd_id id = {.sequence = 1};
    struct profd_upload *u = upload_make();
    add_stacks(u);
    cr_assert_eq(profd_client_new("test 1", &c, NULL), PROFD_OK);
    cr_assert_eq(profd_client_send_upload(c, u, &id, NULL, NULL), PROFD_OK);
    drain(c, &out, 1000);
    add_welcome(&welcome, FRAME_VERSION);
    cr_assert_eq(profd_client_feed(c, welcome.data, welcome.size, NULL), PROFD_OK);
    cr_assert(profd_client_next(c, &event));
    id.sequence = 2;
    cr_assert_eq(profd_client_send_upload(c, u, &id, NULL, NULL), PROFD_OK);
    drain(c, &out, 1000);
    expect_upload(&out, 1, 12);
    expect_upload(&out, 2, 12);
    free(out.data);
    free(welcome.data);
    profd_client_free(c);
    profd_upload_free(u);
}

Test(client_wire, a_stack_that_cannot_be_is_refused)
{
    struct profd_upload *u = upload_make();
    struct profd_error e;
    uint32_t build[] = {0, 1};
    const uint64_t address[] = {1, 2};
    struct profd_stack s = {.rate = 100, .frames = 2, .pc = true, .build = build, .address = address, .ticks = 5};
    cr_assert_eq(profd_upload_add_stack(u, &s, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "build 1") != NULL, "%s", e.sentence);
    build[1] = 0;
    s.ticks = 0;
    cr_assert_eq(profd_upload_add_stack(u, &s, &e), PROFD_REFUSED);
    s.ticks = 1;
    s.frames = 0;
    cr_assert_eq(profd_upload_add_stack(u, &s, &e), PROFD_REFUSED);
    s.frames = 1;
    s.rate = 0;
    cr_assert_eq(profd_upload_add_stack(u, &s, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "rate is 0") != NULL, "%s", e.sentence);
    profd_upload_free(u);
}
