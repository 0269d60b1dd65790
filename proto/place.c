#include "proto/place.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/whole.h"

#define DIGITS 64     /* of a container's id */
#define UID_STATIC 32 /* of a pod that the kubelet reads from a file: a hash; others have a UUID: */
#define UID_USUAL 36
#define CGROUP_BYTES 8192
#define STAT_BYTES 1024
#define STAT_START 22 /* the field, counted from 1 */

static const struct {
    const char *name;
    size_t offset;
} rows[PLACE_COUNT] = {
#define X(label, size) {#label, offsetof(struct process_place, label)},
    PLACE_LIST(X)
#undef X
};

const char *place_get_name(unsigned label)
{
    return rows[label].name;
}

const char *place_get_value(const struct process_place *p, unsigned label)
{
    return (const char *)p + rows[label].offset;
}

unsigned place_find_label(const char *name, size_t size)
{
    unsigned i = 0;
    while (i < PLACE_COUNT && (strlen(rows[i].name) != size || memcmp(rows[i].name, name, size) != 0)) {
        i++;
    }
    return i;
}

bool place_allows(const struct process_place *p, unsigned label, const char *value)
{
    if (label == PLACE_COUNT) {
        return true;
    }
    const char *found = place_get_value(p, label);
    const bool names_pod = label == PLACE_k8s_container_name || label == PLACE_k8s_namespace_name ||
                           label == PLACE_k8s_pod_name,
               names_container = label == PLACE_container_name;
    return *found ? strcmp(found, value) == 0
                  : (names_pod && (p->k8s_pod_uid[0] || p->hidden)) || (label == PLACE_k8s_pod_uid && p->hidden) ||
                        (names_container && p->container_id[0]);
}

/* Sets a value, unless it is empty, too long or has other characters than printable ASCII. */
static bool put(char *to, size_t size, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (from[i] <= ' ' || from[i] > '~') {
            return false;
        }
    }
    if (n == 0 || n >= size) {
        return false;
    }
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

#define PUT(to, from, n) put(to, sizeof(to), from, n)

/* Finds a container's id: 64 hexadecimal digits, alone (cgroupfs) or behind the runtime's name, as in
 * "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID" and "libpod-ID.scope". A conmon only watches a container. */
static const char *id_find(const char *part, size_t n)
{
    static const char scope[] = ".scope", conmon[] = "conmon-";
    n -= n > strlen(scope) && memcmp(part + n - strlen(scope), scope, strlen(scope)) == 0 ? strlen(scope) : 0;
    const char *id = n >= DIGITS ? part + n - DIGITS : NULL;
    if (!id || strspn(id, "0123456789abcdef") < DIGITS || (n > DIGITS && id[-1] != '-' && id[-1] != ':') ||
        (n >= DIGITS + strlen(conmon) && memcmp(id - strlen(conmon), conmon, strlen(conmon)) == 0)) {
        return NULL;
    }
    return id;
}

/* Finds the name of a container that has no id. */
static bool name_find(const char *part, size_t n, struct process_place *p)
{
    static const char *const forms[][2] = {
        {"systemd-nspawn@", ".service"}, {"machine-", ".scope"}, {"lxc.payload.", ""}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const size_t first = strlen(forms[i][0]), last = strlen(forms[i][1]);
        if (n > first + last && memcmp(part, forms[i][0], first) == 0 &&
            memcmp(part + n - last, forms[i][1], last) == 0) {
            return PUT(p->container_name, part + first, n - first - last);
        }
    }
    return false;
}

/* Finds a pod's uid, as in "podUID" and "kubepods-burstable-podUID.slice", where systemd has '_' in place of '-'. */
static void uid_find(const char *part, size_t n, struct process_place *p)
{
    for (size_t i = 0; i + UID_STATIC < n; i++) {
        if ((i == 0 || part[i - 1] == '-') && memcmp(part + i, "pod", 3) == 0) {
            const size_t digits = strspn(part + i + 3, "0123456789abcdef_-");
            if ((digits == UID_USUAL || digits == UID_STATIC) && PUT(p->k8s_pod_uid, part + i + 3, digits)) {
                for (char *c = p->k8s_pod_uid; (c = strchr(c, '_')) != NULL;) {
                    *c = '-';
                }
            }
        }
    }
}

void place_parse(const char *path, struct process_place *out)
{
    /* Units of runtimes that make the groups of containers below their own. */
    static const char *const runtimes[] = {"containerd.service", "crio.service", "docker.service", "kubelet.service"};
    static const char service[] = ".service", deleted[] = " (deleted)";
    const char *end = path + strlen(path);
    bool inside = false, of_user = false, above = true; /* above: all parts were ".." */
    *out = (struct process_place){.by_root = false};
    end -= end - path > (ptrdiff_t)strlen(deleted) && !strcmp(end - strlen(deleted), deleted) ? strlen(deleted) : 0;
    for (const char *part = path; part < end && *part == '/';) {
        size_t n = strcspn(++part, "/");
        n = part + n > end ? (size_t)(end - part) : n;
        const char *id = inside ? NULL : id_find(part, n);
        if (!inside) {
            uid_find(part, n, out);
        }
        if (id || (!inside && name_find(part, n, out))) {
            inside = true;
            (void)(id && PUT(out->container_id, id, DIGITS));
            for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++) {
                out->unit[0] = strcmp(out->unit, runtimes[i]) == 0 ? '\0' : out->unit[0];
            }
            out->by_root = out->unit[0] == '\0' && !of_user;
            out->hidden = id && above && part - path > 1;
        } else if (n > strlen(service) && memcmp(part + n - strlen(service), service, strlen(service)) == 0) {
            if (out->unit[0] == '\0') {
                (void)PUT(out->unit, part, n);
            } else if (out->user_unit[0] == '\0' && strncmp(out->unit, "user@", strlen("user@")) == 0) {
                (void)PUT(out->user_unit, part, n);
            }
        }
        of_user |= strncmp(part, "user", strlen("user")) == 0 && strchr("/.-", part[strlen("user")]) != NULL;
        above &= n == 2 && memcmp(part, "..", 2) == 0;
        part += n;
    }
    if (!out->by_root || !out->container_id[0]) { /* containers of pods have ids */
        out->k8s_pod_uid[0] = '\0';
    }
}

const char *place_find_path(char *text)
{
    const char *found = "";
    for (char *line = text, *end; *line; line = end) {
        struct process_place p;
        end = line + strcspn(line, "\n");
        if (*end) {
            *end++ = '\0';
        }
        const char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/') {
            continue;
        }
        place_parse(++path, &p);
        if (p.container_id[0] || p.container_name[0]) {
            return path;
        }
        if (strncmp(line, "0::", 3) == 0 ? path[1] || !*found
                                         : !*found && strncmp(controllers, ":name=systemd:", 14) == 0) {
            found = path;
        }
    }
    return found;
}

bool place_parse_link(const char *name, struct process_place *p)
{
    const size_t n = strlen(name), tail = 1 + DIGITS + strlen(".log");
    const char *space = strchr(name, '_'), *container = space ? strchr(space + 1, '_') : NULL;
    struct process_place named = *p;
    if (n < tail || name[n - tail] != '-' || !p->container_id[0] ||
        memcmp(name + n - tail + 1, p->container_id, DIGITS) != 0 || strcmp(name + n - strlen(".log"), ".log") != 0 ||
        !container || strchr(container + 1, '_') || container + 1 > name + n - tail ||
        !PUT(named.k8s_pod_name, name, (size_t)(space - name)) ||
        !PUT(named.k8s_namespace_name, space + 1, (size_t)(container - space - 1)) ||
        !PUT(named.k8s_container_name, container + 1, (size_t)(name + n - tail - container - 1))) {
        return false;
    }
    *p = named;
    return true;
}

void place_find_pod(struct process_place *p, const char *links)
{
    DIR *d = p->by_root && p->container_id[0] && !p->k8s_pod_name[0] ? opendir(links) : NULL;
    p->waits = d && p->k8s_pod_uid[0];
    for (const struct dirent *entry; d && (entry = readdir(d)) != NULL;) {
        if (place_parse_link(entry->d_name, p)) {
            p->waits = false;
            break;
        }
    }
    if (d) {
        (void)closedir(d);
    }
}

bool place_read(uint32_t pid, const char *links, struct process_place *out)
{
    char path[48], text[CGROUP_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/cgroup", pid);
    if (!pid || !whole_read_text(path, text, sizeof text)) {
        return false;
    }
    place_parse(place_find_path(text), out);
    place_find_pod(out, links);
    return true;
}

uint64_t place_read_start(uint32_t pid)
{
    char path[48], text[STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    const char *at = pid && whole_read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL; /* ends the name */
    for (int field = 2; at && field < STAT_START; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}
