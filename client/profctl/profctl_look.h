/* How output looks where a person reads it: colours, and how wide a line may be. */
#ifndef PROFD_CLIENT_PROFCTL_LOOK_H
#define PROFD_CLIENT_PROFCTL_LOOK_H

#include <stdbool.h>

#include "profctl/profctl.h"

struct look {
    bool terminal;       /* stdout is one */
    bool colour, shades; /* shades: 256 colours, else the basic ones */
    unsigned columns;    /* columns of a line; 0: lines are not cut */
    const char *dots;    /* replaces the part that was cut */
};

/* From --color and --wide of the call, where its verb has them, and from NO_COLOR, TERM, COLORTERM, COLUMNS and the
 * locale. USAGE for a --color that is none of auto, always, never. */
enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e);

/* The parameter names= for a text: --names of the call, else "short" for a terminal that shows UTF-8, without --wide,
 * else NULL: full names. */
const char *look_names(const struct profctl_call *call, bool terminal);

/* Escape sequence for a share of the total in percent; "" for small shares and without colours. Orange and blue, never
 * red against green; the line always states the number, too. */
const char *look_heat(const struct look *look, double percent);

#endif
