/* Makes a CA, and the certificate of the gate. */
#ifndef PROFD_SIGNER_INIT_H
#define PROFD_SIGNER_INIT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

#define INIT_NAMES_MAX 32

struct init_options {
    const char *directory;             /* created, mode 0755, if it does not exist */
    const char *names[INIT_NAMES_MAX]; /* and addresses under which hosts reach the gate */
    size_t name_count;                 /* at least one */
    bool roll; /* there is a CA: make another key, which issues from now on, and keep the certificate of the old one */
    bool gate; /* there is a CA: make only gate.crt and gate.key, issued by its newest key */
};

/* Writes ca.key (owner profd-signer), gate-ca.crt, gate.key (owner profd-gate), each 0600, and gate.crt with its
 * issuer. Only root sets owners, if the users exist. CANT_CREATE: there is a CA already, or a file cannot be written;
 * nothing has changed then. Every file is replaced as a whole. */
enum profd_status init_run(const struct init_options *o, struct profd_error *e);

#endif
