/* ADMIN: the requests of operators, and pause and resume of live processes. The user of the connection, as the kernel
 * states it, decides the permission. */
#ifndef PROFD_REQUESTS_ADMIN_H
#define PROFD_REQUESTS_ADMIN_H

#include "live/live.h"
#include "requests/requests.h"
#include "store/store.h"

#define ADMIN_KEYS_MAX 128 /* of a configuration */

struct clickhouse_address;
struct space;
struct upkeep_job;
struct verifier;

/* The keys of the configuration that differ: those that were applied, and those that need a restart. Static. */
struct admin_reload {
    size_t applied_count, restart_count;
    const char *applied[ADMIN_KEYS_MAX], *restart[ADMIN_KEYS_MAX];
};

/* All parts outlive the service. */
struct admin_config {
    struct shared *shared;
    struct space *space;
    struct upkeep_job *upkeep;
    struct verifier *verifier;
    struct relay_service *relay;
    const char *state_dir;
    const struct clickhouse_address *tier; /* NULL: none is configured */
    const char *tier_ca;                   /* NULL: the system's */
    /* Requests in flight that this removed token was admitted for are to be refused. */
    void (*end_token)(void *context, uint64_t id);
    /* Reads the configuration again. On an error nothing has changed. */
    enum profd_status (*reload)(void *context, struct admin_reload *out, struct profd_error *e);
    void *context;
};

enum profd_status admin_service_new(const struct admin_config *config, struct admin_service **out,
                                    struct profd_error *e);
/* The client of this connection has hung up: its verbs that wait are not begun, and a verification or backup ends. */
void admin_service_cancel(struct admin_service *s, conn_id conn);
/* What goes on is not continued; a statement of the tier is cancelled. */
void admin_service_stop(struct admin_service *s);
/* Waits for the thread that asks the tier. Before the connections are freed. */
void admin_service_join(struct admin_service *s);
/* After the writer's and the verifier's threads and the connections. Accepts NULL. */
void admin_service_free(struct admin_service *s);
/* For conn_handler; the context is the service. */
enum profd_status admin_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

enum admin_verb {
    ADMIN_DELETE,
    ADMIN_VERIFY,
    ADMIN_BACKUP,
    ADMIN_PAUSE,
    ADMIN_RESUME,
    ADMIN_RELOAD,
    ADMIN_CONFIRM_CLOCK,
    ADMIN_TOKEN_ADD,
    ADMIN_TOKEN_LIST,
    ADMIN_TOKEN_REMOVE,
    ADMIN_RELAY_MOVE,
    ADMIN_TIER_INIT
};

/* Returns the verb as it is written in a request: "delete". Static. */
const char *admin_verb_name(enum admin_verb verb);

struct admin_request {
    enum admin_verb verb;
    char build[160];                 /* DELETE: a build-id or a prefix of one; otherwise "" */
    struct live_selection processes; /* PAUSE and RESUME */
    struct store_token token;        /* TOKEN_ADD: without times, numbers and hash; TOKEN_REMOVE: its name */
    char given[96];                  /* TOKEN_ADD: the token; "": it is drawn */
    int64_t lasts;                   /* TOKEN_ADD: ns; 0: until says when it ends */
    char until[40];                  /* TOKEN_ADD: a time for when_parse; "": none */
};

/* Parses a verb and its n arguments. METHOD: the verb is unknown. USAGE: the number of arguments is wrong, or one of
 * them is not valid. The selectors of processes borrow their texts from arguments. */
enum profd_status admin_parse(const char *verb, const char *const *arguments, size_t n, struct admin_request *out,
                              struct profd_error *e);

#endif
