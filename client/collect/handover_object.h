/* Descriptors of the process's objects, for the daemon. */
#ifndef PROFD_COLLECT_HANDOVER_OBJECT_H
#define PROFD_COLLECT_HANDOVER_OBJECT_H

#include <stdint.h>

/* Opens the file of a module, by its number and name. For the vDSO, which has no file, it is a sealed memory file with
 * its image. −1 if it is not available. Raw system calls only. */
int handover_object_open(uint32_t number, const char *name);

#endif
