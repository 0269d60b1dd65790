/* The broker process. */
#ifndef PROFD_ELF_BROKER_LOOP_H
#define PROFD_ELF_BROKER_LOOP_H

#include "elf/worker.h"
#include "proto/status.h"

#define BROKER_MAGIC 0x62726f6bu

/* Serves requests from the socket until its other end is closed, then exits. */
_Noreturn void broker_loop(int socket, worker_act *act, const struct worker_limits *limits);

struct broker;

/* broker_start with another function and other limits, for tests. In broker.c. */
enum profd_status broker_start_with(struct broker **out, worker_act *act, const struct worker_limits *limits,
                                    struct profd_error *e);

#endif
