/* Where a process runs, as labels: its container, its pod and its unit. All of it is from the kernel, the service
 * manager, the container runtime and the kubelet, and nothing from the process itself.
 *
 * A process may be able to make control groups below its own. So the outermost container counts, and a container in a
 * unit other than that of a container runtime, or below the group of a user, is in no pod: the user may have named the
 * group. */
#ifndef PROFD_PROTO_PLACE_H
#define PROFD_PROTO_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(label, bytes with the NUL). Names are as the receiver of OTLP makes them of attributes (profd-protocols(7)). */
#define PLACE_LIST(X)                                                                                                  \
    X(container_id, 65)                                                                                                \
    X(container_name, 256)                                                                                             \
    X(k8s_container_name, 64)                                                                                          \
    X(k8s_namespace_name, 64)                                                                                          \
    X(k8s_pod_name, 254)                                                                                               \
    X(k8s_pod_uid, 37)                                                                                                 \
    X(unit, 256)                                                                                                       \
    X(user_unit, 256)

#define PLACE_LINKS "/var/log/containers" /* where the kubelet keeps its links by default */

/* Values are printable ASCII; "" if there is none. */
struct process_place {
#define X(label, size) char label[size];
    PLACE_LIST(X)
#undef X
    bool by_root; /* only root can have made the control group of the container */
    bool hidden;  /* the container's group is beside one of the daemon's, so the path lacks the group of its pod */
    bool waits;   /* the pod is known and its name is not: the kubelet links the log just after the container starts */
};

enum place_label {
#define X(label, size) PLACE_##label,
    PLACE_LIST(X)
#undef X
        PLACE_COUNT
};
/* The name of a label, and its value. */
const char *place_get_name(unsigned label);
const char *place_get_value(const struct process_place *p, unsigned label);
/* The number of a label with this name; PLACE_COUNT if it is none of these. */
unsigned place_find_label(const char *name, size_t size);
/* Returns whether a process in this place may state the value of a label itself: what was found, and names of its pod
 * and container (and the uid of a hidden pod) where none was found. PLACE_COUNT is any other label. */
bool place_allows(const struct process_place *p, unsigned label, const char *value);

/* Finds, in the text of /proc/PID/cgroup, the path that tells most: one with a container, else that of version 2, else
 * that of systemd's hierarchy. "" if there is none. Changes the text. Pure. */
const char *place_find_path(char *text);
/* Reads the path of a control group. Pure. O(path). */
void place_parse(const char *path, struct process_place *out);
/* Reads the name of a link of the kubelet's, POD_NAMESPACE_CONTAINER-ID.log. Returns false, with *p unchanged, if it is
 * not of the container of p. Pure. */
bool place_parse_link(const char *name, struct process_place *p);
/* Looks for the link of the container in a directory, if its pod may have one. O(links). */
void place_find_pod(struct process_place *p, const char *links);
/* Reads where a process runs. Returns false if that cannot be read. */
bool place_read(uint32_t pid, const char *links, struct process_place *out);

/* Field 22 of /proc/PID/stat, which with the number names a process. 0 if it cannot be read. */
uint64_t place_read_start(uint32_t pid);

#endif
