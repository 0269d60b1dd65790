/* profctl gprof: GNU gprof's listings, locally. */
#include "client/gprof.h"
#include "client/profctl.h"

const struct profctl_verb verb_gprof = {
    .name = "gprof",
    .arguments = "[gprof's options] [EXE [GMON...]]",
    .summary = "Print what gprof prints, without a daemon",
    .details = "",
    .run_alone = gprof_main,
};
