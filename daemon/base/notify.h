/* Messages to the service manager (sd_notify(3)'s datagrams), and its watchdog. */
#ifndef PROFD_BASE_NOTIFY_H
#define PROFD_BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Reads and unsets NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. Returns whether there is a service manager. */
bool notify_open(void);
/* Sends "READY=1" and similar messages; ignored without a service manager. */
void notify_send(const char *text);
/* Sends a message that must not be lost, with a descriptor (−1: none). Returns false if there is no service manager, or
 * if it does not accept the message now. */
bool notify_send_fd(const char *text, int fd);
/* Returns the milliseconds between two watchdog messages, 0 without a watchdog. */
uint64_t notify_watchdog_ms(void);

#endif
