/* From a part of a struct to the struct. */
#ifndef PROFD_CORE_CONTAINER_H
#define PROFD_CORE_CONTAINER_H

#include <stddef.h>

/* The struct of that type that contains the member which part points to. */
#define container_of(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

#endif
