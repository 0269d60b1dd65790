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

/* Computes the SHA-256 of the token in the file: its first line, 20–512 printable bytes without blanks. CONFIG if other
 * users may access the file. */
enum profd_status config_file_read_token(const char *path, uint8_t sha256[32], struct profd_error *e);

#endif
