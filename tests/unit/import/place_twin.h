#ifndef PROFD_TESTS_IMPORT_PLACE_TWIN_H
#define PROFD_TESTS_IMPORT_PLACE_TWIN_H
#include <stdint.h>

/* Calls import_place_twin.c's place_twin; and where that is. */
int twin_call(int x);
int twin_sum(int x);
uintptr_t twin_address(void);

#endif
