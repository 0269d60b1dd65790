/* What the host says of itself. */
#ifndef PROFD_RELAY_IDENTITY_H
#define PROFD_RELAY_IDENTITY_H

#define IDENTITY_MACHINE_SIZE 64

/* The machine-id of this host in out, "" if there is none. Returns out. */
const char *identity_machine(char out[IDENTITY_MACHINE_SIZE]);

/* The boot-id of the running kernel in out, 32 hexadecimal digits, "" if it cannot be read. Returns out. */
const char *identity_boot(char out[IDENTITY_MACHINE_SIZE]);

#endif
