#include "lib/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "profd.h"

const char *profd_version(void)
{
    return PROFD_VERSION;
}

void identity_host(char host[IDENTITY_HOST_SIZE])
{
    char text[IDENTITY_HOST_SIZE] = "";
    host[0] = '\0';
    int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return;
    }
    ssize_t n = pread(fd, text, IDENTITY_HOST_SIZE - 1, 0);
    close(fd);
    if (n == IDENTITY_HOST_SIZE - 1 && strspn(text, "0123456789abcdef") == IDENTITY_HOST_SIZE - 1) {
        memcpy(host, text, IDENTITY_HOST_SIZE);
    }
}

enum profd_status profd_id_make(struct profd_id *id, struct profd_error *e)
{
    struct profd_id made = {.sequence = 0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    for (unsigned i = 0; i < 6; i++) {
        made.sender[i] = (uint8_t)(ms >> (40 - 8 * i));
    }
    if (getrandom(made.sender + 6, 6, 0) != 6) {
        return profd_error_set(e, PROFD_IO, "no random numbers from the kernel: %s", strerror(errno));
    }
    *id = made;
    return PROFD_OK;
}
