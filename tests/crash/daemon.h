/* The real profd as a child: started, waited for, killed. */
#ifndef PROFD_TESTS_CRASH_DAEMON_H
#define PROFD_TESTS_CRASH_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/crash/place.h"

#define DAEMON_OPTIONS 16
#define HANG_MS 120000u /* what takes longer than this, on a busy machine too, does not come */

struct daemon {
    const char *program;
    char state[PLACE_PATH], socket[108], log[PLACE_PATH], config[PLACE_PATH];
    const char *preload, *fault;         /* the fault library and its shared file; NULL: none */
    const char *clock_library, *clock;   /* libfaketime and the file that tells it the time; NULL: none */
    bool managed;                        /* as if under a service manager */
    const char *options[DAEMON_OPTIONS]; /* further ones, NULL at the end */
    pid_t pid;                           /* 0: none */
    int status;                          /* of waitpid, when it ended by itself or was asked to */
};

/* Names below folder: state db, socket s, log. */
void daemon_init(struct daemon *d, const char *program, const char *folder, const char *name);
bool daemon_start(struct daemon *d);
/* True as soon as it takes connections; false if it ended or ms passed. */
bool daemon_await(struct daemon *d, unsigned ms);
bool daemon_alive(struct daemon *d);
void daemon_kill(struct daemon *d);
/* SIGTERM; its exit status, or −1 if it had to be killed or died of a signal. */
int daemon_stop(struct daemon *d, unsigned ms);
/* The status of a daemon that ends by itself; −1 as above. */
int daemon_wait(struct daemon *d, unsigned ms);
/* Stops all its threads where they are, and waits until they have. */
bool daemon_freeze(struct daemon *d);
void daemon_thaw(struct daemon *d);
/* The last lines of its log on standard output, as comments. */
void daemon_show_log(const struct daemon *d);
/* Sleeps. */
void daemon_pause_us(unsigned us);

#endif
