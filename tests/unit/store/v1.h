/* A database as version 1 of the schema left it. */
#ifndef PROFD_TESTS_STORE_V1_H
#define PROFD_TESTS_STORE_V1_H

#include <stdint.h>

#define V1_HOUR INT64_C(3600000000000)
#define V1_BEGIN (INT64_C(480000) * V1_HOUR)

/* n uploads of one user in 3 series (two programs, one with a library; one with a label), one a minute from V1_BEGIN,
 * each with so many arcs; ids are sequences 1 … n of a sender that begins with byte 1. */
void v1_make(const char *path, uint32_t n, uint32_t arcs);
/* What the i-th (from 1) counted. */
uint64_t v1_calls(uint32_t i, uint32_t arcs);

#endif
