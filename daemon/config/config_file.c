#include "config/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536

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

enum profd_status config_file_read(const char *path, char *name, size_t name_size, char **text, size_t *n,
                                   struct profd_error *e)
{
    struct stat st;
    char *got;
    int fd;

    if (path) {
        snprintf(name, name_size, "%s", path);
    } else {
        /* The system's file for root and for the users of the packaged services, otherwise the user's own. */
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

        const struct passwd *own = getpwuid(geteuid());
        const bool system =
            !geteuid() || (own && (!strcmp(own->pw_name, "profd") || !strcmp(own->pw_name, "profd-relay")));

        if (!system && xdg && *xdg == '/') {
            snprintf(name, name_size, "%s/profd/profd.conf", xdg);
        } else if (!system && home && *home == '/') {
            snprintf(name, name_size, "%s/.config/profd/profd.conf", home);
        } else {
            snprintf(name, name_size, "%s/profd.conf", SYSCONFDIR);
        }
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
