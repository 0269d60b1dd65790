/* profile.proto of github.com/google/pprof, as far as an export and an import must agree on it. */
#ifndef PROFD_PROTO_PPROF_H
#define PROFD_PROTO_PPROF_H

enum { /* field numbers of message Profile */
       PPROF_SAMPLE_TYPE = 1,
       PPROF_SAMPLE = 2,
       PPROF_MAPPING = 3,
       PPROF_LOCATION = 4,
       PPROF_FUNCTION = 5,
       PPROF_STRING = 6,
       PPROF_TIME_NANOS = 9,
       PPROF_DURATION_NANOS = 10,
       PPROF_PERIOD_TYPE = 11,
       PPROF_PERIOD = 12,
       PPROF_COMMENT = 13,
       PPROF_DEFAULT_SAMPLE_TYPE = 14,
};

/* Comments of profd's exports begin so: by them an import tells which calls are exact and which stacks were never
 * observed. */
#define PPROF_COMMENT_OWN "synthetic: stacks are derived from call counts"
#define PPROF_COMMENT_SEEN "profd: stacks are those that ticks found"
#define PPROF_COMMENT_SAMPLED "calls: sampled"
#define PPROF_COMMENT_LOSSY "calls: counted, but not exact" /* of older exports, without the next */
#define PPROF_COMMENT_PROCESSES "processes: "               /* and how many the counts are of */
#define PPROF_COMMENT_REASONS "not exact: "                 /* and the names of the reasons, or "none" */

#endif
