/* profctl gprof: GNU gprof's listings, locally. */
#include <unistd.h>

#include "gprof/gprof_main.h"
#include "profctl/profctl.h"

static size_t terminal_clean(void *context, const void *bytes, size_t n, char *out)
{
    return terminal_filter_run(context, bytes, n, out);
}

static int gprof_run(const char *program, int argc, char **argv)
{
    struct terminal_filter filter = {.held_count = 0};
    const struct gprof_terminal terminal = {.clean = terminal_clean, .context = &filter};
    return gprof_main(program, argc, argv, isatty(STDOUT_FILENO) == 1 ? &terminal : NULL);
}

const struct profctl_verb verb_gprof = {
    .name = "gprof",
    .arguments = "[gprof's options] [EXE [GMON...]]",
    .summary = "Print the listing of gprof, without a daemon",
    .details = "",
    .run_alone = gprof_run,
};
