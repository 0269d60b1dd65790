/* The inside of the client's process. */
#ifndef PROFD_TESTS_CRASH_STREAM_RUN_H
#define PROFD_TESTS_CRASH_STREAM_RUN_H

#include "tests/crash/stream.h"

#define STREAM_BULK 300u /* arcs of every 16th upload that make it fill pages */

/* Runs until quit; the process's exit status. */
int stream_run(struct stream *s);

#endif
