/* Where a sum comes from, and the rows of lists that are not reports. */
#ifndef PROFD_CORE_ROWS_H
#define PROFD_CORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/report.h"
#include "core/spread.h"
#include "proto/buildid.h"

/* Another centre. Its sealed days are counted, too. */
struct provenance_centre {
    const char *name;
    int64_t sealed_to; /* everything that it sealed of days before then is counted */
};

/* Times are nanoseconds since the epoch, UTC; 0 where nothing was found. */
struct provenance {
    uint64_t uploads;
    uint64_t processes; /* counted where a process's first upload lands */
    struct random_groups
        groups;           /* of these processes by random group: for comparisons with intervals, known of some or all */
    uint64_t hosts;       /* distinct machines, by machine-id */
    uint64_t host_labels; /* distinct values of the label "host"; uploads without it count for none */
    int64_t first, last;  /* start of the earliest window, end of the latest */
    uint32_t inexact;     /* OR of all uploads' message_inexact bits: 0 means exact */
    uint32_t inexact_all; /* AND of them: the reasons that every upload has */
    uint64_t unread;      /* processes that count and were not read yet since the daemon started; 0: none */
    int64_t unread_since; /* the earliest of their latest readings */
    uint64_t live;        /* processes that count and are read */
    int64_t as_of;        /* the latest of their latest readings: what was read until then is in the sum */
    uint64_t
        down_count;  /* times between first and last in which the daemon did not run: what began and ended then is */
    int64_t down_ns; /* not known; and their sum */
    uint32_t uid_count;
    const uint32_t *uids; /* ascending: the users with data in the sum */
    size_t centre_count;
    const struct provenance_centre *centres; /* by ascending name */
};

/* One build as lists show it; the creator of the row owns the strings. Times: ns since the epoch, UTC. */
struct build_row {
    struct buildid build_id;
    const char *name; /* as first delivered */
    bool is_program;  /* was ever a process's main executable */
    int64_t first_seen, last_seen;
    uint64_t uploads, processes;
    uint64_t nanoseconds; /* Σ ticks/rate of its own histograms of dimension seconds */
    uint64_t calls;       /* Σ calls into it */
    uint32_t inexact;     /* message_inexact bits, 0 = exact */
    bool has_names;
    const char *note; /* sentence of the object worker, "" if none */
};

/* One host of a centre. Times: ns since the epoch, 0: never. */
struct fleet_row {
    const char *name, *identity, *tenant, *machine, *version;
    int64_t first, last, delivered, restored, lag; /* lag: ns since last; 0 if that is in the future */
    int64_t two_machines;                          /* when two machines were last seen with this identity */
};

/* A label pair seen with a build. */
struct label_row {
    const char *name, *value;
    uint64_t uploads;
};

/* Uploads that have the same values of some labels, within a step of time if there are steps. */
struct group_row {
    const char *const *values; /* one per label asked for; an absent label is "" */
    int64_t time, width;       /* ns: start and length of the step; width 0: there are none */
    uint64_t uploads, processes, hosts;
    double seconds; /* Σ ticks/rate in one dimension, as in a report's totals */
    uint64_t calls;
    int64_t first, last;
    uint32_t inexact;
};

/* What the uploads of a build add up to in each step of time, and values of their labels. */
struct load_row {
    const char *build_id;
    double *seconds;                  /* by step */
    const char *const *const *values; /* [label]: values in ascending order, ended by NULL */
    uint64_t hosts;                   /* the most of one step and combination of labels: there may be more */
    uint64_t calls, processes;        /* that began */
    const char *dimension;
};

/* One function in a step of time: what the report of the step says of it, zeros where it took no part. */
struct series_row {
    int64_t time, width;        /* ns */
    double self, children;      /* seconds */
    uint64_t calls, self_calls; /* as in a report */
    uint32_t cycle;             /* 0: in none */
    double seconds;             /* of all functions */
    uint64_t uploads, processes;
    uint32_t inexact;
    bool has_stacks, time_measured; /* as in a report */
    bool is_measured;               /* has_stacks, and the function is in the report: measured is set */
    struct report_measured measured;
};

/* Functions of one name, joined over the programs that were asked for. */
struct joined_row {
    const char *name, *file; /* file: source file of a static function; "" for others */
    const char *object;      /* name, without its directory, of one object that has it */
    double self, total;      /* seconds; total is the sum of what each program's report says */
    uint64_t calls, self_calls;
    uint64_t programs, builds; /* number of programs with it in their reports, and of builds of code that have it */
    double *trend;             /* self seconds of each step; NULL: there are no steps */
    uint32_t inexact;          /* why numbers of the programs that have it are not exact */
};

/* What could not be joined by name, and of what everything is the sum. */
struct joined_rest {
    uint64_t programs, uploads, processes;
    uint32_t inexact;
    double seconds; /* of all samples */
    uint64_t ticks, calls;
    uint64_t unnamed_builds, unnamed_functions; /* their symbols were not sent */
    double unnamed_seconds;
    uint64_t ambiguous_names,
        ambiguous_functions; /* several of one name in one build: they cannot be matched with those of another build */
    double ambiguous_seconds;
    double other_seconds;   /* [plt], [gap] and the like */
    uint64_t programs_left; /* programs with less CPU time, which were not read */
};

/* A live process. The creator of the row owns the texts; "" if unknown. */
struct process_row {
    const uint8_t *instance, *parent; /* 16 bytes each; parent NULL: none */
    uint32_t uid, pid, pid_inside;    /* pid as the daemon sees it; as the process's own namespace does */
    const char *build_id, *name;
    size_t label_count;
    const struct label_row *labels; /* uploads means nothing */
    int64_t started, now;           /* ns since the epoch */
    const char *mode, *state, *why;
    uint32_t rate, rate_asked; /* ticks per second, as started and as asked for since; 0: not */
    bool exact, calls_exact, ticks_exact;
    uint64_t calls, ticks, cpu_ns, bytes;
    double calls_per_second;
    double overhead;       /* part of the CPU time that counting takes, by ticks; negative: not known */
    double overhead_below; /* what it is below with a probability of 95 %, where no tick was inside; 0: not known */
    int64_t harvested;     /* 0: not yet */
};

/* A version of a program: the uploads with one value of the label `version`. */
struct version_row {
    const char *program, *version; /* version "": uploads without the label */
    const char *build_id;
    int64_t first, last; /* ns: earliest start and latest end */
    uint64_t uploads;
};

#endif
