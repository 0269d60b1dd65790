/* Labels: the rules that the daemon applies, applied before anything is sent. */
#ifndef PROFD_CLIENT_LABEL_H
#define PROFD_CLIENT_LABEL_H

#include <stdbool.h>

#include "proto/status.h"

/* REFUSED with the rule unless name and value may be a label. */
enum profd_status label_check(const char *name, const char *value, struct profd_error *e);
/* The rule for names alone. */
bool label_name_valid(const char *name);

#endif
