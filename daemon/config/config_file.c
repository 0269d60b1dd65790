#include "config/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536
#define TOKEN_MIN 20
#define TOKEN_MAX 512

/* Reads a regular file of at most FILE_MAX_BYTES into a new block. errno is set on failure; EFBIG if it is too long. */
static char *config_file_slurp(int fd, size_t *n)
{
    char *text = malloc(FILE_MAX_BYTES + 1);
    size_t got = 0;
    ssize_t part = 1;

    while (text && got <= FILE_MAX_BYTES && part > 0) {
        part = read(fd, text + got, FILE_MAX_BYTES + 1 - got);
        if (part > 0) {
            got += (size_t)part;
        } else if (part < 0 && errno == EINTR) {
            part = 1;
        }
    }
    if (text && (part < 0 || got > FILE_MAX_BYTES)) {
        if (part >= 0) {
            errno = EFBIG;
        }
        free(text);
        return NULL;
    }
    *n = got;
    return text;
}

/* The system's file for root and for the users of the packaged services, otherwise the user's own. */
static void config_file_default(char *name, size_t size)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    const struct passwd *own = getpwuid(geteuid());
    const bool system = !geteuid() || (own && (!strcmp(own->pw_name, "profd") || !strcmp(own->pw_name, "profd-relay") ||
                                               !strcmp(own->pw_name, "profd-gate")));

    if (!system && xdg && *xdg == '/') {
        snprintf(name, size, "%s/profd/profd.conf", xdg);
    } else if (!system && home && *home == '/') {
        snprintf(name, size, "%s/.config/profd/profd.conf", home);
    } else {
        snprintf(name, size, "%s/profd.conf", SYSCONFDIR);
    }
}

enum profd_status config_file_read(const char *path, char *name, size_t name_size, char **text, size_t *n,
                                   struct profd_error *e)
{
    struct stat st;
    char *got;
    int fd;

    if (path) {
        snprintf(name, name_size, "%s", path);
    } else {
        config_file_default(name, name_size);
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const int why = errno;

        /* A default file that cannot be accessed (the HOME of a user that called sudo) counts as missing. */
        if (!path && stat(name, &st)) {
            return PROFD_OK;
        }
        return profd_error_set(e, PROFD_CONFIG, "cannot read the configuration %s: %s", name, strerror(why));
    }
    got = config_file_slurp(fd, n);
    close(fd);
    if (!got) {
        return profd_error_set(e, PROFD_CONFIG, "cannot read the configuration %s: %s", name,
                               errno == EFBIG ? "more than 65536 bytes" : strerror(errno));
    }
    *text = got;
    return PROFD_OK;
}

static enum profd_status config_file_judge_token(const char *path, const char *text, size_t n, struct profd_error *e)
{
    if (n < TOKEN_MIN || n > TOKEN_MAX) {
        return profd_error_set(e, PROFD_CONFIG, "the token in %s has %zu bytes; it must have %d to %d", path, n,
                               TOKEN_MIN, TOKEN_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return profd_error_set(e, PROFD_CONFIG, "byte %zu of the token in %s is not printable ASCII", i + 1, path);
        }
    }
    return PROFD_OK;
}

enum profd_status config_file_read_token(const char *path, uint8_t sha256[32], struct profd_error *e)
{
    struct sha256_ctx hash;
    enum profd_status status;
    struct stat st;
    size_t n = 0;
    char *text, *end;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &st)) {
        status = profd_error_set(e, PROFD_CONFIG, "cannot read the token file %s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    if (st.st_mode & 007) {
        close(fd);
        return profd_error_set(e, PROFD_CONFIG,
                               "other users may access the token file %s (mode %04o); chmod it to 0600", path,
                               (unsigned)(st.st_mode & 07777));
    }
    text = config_file_slurp(fd, &n);
    close(fd);
    if (!text) {
        return profd_error_set(e, PROFD_CONFIG, "cannot read the token file %s: %s", path, strerror(errno));
    }
    end = memchr(text, '\n', n);
    if (end) {
        n = (size_t)(end - text);
    }
    status = config_file_judge_token(path, text, n, e);
    if (!status) {
        sha256_init(&hash);
        sha256_update(&hash, n, (const uint8_t *)text);
        sha256_digest(&hash, 32, sha256);
    }
    memset(text, 0, n);
    free(text);
    return status;
}
