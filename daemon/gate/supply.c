#include "gate/supply.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls_file.h"

#define FILES 4 /* certificate, key, ca, revoked */

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

static enum profd_status supply_send_open(int fd, const int *fds, unsigned n, struct profd_error *e)
{
    struct supply_control control = {{0}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(head), fds, n * sizeof(int));
    return sendmsg(fd, &m, MSG_NOSIGNAL) == 1
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
        status = supply_send_open(fd, fds, n, e);
    }
    supply_close(fds, n);
    return status;
}

static enum profd_status supply_receive(int fd, int fds[FILES], unsigned *n, struct profd_error *e)
{
    struct supply_control control = {{0}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    const ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&m) : NULL;

    if (got <= 0) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "the other process has ended");
    }
    if (!head || head->cmsg_type != SCM_RIGHTS) {
        return profd_error_set(e, PROFD_INTERNAL, "certificates came without descriptors");
    }
    *n = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(head), *n * sizeof(int));
    return PROFD_OK;
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

enum profd_status supply_take(int fd, const struct config *c, struct supply *out, struct profd_error *e)
{
    struct supply s = {{{0}, {0}, {0}}, NULL};
    struct tls_text *const texts[] = {&s.material.certificate, &s.material.key, &s.material.ca};
    const char *paths[FILES];
    const unsigned wanted = supply_list(c, paths);
    int fds[FILES];
    unsigned n = 0;
    enum profd_status status = supply_receive(fd, fds, &n, e);

    if (status) {
        return status;
    }
    if (n != wanted) {
        status = profd_error_set(e, PROFD_INTERNAL, "%u files came, not %u", n, wanted);
    }
    for (unsigned i = 0; i < 3 && !status; i++) {
        status = tls_file_read(fds[i], paths[i], texts[i], e);
    }
    if (!status && c->revoked) {
        status = supply_read_revoked(fds[3], c->revoked, &s.revoked, e);
    }
    supply_close(fds, n);
    if (status) {
        supply_done(&s);
        return status;
    }
    *out = s;
    return PROFD_OK;
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
