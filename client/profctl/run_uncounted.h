/* The programs that a command starts and that are not counted: its counted processes tell profctl run of them. */
#ifndef PROFD_CLIENT_RUN_UNCOUNTED_H
#define PROFD_CLIENT_RUN_UNCOUNTED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "profd.h"

#define RUN_UNCOUNTED_MAX 64

struct run_uncounted {
    int fd; /* −1: there is no socket */
    pthread_t thread;
    struct {
        char *path;
        const char *why;
        size_t times;
    } rows[RUN_UNCOUNTED_MAX];
    size_t count, others; /* programs; started programs that have no row */
};

/* Listens from now on: the environment says where. Without memory or a socket nothing is listed. */
void run_uncounted_open(struct run_uncounted *u);

/* Ends listening, and lists the programs on standard error. Returns the number of times that one was started. */
size_t run_uncounted_finish(struct run_uncounted *u);

/* Uploads that number as a counter of the collector, for the build of the command in this file, with the labels of its
 * processes. No process is counted by it. The upload is sent once; a failure is said on standard error. */
void run_uncounted_send(size_t programs, const char *path, struct profd_conn *conn);

#endif
