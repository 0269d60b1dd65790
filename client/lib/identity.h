/* Identity of the sender: this machine, this run. */
#ifndef PROFD_CLIENT_IDENTITY_H
#define PROFD_CLIENT_IDENTITY_H

#include <stddef.h>

#define IDENTITY_HOST_SIZE 33

/* The machine-id, 32 lower-case hex digits; "" where there is none. */
void identity_host(char host[IDENTITY_HOST_SIZE]);

#endif
