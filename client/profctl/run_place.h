/* Where profctl run finds what it puts into the environment. */
#ifndef PROFD_CLIENT_RUN_PLACE_H
#define PROFD_CLIENT_RUN_PLACE_H

#include "profd.h"

#define RUN_PLACE_SIZE 8192

/* The value of LD_PRELOAD: libprofd-collect.so beside this program (a build directory), in ../lib of it, or where it is
 * installed, followed by the current LD_PRELOAD. NO_INPUT: it is in none of them. REFUSED: the loader cannot use its
 * path. */
enum profd_status run_place_library(char out[RUN_PLACE_SIZE], struct profd_error *e);

/* The value of PROFD_SOCKET for a path or "unix:/path": absolute, the command may change its folder. USAGE: over 107
 * bytes. */
enum profd_status run_place_socket(const char *text, char out[RUN_PLACE_SIZE], struct profd_error *e);

#endif
