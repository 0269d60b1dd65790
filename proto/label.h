/* The rules for labels, shared by daemon, library, profctl and collector: Prometheus's rule for names, UTF-8 for
 * values, and the sizes of limits.h. The check is inline and calls nothing, because the collector links no library.
 *
 * Uploads that break a rule are refused, and a harvest leaves the label out. segment_decode and the store's blocks of
 * other centres judge labels that were accepted before, so a stricter rule would make queued uploads unreadable. */
#ifndef PROFD_PROTO_LABEL_H
#define PROFD_PROTO_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"
#include "proto/utf8.h"

/* Attributes of an OpenTelemetry resource that become labels, with '_' for each '.'. All attributes would make too many
 * series. */
#define LABEL_ATTRIBUTES                                                                                               \
    "service.namespace", "service.version", "deployment.environment", "container.id", "container.name",                \
        "container.image.name", "k8s.cluster.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name",             \
        "k8s.pod.uid", "k8s.container.name", "k8s.deployment.name", "k8s.daemonset.name", "k8s.statefulset.name",      \
        "k8s.job.name", "k8s.cronjob.name", "cloud.region", "cloud.availability_zone", "process.executable.name"

/* Collected processes of one user on one machine with the same value of this label, of at most LIMIT_PROCESS bytes, are
 * in one random group. So processes that run at about the same time can be compared in pairs: what slows a pair down
 * makes no difference. */
#define LABEL_PAIR "compare_pair"

enum label_fault {
    LABEL_GOOD,
    LABEL_NAME_CHARACTERS, /* empty, a digit first, or other than letters, digits and '_' */
    LABEL_NAME_RESERVED,   /* begins with "__" */
    LABEL_NAME_LONG,       /* more than LIMIT_LABEL_NAME bytes */
    LABEL_VALUE_LONG,      /* more than LIMIT_LABEL_VALUE bytes */
    LABEL_VALUE_NOT_UTF8,
};

/* What is wrong with a label's name. O(n). */
static inline enum label_fault label_judge_name(const char *name, size_t n)
{
    if (n == 0 || (name[0] >= '0' && name[0] <= '9')) {
        return LABEL_NAME_CHARACTERS;
    }
    if (n > LIMIT_LABEL_NAME) {
        return LABEL_NAME_LONG;
    }
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return LABEL_NAME_CHARACTERS;
        }
    }
    return n >= 2 && name[0] == '_' && name[1] == '_' ? LABEL_NAME_RESERVED : LABEL_GOOD;
}

/* What is wrong with a label. O(n). */
static inline enum label_fault label_judge(const char *name, size_t name_size, const char *value, size_t value_size)
{
    enum label_fault fault = label_judge_name(name, name_size);
    if (fault != LABEL_GOOD) {
        return fault;
    }
    if (value_size > LIMIT_LABEL_VALUE) {
        return LABEL_VALUE_LONG;
    }
    for (size_t at = 0; at < value_size;) {
        size_t length = utf8_length((const uint8_t *)value + at, value_size - at);
        if (length == 0) {
            return LABEL_VALUE_NOT_UTF8;
        }
        at += length;
    }
    return LABEL_GOOD;
}

/* Checks a label. TOO_LARGE if its name or value is too long, REFUSED if another rule is broken, or OK. */
enum profd_status label_check(const char *name, const char *value, struct profd_error *e);

#endif
