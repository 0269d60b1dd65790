/* The user, the name, the unit and the container of a process. */
#ifndef PROFD_CLIENT_RECORD_ORIGIN_H
#define PROFD_CLIENT_RECORD_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_COMM_SIZE 16
#define ORIGIN_CGROUP_SIZE 1025 /* LIMIT_LABEL_VALUE and NUL */
#define ORIGIN_NAME_SIZE 256

struct origin {
    uint32_t uid; /* effective */
    char comm[ORIGIN_COMM_SIZE];
    char cgroup[ORIGIN_CGROUP_SIZE]; /* "/system.slice/redis.service"; "" if it is not known */
};

/* Reads uid and cgroup of a process from /proc. False: it is gone, or permission is missing; *o is unchanged. */
bool origin_read(uint32_t pid, struct origin *o);
/* Reads the uid alone. */
bool origin_read_user(uint32_t pid, uint32_t *uid);
/* Reads the number that a process has in its own namespace. False: it is gone. */
bool origin_read_inner_pid(uint32_t pid, uint32_t *inner);
/* Reads when the process started, in an arbitrary unit. False: it is gone. */
bool origin_read_start(uint32_t pid, uint64_t *start);
/* The name that the kernel has for a process. False: it is gone. */
bool origin_read_comm(uint32_t pid, char comm[ORIGIN_COMM_SIZE]);

/* The systemd unit of a cgroup path: its innermost component that ends as a unit does. "" if there is none. Pure. */
void origin_find_unit(const char *cgroup, char unit[ORIGIN_NAME_SIZE]);
/* The container of a cgroup path: the first 12 digits of its id with docker, containerd, CRI-O and podman; the name
 * with systemd-nspawn and LXC. "" if there is none. Pure. */
void origin_find_container(const char *cgroup, char container[ORIGIN_NAME_SIZE]);

#endif
