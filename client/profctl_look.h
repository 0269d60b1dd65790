/* How output looks where a person reads it: colours, and how wide a line may be. */
#ifndef PROFD_CLIENT_PROFCTL_LOOK_H
#define PROFD_CLIENT_PROFCTL_LOOK_H

#include <stdbool.h>

#include "client/profctl.h"

struct look {
    bool terminal;       /* stdout is one */
    bool colour, shades; /* shades: 256 colours, else the basic ones */
    unsigned columns;    /* a line's room; 0: lines are not cut */
    const char *dots;    /* stands for what was cut out */
};

/* From --color and --wide of the call, where its verb has them, and from NO_COLOR, TERM, COLORTERM, COLUMNS and the
 * locale. USAGE for a --color that is none of auto, always, never. */
enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e);

/* Escape sequence for a share of the whole in percent; "" for little, and without colours. Orange and blue, never red
 * against green: the number itself always stands in the line. */
const char *look_heat(const struct look *look, double percent);

#endif
