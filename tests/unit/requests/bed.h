/* All services behind one connection group, with a real store, writer, loop and sockets; only what the daemon's wiring
 * would do is faked. */
#ifndef PROFD_TESTS_REQUESTS_BED_H
#define PROFD_TESTS_REQUESTS_BED_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/live.h"
#include "net/conn.h"
#include "net/loop.h"
#include "requests/pages.h"
#include "requests/admin.h"
#include "requests/requests.h"
#include "requests/intake.h"
#include "requests/symbols.h"
#include "requests/queries.h"
#include "requests/uploads.h"
#include "writer/health.h"
#include "writer/upkeep_job.h"
#include "writer/verifier.h"
#include "writer/writer.h"

#define BED_BUILD "aaaa0000000000000000000000000000000000aa"

extern struct requests_bed {
    char directory[64], path[96];
    struct loop *loop;
    struct loop_timer *timer;
    struct closer *closer;
    struct store *store, *check_store;
    struct build_cache *builds;
    struct health *health;
    struct space *space;
    struct writer *writer;
    struct upkeep_job *upkeep;
    struct verifier *verifier;
    struct conn_handler handlers[HANDLERS_COUNT];
    struct conn_group *conns;
    struct live *live;
    struct pages *pages;
    struct shared shared;
    struct broker *brokers[LIMIT_WORKERS];
    struct object_service *objects;
    struct process_uploads uploads;
    struct query_service *queries;
    struct admin_service *admin;
    struct intake *intake;
    unsigned hung_up; /* connections that hung up behind a request in flight */
} bed;

void bed_setup(void);
void bed_teardown(void);
/* Runs the loop. */
void bed_run(unsigned ms);

/* The client's end of a new connection that has said HELLO. */
int bed_join(uint32_t uid, bool may_admin);
/* The same of a peer with other rights. */
int bed_join_peer(const struct peer *peer);
void bed_put(int client, const struct message *m, uint32_t tag);
/* The same with a descriptor, which stays the caller's. */
void bed_put_fd(int client, const struct message *m, uint32_t tag, int fd);
/* The memory of a live process of BED_BUILD, as a collector makes it and seals it; number makes the instance. */
int bed_make_memory(uint8_t number);
/* An upload of BED_BUILD with this sequence. */
void bed_put_upload(int client, uint32_t tag, uint32_t sequence);
/* The next frame, running the loop meanwhile; strings live until the next call. */
const struct message *bed_take(int client, struct frame_header *f);
/* The descriptor that came with the latest frame, now the caller's; −1: none. */
int bed_take_fd(void);
/* The next frame must be an ACK, or a NACK with this status, of this tag. */
const struct message *bed_expect_ack(int client, uint32_t tag);
const struct message *bed_expect_nack(int client, uint32_t tag, enum profd_status status);
/* The next frame must be the whole REPLY with this status; its body as text, valid like a message. */
const char *bed_expect_reply(int client, uint32_t tag, uint32_t http_status);
/* The store has failed. */
void bed_fail_store(void);

#endif
