/* The files a configuration consists of. */
#ifndef PROFD_DAEMON_CONFIG_FILE_H
#define PROFD_DAEMON_CONFIG_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* Reads the configuration file at path, or the default file, which may be missing (*text NULL). name receives the path.
 * The caller frees *text. */
enum profd_status config_file_read(const char *path, char *name, size_t name_size, char **text, size_t *n,
                                   struct profd_error *e);

#endif
