/* Messages to the service manager (sd_notify(3)'s datagrams), and its watchdog. */
#ifndef PROFD_BASE_NOTIFY_H
#define PROFD_BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Reads and unsets NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. True if there is a manager. */
bool notify_open(void);
/* Sends "READY=1" and similar messages; ignored without a service manager. */
void notify_send(const char *text);
/* The same with a descriptor (−1: none), for messages that must not be lost: false if the service manager does not
 * accept it now, or if there is none. */
bool notify_send_fd(const char *text, int fd);
/* Milliseconds between two watchdog messages, 0 without a watchdog. */
uint64_t notify_watchdog_ms(void);

#endif
