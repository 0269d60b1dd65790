/* The steps of config_load, for config_reload. */
#ifndef PROFD_DAEMON_CONFIG_INTERNAL_H
#define PROFD_DAEMON_CONFIG_INTERNAL_H

#include "config/config.h"

/* The key or option. Static. */
const char *config_get_name(enum config_option option);
/* Is it one of this program? */
bool config_is_of(enum config_program program, enum config_option option);
/* Reads options and file, without a check. With --help and --version, no file. On failure the caller ends it, too. */
enum profd_status config_read(enum config_program program, int argc, char *const argv[], struct config *config,
                              struct profd_error *e);
/* Fills in defaults and checks; the sentence of an error names file and line of the key. */
enum profd_status config_check_all(enum config_program program, struct config *config, struct profd_error *e);

#endif
