#include "tls/tls_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum profd_status tls_file_open(const char *path, bool secret, int *fd, struct profd_error *e)
{
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum profd_status status = PROFD_OK;
    struct stat st;

    if (opened < 0 || fstat(opened, &st)) {
        status = profd_error_set(e, PROFD_CONFIG, "cannot read %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode) || st.st_size > (off_t)TLS_FILE_MAX) {
        status = profd_error_set(e, PROFD_CONFIG, "%s is not a regular file of at most %u bytes", path, TLS_FILE_MAX);
    } else if (secret && (st.st_mode & 077)) {
        status = profd_error_set(e, PROFD_CONFIG, "other users may access the key in %s (mode %04o); chmod it to 0600",
                                 path, (unsigned)(st.st_mode & 07777));
    }
    if (status && opened >= 0) {
        close(opened);
    }
    *fd = status ? *fd : opened;
    return status;
}

enum profd_status tls_file_read(int fd, const char *name, struct tls_text *out, struct profd_error *e)
{
    char *data = malloc(TLS_FILE_MAX + 1);
    size_t size = 0;
    ssize_t got = 1;

    if (!data) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s", name);
    }
    while (size < TLS_FILE_MAX && got > 0) {
        got = pread(fd, data + size, TLS_FILE_MAX - size, (off_t)size);
        size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        const int failed = errno;

        OPENSSL_cleanse(data, size);
        free(data);
        return profd_error_set(e, PROFD_CONFIG, "cannot read %s: %s", name, strerror(failed));
    }
    data[size] = 0;
    *out = (struct tls_text){name, data, size};
    return PROFD_OK;
}

void tls_text_done(struct tls_text *t)
{
    if (t->data) {
        OPENSSL_cleanse(t->data, t->size);
    }
    free(t->data);
    *t = (struct tls_text){0};
}
