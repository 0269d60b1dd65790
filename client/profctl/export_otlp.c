#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "proto/deflate.h"
#include "proto/limits.h"
#include "proto/otlp_answer.h"

#define TRIES 5u
#define WAIT_MOST 60ul /* limit of the seconds between two tries */

/* An answer of the receiver. */
struct heard {
    int http_status;
    size_t size;
    uint8_t body[4096]; /* its beginning */
};

static enum profd_status hear(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                              struct profd_error *e)
{
    struct heard *h = context;
    (void)e;
    h->http_status = answer->http_status;
    n = n < sizeof h->body - h->size ? n : sizeof h->body - h->size;
    memcpy(h->body + h->size, bytes, n);
    h->size += n;
    return PROFD_OK;
}

/* Sends until the receiver is not busy. */
static enum profd_status deliver(struct profd_conn *conn, struct https_post *post, struct heard *h,
                                 struct profd_error *e)
{
    for (unsigned i = 1;; i++) {
        h->size = 0;
        TRY(profd_query(conn, OTLP_PATH, NULL, hear, h, e));
        char *end;
        const unsigned long asked = strtoul(post->retry_after, &end, 10); /* a date is not read */
        const bool stated = post->retry_after[0] && *end == '\0';
        if (!otlp_is_busy(h->http_status) || i == TRIES || (stated && asked > WAIT_MOST)) {
            return PROFD_OK;
        }
        struct timespec left = {.tv_sec = stated ? (time_t)asked : (time_t)1 << (i - 1)};
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
    }
}

enum profd_status export_otlp(const struct profctl_call *call, const char *url, struct profd_error *e)
{
    static const char *const others[] = {"format", "exe", "output", "geometry"};
    char id[160], warning[300], *bytes = NULL;
    size_t size = 0;
    struct ask_target target;
    struct https_post post = {.ca_file = call->ca_file};
    struct heard heard = {.size = 0};
    struct profd_conn *conn = NULL;
    uint8_t *body = NULL;
    for (size_t i = 0; i < COUNT(others); i++) {
        FAIL_IF(profctl_value(call, others[i]), e, PROFD_USAGE, "export: --otlp and --%s exclude each other",
                others[i]);
    }
    FAIL_IF(strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0, e, PROFD_USAGE,
            "export: --otlp %s is neither http://127.0.0.1:PORT nor https://HOST", url);
    TRY(build_find(call, call->arguments[0], id, e));
    ask_target_init(&target, "/api/v1/builds/{}/report", id);
    ask_target_add(&target, "format", "otlp");
    ask_target_add(&target, "empty", "error");
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid", e));
    const struct profd_options from = profctl_options(call, ASK_ANSWER_MS);
    struct profd_options to = from;
    to.server = url;
    to.token_file = profctl_value(call, "otlp-token-file"); /* the receiver must not get the daemon's token */
    to.http = https_post;
    to.http_context = &post;
    TRY(profd_conn_open(&from, &conn, e));
    enum profd_status status = ask_read(conn, &target, LIMIT_REPORT_BYTES, &bytes, &size, NULL, e);
    profd_conn_close(conn);
    conn = NULL;
    status = status ? status : deflate_gzip(bytes, size, &body, &post.size, e);
    post.body = body;
    status = status ? status : profd_conn_open(&to, &conn, e);
    status = status ? status : deliver(conn, &post, &heard, e);
    status = status ? status : otlp_judge(url, heard.http_status, heard.body, heard.size, warning, sizeof warning, e);
    if (!status && *warning) {
        profctl_complain("%s accepted all profiles, with a warning: %s", url, warning);
    }
    profd_conn_close(conn);
    free(bytes);
    free(body);
    return status;
}
