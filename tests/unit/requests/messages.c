/* Each message type over a real socket: refused, accepted, repeated. */
#include "tests/unit/requests/bed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/attach_memory.h"

TestSuite(messages, .init = bed_setup, .fini = bed_teardown);

static void put_sync(int client, uint32_t tag)
{
    const struct message m = {.type = FRAME_SYNC};

    bed_put(client, &m, tag);
}

static void put_query(int client, uint32_t tag, const char *target)
{
    struct message m = {.type = FRAME_QUERY};

    m.as.query.target = target;
    m.as.query.if_none_match = "";
    bed_put(client, &m, tag);
}

static void put_admin(int client, uint32_t tag, const char *verb, const char *argument)
{
    const char *const arguments[1] = {argument};
    struct message m = {.type = FRAME_ADMIN};

    m.as.admin.verb = verb;
    m.as.admin.arguments = arguments;
    m.as.admin.argument_count = argument ? 1 : 0;
    bed_put(client, &m, tag);
}

/* The executable is asked for before the upload is acknowledged. */
static void expect_want(int client)
{
    struct frame_header f;
    const struct message *m = bed_take(client, &f);

    cr_assert_eq(f.type, FRAME_WANT_OBJECT, "type %u", f.type);
    cr_assert_str_eq(m->as.want_object.build_id, BED_BUILD);
}

Test(messages, upload)
{
    const int client = bed_join(1000, false);
    const struct upload_counts *counts = &bed.uploads.counts;
    struct message broken = {.type = FRAME_UPLOAD};

    bed_put_upload(client, 5, 1);
    expect_want(client);
    cr_assert_not(bed_expect_ack(client, 5)->as.ack.duplicate);
    bed_put_upload(client, 6, 1);
    cr_assert(bed_expect_ack(client, 6)->as.ack.duplicate, "the same upload counts once");
    broken.as.upload.host = "";
    bed_put(client, &broken, 7);
    cr_assert_not_null(strstr(bed_expect_nack(client, 7, PROFD_REFUSED)->as.nack.sentence, "sender"));
    cr_assert_eq(counts->stored, 1);
    cr_assert_eq(counts->duplicate, 1);
    cr_assert_eq(counts->calls, 10);
    cr_assert_eq(counts->refused.of[PROFD_REFUSED], 1);
    cr_assert_eq(object_service_get_counts(bed.objects).requested, 1);
    bed_fail_store();
    bed_put_upload(client, 8, 2);
    cr_assert_not_null(strstr(bed_expect_nack(client, 8, PROFD_IO)->as.nack.sentence, "the disk has gone"));
    cr_assert_eq(counts->refused.of[PROFD_IO], 1);
    close(client);
}

Test(messages, object)
{
    const int client = bed_join(1000, false), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const int text = open(bed.directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct message m = {.type = FRAME_OBJECT};

    m.as.object.build_id = "";
    m.as.object.name = "program";
    for (uint32_t tag = 1; tag < 3; tag++) { /* and repeated */
        bed_put_fd(client, &m, tag, file);
        bed_expect_ack(client, tag);
    }
    cr_assert_eq(write(text, "no ELF file", 11), 11);
    bed_put_fd(client, &m, 3, text);
    bed_expect_nack(client, 3, PROFD_REFUSED);
    m.as.object.build_id = "not hex";
    bed_put_fd(client, &m, 4, file);
    bed_expect_nack(client, 4, PROFD_REFUSED);
    m.as.object.build_id = BED_BUILD;
    bed_put_fd(client, &m, 5, file);
    bed_expect_nack(client, 5, PROFD_WRONG_BUILD);
    cr_assert_eq(object_service_get_counts(bed.objects).stored, 2);
    cr_assert_eq(object_service_get_counts(bed.objects).failed, 2);
    bed_fail_store();
    bed_put_fd(client, &m, 6, file);
    bed_expect_nack(client, 6, PROFD_IO);
    close(text), close(file), close(client);
}

Test(messages, query)
{
    const int client = bed_join(1000, false), reader = bed_join(0, true);

    put_query(client, 1, "/api/v1/builds");
    cr_assert_str_eq(bed_expect_reply(client, 1, 200), "{\"rows\":[],\"next\":null}\n");
    put_query(client, 2, "/api/v1/builds");
    cr_assert_str_eq(bed_expect_reply(client, 2, 200), "{\"rows\":[],\"next\":null}\n");
    put_query(client, 3, "/api/v1/processes?limit=5");
    cr_assert_str_eq(bed_expect_reply(client, 3, 200), "{\"rows\":[],\"next\":null}\n");
    put_query(client, 4, "/api/v1/processes?limit=x");
    cr_assert_not_null(strstr(bed_expect_reply(client, 4, 400), "limit"));
    put_query(client, 5, "/api/v1/%70rocesses");
    bed_expect_reply(client, 5, 404);
    put_query(client, 6, "/nothing");
    bed_expect_reply(client, 6, 404);
    put_query(client, 7, "/api/v1/nothing");
    bed_expect_reply(client, 7, 404);
    put_query(client, 8, "api");
    bed_expect_nack(client, 8, PROFD_BAD_QUERY);
    put_query(client, 9, "/metrics");
    bed_expect_reply(client, 9, 403);
    put_query(reader, 10, "/metrics");
    cr_assert_not_null(strstr(bed_expect_reply(reader, 10, 200), "profd_builds 0\n"));
    put_query(reader, 11, "/healthz");
    cr_assert_not_null(strstr(bed_expect_reply(reader, 11, 200), "\"writable\":true"));
    cr_assert_geq(query_service_get_durations(bed.queries)[QUERY_BUILDS].count, 2);
    cr_assert_eq(query_service_get_durations(bed.queries)[QUERY_LIVE].count, 2);
    close(client), close(reader);
}

Test(messages, a_query_behind_an_acknowledgement_sees_the_upload)
{
    const int client = bed_join(1000, false);

    put_query(client, 1, "/api/v1/builds");
    cr_assert_null(strstr(bed_expect_reply(client, 1, 200), BED_BUILD));
    bed_put_upload(client, 2, 1);
    expect_want(client);
    bed_expect_ack(client, 2);
    put_query(client, 3, "/api/v1/builds");
    cr_assert_not_null(strstr(bed_expect_reply(client, 3, 200), BED_BUILD));
    close(client);
}

Test(messages, sync)
{
    const int client = bed_join(1000, false);
    struct message m = {.type = FRAME_NACK};

    put_sync(client, 1);
    cr_assert_eq(bed_expect_ack(client, 1)->as.ack.run, 5, "it says which daemon has stored it");
    put_sync(client, 2);
    bed_expect_ack(client, 2);
    bed_put_upload(client, 3, 1);
    put_sync(client, 4); /* waits for the upload */
    expect_want(client);
    bed_expect_ack(client, 3);
    bed_expect_ack(client, 4);
    m.as.nack.status = PROFD_INTERNAL;
    m.as.nack.sentence = "a complaint";
    bed_put(client, &m, 5); /* logged, not answered */
    put_sync(client, 6);
    bed_expect_ack(client, 6);
    close(client);
}

Test(messages, admin)
{
    const int user = bed_join(1000, false), operators = bed_join(0, true);

    put_admin(user, 1, "delete", BED_BUILD);
    bed_expect_nack(user, 1, PROFD_FORBIDDEN);
    put_admin(user, 2, "pause", "1");
    bed_expect_nack(user, 2, PROFD_NOT_FOUND); /* allowed, but there is no such process */
    put_admin(operators, 3, "destroy", NULL);
    bed_expect_nack(operators, 3, PROFD_METHOD);
    put_admin(operators, 4, "delete", BED_BUILD);
    bed_expect_nack(operators, 4, PROFD_NOT_FOUND);
    bed_put_upload(user, 5, 1);
    expect_want(user);
    bed_expect_ack(user, 5);
    put_admin(operators, 6, "verify", NULL);
    cr_assert_str_eq(bed_expect_reply(operators, 6, 200), "{\"uploads\":1,\"mismatches\":0,\"rows\":[]}\n");
    put_admin(operators, 7, "delete", BED_BUILD);
    cr_assert_str_eq(bed_expect_reply(operators, 7, 200), "{\"build_id\":\"" BED_BUILD "\",\"uploads\":1}\n");
    put_admin(operators, 8, "delete", BED_BUILD);
    bed_expect_nack(operators, 8, PROFD_NOT_FOUND);
    bed_fail_store();
    put_admin(operators, 9, "delete", BED_BUILD);
    bed_expect_nack(operators, 9, PROFD_IO);
    close(user), close(operators);
}

Test(messages, decline)
{
    const int client = bed_join(1000, false), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct message m = {.type = FRAME_DECLINE};

    bed_put_upload(client, 1, 1);
    expect_want(client);
    bed_expect_ack(client, 1);
    m.as.decline.build_id = BED_BUILD;
    m.as.decline.reason = "the file is gone";
    for (uint32_t tag = 2; tag < 4; tag++) { /* and repeated: logged, not answered */
        bed_put(client, &m, tag);
    }
    bed_put_upload(client, 4, 2); /* it is not asked for again on this connection */
    bed_expect_ack(client, 4);
    m.as.decline.build_id = "";
    m.as.decline.reason = ""; /* of nothing that was asked for */
    bed_put(client, &m, 5);
    put_sync(client, 6); /* waits for no executable */
    bed_expect_ack(client, 6);
    bed_put_fd(client, &m, 7, file); /* a DECLINE carries no descriptor */
    bed_expect_nack(client, 7, PROFD_PROTOCOL);
    cr_assert_eq(object_service_get_counts(bed.objects).requested, 1);
    cr_assert_eq(object_service_get_counts(bed.objects).failed, 0);
    close(file), close(client);
}

static int gate[2];

static enum profd_status hold_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    char byte;

    (void)store, (void)job, (void)e;
    cr_assert_eq(read(gate[0], &byte, 1), 1);
    return PROFD_OK;
}

static void hold_done(struct writer_job *job)
{
    (void)job;
}

/* The writer is busy until a byte is written to the gate. */
static void hold_writer(struct writer_job *job)
{
    static const struct writer_job_type type = {.run = hold_run, .done = hold_done};

    cr_assert_eq(pipe(gate), 0);
    *job = (struct writer_job){.type = &type, .item = {.uid = 5, .weight = 1}};
    cr_assert(writer_put(bed.writer, job));
}

/* What waits when its client hangs up is not begun; what a client sent that has gone already is not even queued. */
Test(messages, requests_of_a_client_that_has_gone)
{
    const int operators = bed_join(0, true), other = bed_join(0, true), gone = bed_join(0, true);
    struct writer_job hold;

    bed_put_upload(operators, 1, 1);
    expect_want(operators);
    bed_expect_ack(operators, 1);
    hold_writer(&hold);
    put_admin(other, 2, "delete", BED_BUILD);
    bed_run(5);
    put_admin(gone, 3, "delete", BED_BUILD);
    put_sync(gone, 4);
    close(gone);
    close(other);
    for (int i = 0; i < 10000 && !bed.hung_up; i++) {
        bed_run(5);
    }
    cr_assert_eq(bed.hung_up, 1, "of the other connection nothing is in flight");
    cr_assert_eq(write(gate[1], "x", 1), 1);
    put_sync(operators, 5);
    bed_expect_ack(operators, 5);
    put_admin(operators, 6, "delete", BED_BUILD); /* behind the other */
    cr_assert_str_eq(bed_expect_reply(operators, 6, 200), "{\"build_id\":\"" BED_BUILD "\",\"uploads\":1}\n");
    close(operators), close(gate[0]), close(gate[1]);
}

Test(messages, admin_backup)
{
    const int operators = bed_join(0, true);
    uint64_t got = 0, total = 0;
    bool begun = false;
    struct frame_header f;

    put_admin(operators, 1, "backup", NULL);
    put_admin(operators, 2, "backup", NULL);
    do {
        const struct message *m = bed_take(operators, &f);

        if (f.type == FRAME_NACK) {
            cr_assert_eq(f.tag, 2);
            cr_assert_eq(m->as.nack.status, PROFD_BUSY, "one at a time");
            f.flags = 0;
            continue;
        }
        cr_assert_eq(f.type, FRAME_REPLY);
        cr_assert_eq(f.tag, 1);
        if (m->as.reply.body.size && !begun) {
            cr_assert_eq(memcmp(m->as.reply.body.data, "SQLite format 3", 16), 0);
            begun = true;
        }
        got += m->as.reply.body.size;
        total = m->as.reply.total;
    } while (!(f.flags & FRAME_FLAG_LAST));
    cr_assert_gt(got, 0);
    cr_assert_eq(got, total);
    close(operators);
}

Test(messages, attach_refused)
{
    const int client = bed_join(1000, false), text = memfd_create("text", MFD_CLOEXEC);
    const struct message m = {.type = FRAME_ATTACH};
    struct live_counts counts;

    for (uint32_t tag = 1; tag < 3; tag++) {
        struct frame_header f;

        bed_put_fd(client, &m, tag, text);
        (void)bed_take(client, &f);
        cr_assert_eq(f.type, FRAME_NACK, "such a memory is not sealed");
        cr_assert_eq(f.tag, tag);
    }
    live_get_counts(bed.live, &counts);
    cr_assert_eq(counts.processes, 0);
    cr_assert_eq(counts.attached, 0);
    bed_fail_store();
    bed_put_fd(client, &m, 3, text);
    bed_expect_nack(client, 3, PROFD_IO);
    close(text), close(client);
}

/* An ATTACH that is accepted brings a page that only the daemon can write. */
static const struct attach_page *expect_page(int client, uint32_t tag)
{
    bed_expect_ack(client, tag);
    const int fd = bed_take_fd();
    const struct attach_page *page = mmap(NULL, ATTACH_PAGE, PROT_READ, MAP_SHARED, fd, 0);

    cr_assert_neq(page, MAP_FAILED);
    cr_assert_eq(mmap(NULL, ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    cr_assert_eq(page->magic, ATTACH_PAGE_MAGIC);
    close(fd);
    return page;
}

Test(messages, attach_accepted_and_repeated)
{
    const int client = bed_join(1000, false), again = bed_join(1000, false), stranger = bed_join(1001, false);
    const int memory = bed_make_memory(1);
    const struct message m = {.type = FRAME_ATTACH};
    const struct attach_page *page;
    struct live_counts counts;
    struct frame_header f;

    bed_put_fd(client, &m, 1, memory);
    expect_want(client);
    page = expect_page(client, 1);
    cr_assert_eq(page->paused, 0);
    bed_put_fd(client, &m, 2, memory);
    bed_expect_nack(client, 2, PROFD_PROTOCOL); /* one on a connection */
    bed_put_fd(stranger, &m, 3, memory);
    bed_expect_nack(stranger, 3, PROFD_CONFLICT);
    bed_put_fd(again, &m, 4,
               memory); /* over another connection: the earlier one ends, and nothing is asked for again */
    (void)expect_page(again, 4);
    cr_assert_eq(bed_take(client, &f)->as.nack.status, PROFD_CONFLICT);
    cr_assert_eq(f.tag, 0);
    live_get_counts(bed.live, &counts);
    cr_assert_eq(counts.processes, 1);
    cr_assert_eq(counts.attached, 2);
    put_query(again, 5, "/api/v1/processes");
    cr_assert_not_null(strstr(bed_expect_reply(again, 5, 200), "\"build_id\":\"" BED_BUILD "\""));
    put_query(stranger, 6, "/api/v1/processes");
    cr_assert_str_eq(bed_expect_reply(stranger, 6, 200), "{\"rows\":[],\"next\":null}\n");
    close(memory), close(client), close(again), close(stranger);
}

Test(messages, pause_accepted_and_repeated)
{
    const int client = bed_join(1000, false), stranger = bed_join(1001, false), memory = bed_make_memory(1);
    const struct message m = {.type = FRAME_ATTACH};
    const struct attach_page *page;

    bed_put_fd(client, &m, 1, memory);
    expect_want(client);
    page = expect_page(client, 1);
    put_admin(stranger, 2, "pause", "01000000");
    bed_expect_nack(stranger, 2, PROFD_NOT_FOUND); /* not one of its own */
    cr_assert_eq(page->paused, 0);
    for (uint32_t tag = 3; tag < 5; tag++) {
        put_admin(client, tag, "pause", "01000000");
        cr_assert_not_null(strstr(bed_expect_reply(client, tag, 200), "\"state\":\"paused\""));
        cr_assert_eq(page->paused, 1);
    }
    for (uint32_t tag = 5; tag < 7; tag++) {
        put_admin(client, tag, "resume", "01000000");
        cr_assert_null(strstr(bed_expect_reply(client, tag, 200), "\"state\":\"paused\""));
        cr_assert_eq(page->paused, 0);
    }
    put_admin(client, 7, "pause", "02000000");
    bed_expect_nack(client, 7, PROFD_NOT_FOUND);
    put_admin(client, 8, "pause", NULL);
    bed_expect_nack(client, 8, PROFD_USAGE);
    bed_fail_store();
    put_admin(client, 9, "pause", "01000000"); /* nothing is written for it */
    bed_expect_reply(client, 9, 200);
    close(memory), close(client), close(stranger);
}
