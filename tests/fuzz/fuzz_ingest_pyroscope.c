/* What clients of Pyroscope push. First byte: 0 is Push in protobuf, 1 in JSON, 2 a form with the boundary X, another
 * one a body of POST /ingest behind its target and a NUL. Laws: what is refused has a sentence; what is read is at
 * least one profile. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/pyroscope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct foreign_names *names;
    char target[512] = PYROSCOPE_INGEST "?name=a";
    const char *type = "application/octet-stream";
    struct profd_error e = {""};
    struct foreign_list list = TAILQ_HEAD_INITIALIZER(list);
    struct foreign *f;
    if (size < 1 || (!names && foreign_names_new(&names, &e))) {
        return 0;
    }
    const uint8_t *body = data + 1;
    size_t n = size - 1;
    if (data[0] < 2) {
        memcpy(target, PYROSCOPE_PUSH, sizeof PYROSCOPE_PUSH);
        type = data[0] == 0 ? "application/proto" : "application/json";
    } else if (data[0] == 2) {
        type = "multipart/form-data; boundary=X";
    } else {
        const uint8_t *end = memchr(body, 0, n < 400 ? n : 400);
        const size_t taken = end ? (size_t)(end - body) : 0;
        memcpy(target, PYROSCOPE_INGEST "?", sizeof PYROSCOPE_INGEST);
        memcpy(target + sizeof PYROSCOPE_INGEST, body, taken);
        target[sizeof PYROSCOPE_INGEST + taken] = '\0';
        body += taken + (end != NULL);
        n -= taken + (end != NULL);
    }
    const struct foreign_request r = {
        .names = names, .uid = 1, .received = 1, .target = target, .content_type = type, .body = body, .size = n};
    const enum profd_status status = pyroscope_read(&r, &list, &e);
    if (status ? e.sentence[0] == '\0' : TAILQ_EMPTY(&list)) {
        abort();
    }
    while ((f = TAILQ_FIRST(&list))) {
        TAILQ_REMOVE(&list, f, next);
        foreign_free(f);
    }
    return 0;
}
