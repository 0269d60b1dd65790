/* Stores the descriptors of live processes with the service manager (sd_notify(3), FDSTORE), so that processes that end
 * during a restart of the daemon are still read. The name of a descriptor identifies its process, because the database
 * may not know the process yet. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/notify.h"
#include "live/live_internal.h"
#include "proto/hex.h"

/* A message to the service manager that could not be sent yet. */
struct fdstore_dropped {
    struct fdstore_dropped *next;
    char name[LIVE_NAME];
};

/* profd-INSTANCE-UID-PID-STARTED. All names together must fit one environment variable of at most 128 KiB. */
static void fdstore_name(const struct live_process *a, char out[LIVE_NAME])
{
    char *end = hex_put(stpcpy(out, LISTEN_KEPT), a->instance, sizeof a->instance);

    snprintf(end, (size_t)(out + LIVE_NAME - end), "-%" PRIu32 "-%" PRIu32 "-%" PRIu64, a->uid, a->origin.pid,
             a->origin.started);
}

static unsigned fdstore_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* "-" and a number of at most max. */
static bool fdstore_parse_part(const char **at, uint64_t max, uint64_t *out)
{
    const char *digits = *at + 1;
    const size_t n = **at == '-' ? strspn(digits, "0123456789") : 0;
    uint64_t value = n && n <= 19 ? strtoull(digits, NULL, 10) : UINT64_MAX;

    if (value > max) {
        return false;
    }
    *at = digits + n;
    *out = value;
    return true;
}

bool fdstore_parse_name(const char *name, uint8_t instance[ATTACH_INSTANCE_SIZE], uint32_t *uid, uint32_t *pid,
                        uint64_t *started)
{
    const char *at = name + strlen(LISTEN_KEPT);
    uint64_t user, number;

    if (strlen(at) < 2 * ATTACH_INSTANCE_SIZE) {
        return false;
    }
    for (size_t i = 0; i < ATTACH_INSTANCE_SIZE; i++, at += 2) {
        if (fdstore_digit(at[0]) > 15 || fdstore_digit(at[1]) > 15) {
            return false;
        }
        instance[i] = (uint8_t)(fdstore_digit(at[0]) << 4 | fdstore_digit(at[1]));
    }
    if (!fdstore_parse_part(&at, UINT32_MAX, &user) || !fdstore_parse_part(&at, UINT32_MAX, &number) ||
        !fdstore_parse_part(&at, INT64_MAX, started) || *at) {
        return false;
    }
    *uid = (uint32_t)user;
    *pid = (uint32_t)number;
    return true;
}

void fdstore_keep(struct live *l, struct live_process *a)
{
    char name[LIVE_NAME], text[LIVE_NAME + 64];

    if (!l->config.managed || a->kept || a->dead || l->kept >= LIMIT_ATTACHED_KEPT) {
        return;
    }
    fdstore_name(a, name);
    snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
    a->kept = notify_send_fd(text, a->memory);
    l->kept += a->kept;
}

bool fdstore_say_drop(const char *name)
{
    char text[LIVE_NAME + 32];

    snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return notify_send_fd(text, -1);
}

void fdstore_drop(struct live *l, struct live_process *a)
{
    char name[LIVE_NAME] = "";

    if (!a->kept) {
        return;
    }
    a->kept = false;
    fdstore_name(a, name);
    struct fdstore_dropped *d;

    if (fdstore_say_drop(name)) {
        l->kept--;
        return;
    }
    d = malloc(sizeof *d); /* without memory the descriptor stays stored; the next daemon removes it */
    if (!d) {
        return;
    }
    memcpy(d->name, name, sizeof d->name);
    d->next = l->dropped;
    l->dropped = d;
}

void fdstore_retry(struct live *l)
{
    while (l->dropped && fdstore_say_drop(l->dropped->name)) {
        struct fdstore_dropped *d = l->dropped;

        l->dropped = d->next;
        l->kept--;
        free(d);
    }
    if (l->config.managed && !l->dropped && l->kept < l->count) {
        table_each(l, fdstore_keep);
    }
}

void fdstore_end(struct live *l)
{
    struct fdstore_dropped *d, *next;

    for (d = l->dropped; d; d = next) {
        next = d->next;
        free(d);
    }
    l->dropped = NULL;
}
