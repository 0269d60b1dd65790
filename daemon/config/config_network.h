/* Checks that the configurations of several programs have in common. */
#ifndef PROFD_DAEMON_CONFIG_NETWORK_H
#define PROFD_DAEMON_CONFIG_NETWORK_H

#include "config/config.h"
#include "proto/status.h"

/* CONFIG unless log-level is the name of a level; notice if it was not given. */
enum profd_status config_check_level(struct config *config, struct profd_error *e);

/* Takes HOST:PORT apart: a name, an IPv4 address, or an IPv6 address in brackets; at most 255
 * bytes; port 0 is one. False: text is not that; *out is untouched. O(n). */
bool config_parse_address(const char *text, struct config_address *out);

/* CONFIG unless relay is https://HOST[:PORT][/PREFIX], with an IPv6 address in brackets. It must have been given. */
enum profd_status config_check_relay_url(struct config *config, struct profd_error *e);

#endif
