#include "profctl/profctl_admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl_progress.h"

#define ANSWER_MAX ((size_t)16 << 20)
#define ANSWER_MS 600000u /* a full disk may take its time to say so */

struct answer {
    struct progress progress;
    const char *word;
    char *bytes;
    size_t size;
};

static enum profd_status answer_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                     struct profd_error *e)
{
    struct answer *a = context;
    if (n == 0) {
        progress_show(&a->progress, a->word, answer->done, answer->total, "");
        return PROFD_OK;
    }
    char *grown = a->size + n < ANSWER_MAX ? realloc(a->bytes, a->size + n + 1) : NULL;
    if (!grown) {
        return profd_error_set(e, PROFD_TOO_LARGE, "no memory for an answer of %zu bytes", a->size + n);
    }
    memcpy(grown + a->size, bytes, n);
    a->bytes = grown;
    a->size += n;
    a->bytes[a->size] = '\0';
    return PROFD_OK;
}

enum profd_status admin_read(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                             const char *word, char **text, size_t *size, struct profd_error *e)
{
    struct profd_conn *conn;
    struct answer a = {.word = word};
    const struct profd_options o = profctl_options(call, ANSWER_MS);
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = profd_admin(conn, verb, arguments, n, answer_take, &a, e);
    progress_end(&a.progress);
    profd_conn_close(conn);
    if (status == PROFD_OK && !a.bytes) {
        status = profd_error_set(e, PROFD_PROTOCOL, "empty answer of the daemon to %s", verb);
    }
    if (status != PROFD_OK) {
        free(a.bytes);
        return status;
    }
    *text = a.bytes;
    *size = a.size;
    return PROFD_OK;
}

enum profd_status admin_ask(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                            const char *word, bool list, struct rows **out, struct profd_error *e)
{
    char *text;
    size_t size;
    enum profd_status status = PROFD_OK;
    *out = NULL;
    TRY(admin_read(call, verb, arguments, n, word, &text, &size, e));
    if (call->json) {
        (void)fwrite(text, 1, size, stdout);
    } else {
        status = list ? rows_parse(text, size, out, e) : rows_parse_object(text, size, out, e);
    }
    explicit_bzero(text, size); /* it may hold a token */
    free(text);
    return status;
}
