#include "gate/supply.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls_file.h"

#define FILES SUPPLY_FILES

struct supply_control {
    _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(FILES * sizeof(int))];
};

static unsigned supply_list(const struct config *c, const char *paths[FILES])
{
    paths[0] = c->certificate;
    paths[1] = c->key;
    paths[2] = c->ca;
    paths[3] = c->revoked;
    return c->revoked ? 4 : 3;
}

static void supply_close(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        close(fds[i]);
    }
}

/* One message: the log level, the names with a NUL behind each, and the descriptors. */
static enum profd_status supply_send_open(int fd, enum log_level level, const char *const *paths, const int *fds,
                                          unsigned n, struct profd_error *e)
{
    struct supply_control control = {{0}};
    unsigned char byte = (unsigned char)level;
    struct iovec parts[1 + FILES] = {{&byte, 1}};
    struct msghdr m = {.msg_iov = parts,
                       .msg_iovlen = 1 + n,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);

    for (unsigned i = 0; i < n; i++) {
        parts[1 + i] = (struct iovec){(void *)(uintptr_t)paths[i], strlen(paths[i]) + 1};
    }
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(head), fds, n * sizeof(int));
    return sendmsg(fd, &m, MSG_NOSIGNAL) > 0
               ? PROFD_OK
               : profd_error_set(e, PROFD_IO, "the certificates cannot be passed on: %s", strerror(errno));
}

enum profd_status supply_send(int fd, const struct config *c, struct profd_error *e)
{
    const char *paths[FILES];
    const unsigned wanted = supply_list(c, paths);
    enum profd_status status = PROFD_OK;
    int fds[FILES] = {0};
    unsigned n = 0;

    while (n < wanted && !status) {
        status = tls_file_open(paths[n], n == 1, &fds[n], e);
        n += !status;
    }
    if (!status) {
        status = supply_send_open(fd, c->log_level, paths, fds, n, e);
    }
    supply_close(fds, n);
    return status;
}

/* paths point into s->names. */
static enum profd_status supply_receive(int fd, struct supply *s, const char *paths[FILES], int fds[FILES], unsigned *n,
                                        struct profd_error *e)
{
    struct supply_control control = {{0}};
    unsigned char level = 0;
    struct iovec parts[] = {{&level, 1}, {s->names, sizeof s->names}};
    struct msghdr m = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    const ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    const char *at = s->names, *end = s->names + (got > 0 ? got - 1 : 0);

    if (got <= 0) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "the other process has ended");
    }
    if (!head || head->cmsg_type != SCM_RIGHTS) {
        return profd_error_set(e, PROFD_INTERNAL, "certificates came without descriptors");
    }
    s->log_level = (enum log_level)level;
    *n = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(head), *n * sizeof(int));
    for (unsigned i = 0; i < *n; i++) {
        paths[i] = at < end && memchr(at, 0, (size_t)(end - at)) ? at : "a file";
        at = paths[i] == at ? at + strlen(at) + 1 : end;
    }
    return *n == FILES || *n == FILES - 1 ? PROFD_OK
                                          : profd_error_set(e, PROFD_INTERNAL, "%u certificates and keys came", *n);
}

static enum profd_status supply_read_revoked(int fd, const char *name, struct revoked **out, struct profd_error *e)
{
    struct tls_text text;
    enum profd_status status = tls_file_read(fd, name, &text, e);

    if (!status) {
        status = revoked_parse(name, text.data, text.size, out, e);
        tls_text_done(&text);
    }
    return status;
}

enum profd_status supply_take(int fd, struct supply *s, struct profd_error *e)
{
    struct tls_text *const texts[] = {&s->material.certificate, &s->material.key, &s->material.ca};
    const char *paths[FILES];
    int fds[FILES];
    unsigned n = 0;
    enum profd_status status;

    memset(&s->material, 0, sizeof s->material);
    s->revoked = NULL;
    status = supply_receive(fd, s, paths, fds, &n, e);
    for (unsigned i = 0; i < 3 && !status; i++) {
        status = tls_file_read(fds[i], paths[i], texts[i], e);
    }
    if (!status && n == FILES) {
        status = supply_read_revoked(fds[3], paths[3], &s->revoked, e);
    }
    supply_close(fds, n);
    if (status) {
        supply_done(s);
    }
    return status;
}

void supply_done(struct supply *s)
{
    tls_text_done(&s->material.certificate);
    tls_text_done(&s->material.key);
    tls_text_done(&s->material.ca);
}

void supply_confirm(int fd)
{
    (void)!send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* FNV-1a. */
static unsigned long long supply_mix(unsigned long long sum, unsigned long long value)
{
    for (unsigned i = 0; i < 8; i++) {
        sum = (sum ^ (value >> 8 * i & 255)) * 1099511628211ULL;
    }
    return sum;
}

unsigned long long supply_observe(const struct config *c)
{
    const char *paths[FILES];
    const unsigned n = supply_list(c, paths);
    unsigned long long sum = 14695981039346656037ULL;

    for (unsigned i = 0; i < n; i++) {
        struct stat st = {0};
        const int failed = stat(paths[i], &st) ? errno : 0;

        sum = supply_mix(sum, (unsigned long long)failed);
        sum = supply_mix(sum, st.st_ino);
        sum = supply_mix(sum, (unsigned long long)st.st_size);
        sum = supply_mix(sum, (unsigned long long)st.st_mtim.tv_sec * 1000000000ULL +
                                  (unsigned long long)st.st_mtim.tv_nsec);
        sum = supply_mix(sum, (unsigned long long)st.st_ctim.tv_sec * 1000000000ULL +
                                  (unsigned long long)st.st_ctim.tv_nsec);
    }
    return sum;
}
