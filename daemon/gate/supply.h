/* Certificates, key and list of revoked hosts on their way from the process that may open files to the one that meets
 * the network: as descriptors, over a pair of sockets. */
#ifndef PROFD_GATE_SUPPLY_H
#define PROFD_GATE_SUPPLY_H

#include <stdbool.h>

#include "config/config.h"
#include "gate/revoked.h"
#include "proto/status.h"
#include "tls/tls_context.h"

#define SUPPLY_FILES 4 /* certificate, key, ca, revoked */

struct supply {
    enum log_level log_level;
    char names[SUPPLY_FILES * CONFIG_PATH_MAX]; /* of the files, for sentences */
    struct tls_material material;
    struct revoked *revoked; /* NULL: no list is configured */
};

/* Opens the files of the configuration and sends them with their names. CONFIG names the file that cannot be used. */
enum profd_status supply_send(int fd, const struct config *c, struct profd_error *e);

/* Receives and reads them. UNAVAILABLE: the other side has closed. CONFIG, NO_MEMORY. The names are borrowed by the
 * material, so *out must stay where it is. */
enum profd_status supply_take(int fd, struct supply *out, struct profd_error *e);
/* Frees the material; the list has another owner. */
void supply_done(struct supply *s);

/* Tells the sender that what it sent is in use. */
void supply_confirm(int fd);

/* A number that changes when one of the files does: its inode, size, or times. */
unsigned long long supply_observe(const struct config *c);

#endif
