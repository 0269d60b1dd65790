#include "client/collect/collect.h"

struct collect_state collect = {.on = 1}; /* the first call starts the collector */
