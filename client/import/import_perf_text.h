/* Splits one line of perf script's output. Pure. */
#ifndef PROFD_CLIENT_IMPORT_PERF_TEXT_H
#define PROFD_CLIENT_IMPORT_PERF_TEXT_H

#include "import/import_scan.h"

/* "comm pid/tid [cpu] time: period event:", optionally followed by a location. Missing parts are empty or 0. */
struct perf_heading {
    struct import_scan comm, event, place;
    bool has_pid, has_time, has_period;
    uint64_t pid, tid, period;
    uint64_t time; /* ns since some beginning */
};

/* "55d0c0de1234 main+0x1f (/usr/bin/x)" */
struct perf_place {
    uint64_t address, offset;
    bool has_offset;
    struct import_scan name, object; /* empty if there is none */
};

/* False if the line is not the first line of a sample. O(n · words of comm). */
bool perf_heading_parse(struct import_scan line, struct perf_heading *out);
/* False if the line is not a location, which begins with hexadecimal digits. */
bool perf_place_parse(struct import_scan line, struct perf_place *out);
/* The name of an event without its modifiers and its unit: "cycles" of "cycles:uppp" and of "cpu_core/cycles/". */
struct import_scan perf_event_name(struct import_scan event);

#endif
