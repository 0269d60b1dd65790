/* Options that several verbs have. An argument in lower case is the list of its values, as "auto|always|never": help
 * shows it, completion offers it, and profctl_choose accepts nothing else. */
#ifndef PROFD_CLIENT_PROFCTL_OPTIONS_H
#define PROFD_CLIENT_PROFCTL_OPTIONS_H

#include "profctl/profctl.h"

#define OPTION(...)                                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define OPTION_FORMAT OPTION("format", 'f', "text|json|csv", "output format (default text)")

#define OPTION_SINCE                                                                                                   \
    OPTION("since", 0, "T", "start of the time range: RFC 3339, a date, seconds since 1970, or now-1h, -30m, -7d")
#define OPTION_UNTIL OPTION("until", 0, "T", "end of the time range")
#define OPTION_LABEL OPTION("label", 'l', "K=V", "use only uploads with this label; may be repeated")
#define OPTION_MATCH                                                                                                   \
    OPTION("match", 'm', "MATCHER",                                                                                    \
           "use only uploads with a matching label: K=\"V\", K!=\"V\", K=~\"V\" or K!~\"V\"; may be repeated")
#define OPTION_SCOPE                                                                                                   \
    OPTION("scope", 0, "program|build|everywhere",                                                                     \
           "the program with all its builds, this build in it alone, or this build in all programs")
#define OPTION_DIMENSION                                                                                               \
    OPTION("dimension", 0, "D", "what the samples measure: seconds, cycles, … (default seconds if there are any)")
#define OPTION_TIME                                                                                                    \
    OPTION("time", 0, "best|measured|calls",                                                                           \
           "times of stacks, or by numbers of calls (default best: measured if 95 % of the ticks have stacks)")
#define OPTION_PARTIAL OPTION("partial", 0, NULL, "answer from the readable part if a part of the data cannot be read")
#define OPTION_UID OPTION("uid", 0, "UID", "use only uploads of this user")
#define OPTION_COLOR                                                                                                   \
    OPTION("color", 0, "auto|always|never", "colour the text (default auto: on a terminal, unless NO_COLOR is set)")
#define OPTION_VERBOSE                                                                                                 \
    OPTION("verbose", 'v', NULL, "print all lines of the heading (default: the usual ones, and those about faults)")
#define OPTION_NAMES                                                                                                   \
    OPTION("names", 0, "short|full", "short: C++ names without template arguments (default on a terminal)")
#define OPTION_WIDE OPTION("wide", 0, NULL, "do not shorten lines and names on a terminal")

#endif
