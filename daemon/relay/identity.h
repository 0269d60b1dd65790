/* The identity that a host sends to the centre. */
#ifndef PROFD_RELAY_IDENTITY_H
#define PROFD_RELAY_IDENTITY_H

#define IDENTITY_MACHINE_SIZE 64

/* Writes the machine-id of this host to out, "" if there is none. Returns out. */
const char *identity_machine(char out[IDENTITY_MACHINE_SIZE]);

/* Writes the boot-id of the running kernel to out: 32 hexadecimal digits, "" if it cannot be read. Returns out. */
const char *identity_boot(char out[IDENTITY_MACHINE_SIZE]);

#endif
