/* SYNC and the executables asked for; log lines; metrics; notifications. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "metrics.h"
#include "notify.h"
#include "session.h"

Test(session, a_sync_waits_for_what_came_before_and_for_nothing_else)
{
    struct session *s = session_new();
    uint64_t a = session_begin(s), b = session_begin(s), c;
    uint32_t tag = 0;
    bool failed = true;

    cr_assert_not(session_take_due(s, &tag, &failed));
    cr_assert(session_sync(s, 71));
    c = session_begin(s);
    cr_assert_not(session_take_due(s, &tag, &failed));
    session_end(s, b);
    cr_assert_not(session_take_due(s, &tag, &failed));
    session_end(s, c); /* later job, earlier answer */
    cr_assert_not(session_take_due(s, &tag, &failed));
    session_end(s, a);
    cr_assert(session_take_due(s, &tag, &failed));
    cr_assert_eq(tag, 71);
    cr_assert_not(session_take_due(s, &tag, &failed));
    cr_assert(session_sync(s, 72));
    cr_assert(session_take_due(s, &tag, &failed));
    cr_assert_eq(tag, 72);
    cr_assert_not(failed);
    session_free(s);
}

Test(session, a_job_that_failed_speaks_for_its_own_sync_only)
{
    struct session *s = session_new();
    uint64_t first = session_begin(s), second;
    uint32_t tag = 0;
    bool failed = false;

    cr_assert(session_sync(s, 5));
    second = session_begin(s);
    cr_assert(session_sync(s, 6));
    session_end(s, second);
    cr_assert_not(session_take_due(s, &tag, &failed));
    session_fail(s, first);
    cr_assert(session_take_due(s, &tag, &failed) && tag == 5 && failed);
    cr_assert(session_take_due(s, &tag, &failed) && tag == 6 && !failed);
    session_free(s);
}

/* Against the definition: SYNC i is due when every job begun before it has ended, and they come in order. */
Test(session, random_orders)
{
    unsigned seed = (unsigned)getpid() * 2654435761u;

    for (int round = 0; round < 500; round++) {
        struct session *s = session_new();
        uint64_t number[200];
        int began_before[200], job_at[200], jobs = 0, syncs = 0, taken = 0;
        bool ended[200] = {false};

        for (int step = 0; step < 200; step++) {
            uint32_t tag;
            bool failed;
            int i = jobs ? rand_r(&seed) % jobs : 0;

            if (rand_r(&seed) % 3 == 0) {
                job_at[jobs] = step;
                number[jobs++] = session_begin(s);
            } else if (jobs && rand_r(&seed) % 4) {
                if (!ended[i])
                    session_end(s, number[i]);
                ended[i] = true;
            } else {
                cr_assert(session_sync(s, (uint32_t)syncs));
                began_before[syncs++] = jobs;
            }
            while (session_take_due(s, &tag, &failed)) {
                cr_assert_eq(tag, (uint32_t)taken, "seed %u", seed);
                for (int j = 0; j < began_before[taken]; j++)
                    cr_assert(ended[j], "seed %u: job of step %d", seed, job_at[j]);
                taken++;
            }
            if (taken < syncs) {
                bool open = false;

                for (int j = 0; j < began_before[taken]; j++)
                    open = open || !ended[j];
                cr_assert(open, "seed %u: SYNC %d is due and was not given", seed, taken);
            }
        }
        session_free(s);
    }
}

Test(session, each_build_is_asked_for_once)
{
    struct session *s = session_new();
    struct buildid id;
    int asked = 0;

    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(id.text, sizeof id.text, "%040x", i);
            asked += session_ask(s, &id);
        }
    cr_assert_eq(asked, 4096);
    session_free(s);
}

/* What log_write puts on stderr. */
static void capture(char *out, size_t size, void (*f)(void))
{
    int before = dup(STDERR_FILENO), pipe_fds[2];
    ssize_t n;

    cr_assert_eq(pipe(pipe_fds), 0);
    dup2(pipe_fds[1], STDERR_FILENO);
    f();
    dup2(before, STDERR_FILENO);
    close(pipe_fds[1]);
    n = read(pipe_fds[0], out, size - 1);
    out[n > 0 ? n : 0] = 0;
    close(pipe_fds[0]);
    close(before);
}

static void write_control_bytes(void)
{
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_ERROR, NULL, "%s", "a\nb\x1b[31m\x7f\xc3\xa4");
    log_write(LOG_LEVEL_DEBUG, NULL, "not shown");
}

Test(log, control_bytes_are_escaped_and_levels_respected)
{
    char out[500];

    capture(out, sizeof out, write_control_bytes);
    cr_assert_str_eq(out, "profd: error: a\\x0ab\\x1b[31m\\x7f\xc3\xa4\n");
}

static void write_flood(void)
{
    log_open(LOG_LEVEL_INFO);
    for (int i = 0; i < 1000; i++)
        log_write(LOG_LEVEL_INFO, "flood", "line %d", i);
    log_write(LOG_LEVEL_INFO, "other", "still heard");
}

Test(log, a_flood_is_twenty_lines)
{
    char out[5000];
    int lines = 0;

    capture(out, sizeof out, write_flood);
    for (const char *p = out; (p = strchr(p, '\n')); p++)
        lines++;
    cr_assert_eq(lines, 21);
    cr_assert_not_null(strstr(out, "still heard"));
    cr_assert_eq(log_suppressed(), 980);
}

static void write_priority(void)
{
    char stream[64];
    struct stat st;

    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_WARNING, NULL, "hot");
    setenv("JOURNAL_STREAM", "1:1", 1);
    log_open(LOG_LEVEL_INFO);
    log_write(LOG_LEVEL_WARNING, NULL, "cold");
}

Test(log, the_journal_gets_priorities)
{
    char out[500];

    capture(out, sizeof out, write_priority);
    cr_assert_str_eq(out, "<4>hot\nprofd: warning: cold\n");
}

Test(metrics, endpoints)
{
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds"), METRICS_BUILDS);
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds?limit=3/report"), METRICS_BUILDS);
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds/abcd"), METRICS_BUILD);
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds/abcd/report?x=1"), METRICS_REPORT);
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds/abcd/functions/0x10"), METRICS_FUNCTIONS);
    cr_assert_eq(metrics_find_endpoint("/api/v1/builds/abcd/else"), METRICS_OTHER);
    cr_assert_eq(metrics_find_endpoint("/api/v1/buildsx"), METRICS_OTHER);
    cr_assert_eq(metrics_find_endpoint("/api/v1/labels/host/values"), METRICS_LABELS);
    cr_assert_eq(metrics_find_endpoint("/"), METRICS_OTHER);
    cr_assert_eq(metrics_find_endpoint(""), METRICS_OTHER);
}

/* The format's rules: HELP and TYPE once and before the samples, every line parses, cumulative buckets. */
Test(metrics, text_is_well_formed)
{
    static struct metrics m;
    struct metrics_view v = {.start = 1.5, .writable = true};
    struct buffer b;
    char *text, *line, *rest, current[100] = "";
    unsigned long long last_bucket = 0;

    m.uploads_rejected[PROFD_WRONG_BUILD] = 3;
    metrics_add_seconds(&m.upload_seconds, 0.0001);
    metrics_add_seconds(&m.upload_seconds, 0.0025);
    metrics_add_seconds(&m.upload_seconds, 1e9);
    buffer_init(&b, 1u << 20);
    metrics_format(&m, &v, &b);
    cr_assert_not(b.failed);
    text = strndup(b.data, b.size);
    cr_assert_not_null(strstr(text, "profd_uploads_total{result=\"rejected\",reason=\"wrong_build\"} 3\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"0.001\"} 1\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"0.0025\"} 2\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"+Inf\"} 3\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_count 3\n"));
    cr_assert_eq(text[b.size - 1], '\n');
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[100], help[100];
        double value;
        int end = 0;

        if (sscanf(line, "# HELP %99s %99s", name, help) == 2) {
            cr_assert_str_neq(name, current);
            strcpy(current, name);
            last_bucket = 0;
            continue;
        }
        if (sscanf(line, "# TYPE %99s %99s", name, help) == 2) {
            cr_assert_str_eq(name, current);
            continue;
        }
        cr_assert_eq(strncmp(line, current, strlen(current)), 0, "%s after %s", line, current);
        cr_assert_eq(sscanf(strrchr(line, ' '), "%lf%n", &value, &end), 1, "%s", line);
        if (strstr(line, "_bucket{le=")) {
            cr_assert((unsigned long long)value >= last_bucket, "%s", line);
            last_bucket = (unsigned long long)value;
        }
    }
    free(text);
    buffer_done(&b);
}

Test(notify, datagrams_reach_the_manager)
{
    char path[64], text[64] = "";
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), memory, came;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {text, sizeof text};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct stat one, other;

    snprintf(path, sizeof path, "@profd-notify-%d", (int)getpid());
    memcpy(a.sun_path + 1, path + 1, strlen(path) - 1);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, (socklen_t)(sizeof a.sun_family + strlen(path))), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    cr_assert(notify_open());
    cr_assert_null(getenv("NOTIFY_SOCKET"), "children must not inherit it");
    cr_assert_eq(notify_watchdog_ms(), 15000);
    notify_send("READY=1");
    cr_assert_eq(recv(fd, text, sizeof text, MSG_DONTWAIT), 7);
    cr_assert_str_eq(text, "READY=1");
    memory = memfd_create("kept", MFD_CLOEXEC);
    cr_assert(notify_send_fd("FDSTORE=1", memory));
    cr_assert_eq(recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), 9);
    cr_assert(CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_RIGHTS);
    memcpy(&came, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof came);
    cr_assert(!fstat(memory, &one) && !fstat(came, &other) && one.st_ino == other.st_ino);
    for (unsigned sent = 0; notify_send_fd("FDSTOREREMOVE=1", -1); sent++)
        cr_assert(sent < 100000, "a manager that does not listen is noticed");
    close(came), close(memory);
    close(fd);
}
