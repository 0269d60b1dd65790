#include "profctl/profctl_look.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static unsigned columns_of_terminal(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    unsigned long given = strtoul(environment("COLUMNS"), NULL, 10);
    return given >= 20 && given <= 10000 ? (unsigned)given : 80;
}

/* The first of them that is set rules, as for setlocale. */
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = environment(names[i]);
        if (value[0]) {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e)
{
    enum { AUTO, ALWAYS };
    const char *term = environment("TERM");
    bool capable = term[0] && strcmp(term, "dumb") != 0;
    size_t when = AUTO;
    TRY(profctl_choose(call, "color", &when, e));
    struct look look = {.terminal = isatty(STDOUT_FILENO) == 1, .dots = is_utf8() ? "…" : "..."};
    look.colour = when == AUTO ? look.terminal && capable && !environment("NO_COLOR")[0] : when == ALWAYS;
    look.shades = strstr(term, "256color") != NULL || environment("COLORTERM")[0];
    look.columns = look.terminal && !profctl_value(call, "wide") ? columns_of_terminal() : 0;
    *out = look;
    return PROFD_OK;
}

const char *look_heat(const struct look *look, double percent)
{
    if (!look->colour || !(percent >= 1)) {
        return "";
    }
    if (look->shades) { /* both are visible on white and on black */
        return percent >= 25 ? "\033[1;38;5;166m" : percent >= 5 ? "\033[38;5;166m" : "\033[38;5;32m";
    }
    return percent >= 25 ? "\033[1;33m" : percent >= 5 ? "\033[33m" : "\033[36m";
}

const char *look_names(const struct profctl_call *call, bool terminal)
{
    const char *names = profctl_value(call, "names");
    return names ? names : terminal && !profctl_value(call, "wide") && is_utf8() ? "short" : NULL;
}
