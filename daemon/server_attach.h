/* Live processes: who counts into a memory that the daemon was handed, when it is read, and how that ends. Private to
 * server_attach*.c and those who start, ask and stop them. Everything belongs to the loop's thread; while a process is
 * being read or stored its attach_process and harvest belong to whoever does so.
 *
 *   ATTACH → table → wanted → read (harvesting thread) → stored (writer) → settled → wanted again after the interval
 *
 * A process ends when its handle (pidfd) says so; that its connection has gone means "read it now" only. */
#ifndef PROFD_DAEMON_SERVER_ATTACH_H
#define PROFD_DAEMON_SERVER_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/request.h"
#include "core/rows.h"
#include "ingest/attach.h"
#include "net/watch.h"
#include "server_parts.h"

#define SERVER_ATTACH_BUCKETS 4096u
#define SERVER_ATTACH_NAME 96u /* of a memory that the service manager keeps */

/* What is shown of a process, as of its latest harvest. Texts lie behind it in one block. */
struct server_attach_facts {
    struct attach_facts facts; /* its labels are these: */
    struct label_row labels[];
};

enum server_attached_stage {
    SERVER_ATTACHED_IDLE,
    SERVER_ATTACHED_WANTED,
    SERVER_ATTACHED_READING,
    SERVER_ATTACHED_STORING
};

struct server_attached_user;

/* One live process, or one that has ended and is read a last time. */
struct server_attached {
    struct server_harvest harvest; /* first */
    struct server *server;
    struct server_attached_user *user;
    struct server_attached *next, *next_of_pid; /* of a bucket */
    struct server_attached *next_ready;
    struct server_attached *next_due, *previous_due;

    uint8_t instance[ATTACH_INSTANCE_SIZE];
    uint32_t uid;
    struct attach_origin origin;
    uint64_t device, inode; /* of the memory */
    int memory;             /* its descriptor, which belongs to process */
    struct attach_process *process;
    conn_id conn; /* 0: hung up */
    int pidfd;    /* −1: nobody tells of its end but the connection */
    struct watch *watch;
    struct attach_page *page;
    struct server_attach_facts *facts; /* NULL before the first harvest */

    enum server_attached_stage stage;
    bool resume;       /* the durable snapshot is to be read first */
    bool dead, ending; /* ended; and the harvest under way says so */
    bool again;        /* asked for while one was under way */
    bool failed;       /* it is not to be believed: it goes when nobody has it in hand */
    bool kept;         /* by the service manager */
    size_t weight;     /* bytes that are being read, as far as can be told before, or were read and are not stored */
    size_t kept_bytes; /* of its snapshot, in memory */
    uint64_t due;      /* its place among those that a SYNC waits for; 0: none */
    uint64_t next_at;  /* ms of loop_now: when it is read again */
    uint64_t began;    /* ms of loop_now: when it was attached */
    uint64_t read_ms, read_us; /* when the latest reading began, and how long it took */
};

/* Those of one user. */
struct server_attached_user {
    struct server_attached_user *next, *next_ready;
    uint32_t uid;
    size_t count;
    struct server_attached *ready_first, *ready_last;
    bool ready; /* stands in the queue of users */
    struct server_attached *due_first, *due_last;
    struct server_sync *sync_first, *sync_last;
};

/* A SYNC that waits for the last harvests of its user's processes. */
struct server_sync {
    struct server_sync *next;
    conn_id conn;
    uint32_t uid;
    uint64_t job;  /* of the connection's session */
    uint64_t turn; /* everything that was due by then */
};

struct server_attach {
    struct server *server;
    struct server_attached *buckets[SERVER_ATTACH_BUCKETS], *of_pid[SERVER_ATTACH_BUCKETS];
    struct server_attached_user *users[SERVER_ATTACH_BUCKETS];
    size_t count, descriptors; /* descriptors: how many connections and processes may hold together */
    struct server_attached_user *ready_first, *ready_last;
    size_t in_hand, in_hand_bytes;
    size_t kept_bytes; /* of all snapshots in memory */
    uint64_t turn;

    struct server_sync *asked_first, *asked_last; /* not looked at yet */
    size_t syncs;
    struct loop_task sync_task;
    bool sync_posted;

    struct store *store; /* of the harvesting thread, as is the checker */
    struct ingest_checker *checker;
    struct work *work;
    struct loop_timer *sweep_timer, *unseen_timer;
    bool sweeping, unseen_running;
    char host[33]; /* machine-id, or "" */
    uint8_t boot[16];
    size_t kept;                           /* memories that the service manager holds */
    struct server_attach_dropped *dropped; /* names that it is still to be told to drop */
};

/* server_attach.c */
enum profd_status server_attach_start(struct server *s, struct profd_error *e);
enum profd_status server_take_attach(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
/* The connection ends; its process may live. */
void server_attach_hang_up(struct server *s, struct server_attached *a);
/* Everything is read once more; nothing new comes in. */
void server_attach_stop(struct server *s);
bool server_attach_is_idle(const struct server *s);
/* Ends the harvesting thread, while the writer still runs. */
void server_attach_end_thread(struct server *s);
/* After the writer. */
void server_attach_end(struct server *s);

/* server_attach_table.c */
struct server_attached *server_attach_find(const struct server_attach *t, uint32_t uid,
                                           const uint8_t instance[ATTACH_INSTANCE_SIZE]);
struct server_attached_user *server_attach_find_user(const struct server_attach *t, uint32_t uid);
/* Room for one more of this user? BUSY names the limit. */
enum profd_status server_attach_judge_room(const struct server *s, uint32_t uid, struct profd_error *e);
/* Adds it; false when out of memory. */
bool server_attach_insert(struct server *s, struct server_attached *a);
/* Forgets it and frees what it holds; SYNCs do not wait for it any more. Only when nobody has it in hand. */
void server_attach_forget(struct server *s, struct server_attached *a);
/* Calls f for everyone; f may forget the one it is given. */
void server_attach_each(struct server *s, void (*f)(struct server *s, struct server_attached *a));

/* server_attach_take.c */
/* A process whose memory is fd, not in the table yet; takes over fd. On failure fd stays the caller's. */
enum profd_status server_attach_new(struct server *s, uint32_t uid, const struct attach_origin *origin, int fd,
                                    struct server_attached **out, struct profd_error *e);
/* Hears of the end of its process; pidfd is taken over, −1: unknown. */
void server_attach_watch(struct server *s, struct server_attached *a, enum peer_process state, int pidfd);

/* server_attach_facts.c: a copy of what is known of it. */
void server_attach_copy_facts(struct server_attached *a);

/* server_attach_harvest.c */
/* Makes it ready for its first harvest. */
void server_attach_hand(struct server_attached *a);
/* It is to be read as soon as may be; first: before the others of its user. */
void server_attach_want(struct server *s, struct server_attached *a, bool first);
/* Its process has ended, or will not be heard of again: a last harvest. */
void server_attach_bury(struct server *s, struct server_attached *a);
/* Reads whom it is time to read, at most as many as may be under way. */
void server_attach_dispatch(struct server *s);
/* On the harvesting thread. */
void server_attach_run(void *context, struct work_item *const *items, size_t n);
void server_attach_was_read(void *context, struct work_item *item);
void server_attach_drop(void *context, struct work_item *item);
/* Sets the timer of the next look at who is due. */
void server_attach_sweep(struct server *s);
void server_attach_on_sweep(void *context);

/* server_attach_store.c: on the writer's thread, all of a batch at once. */
void server_attach_store(struct store *store, struct work_item *const *items, size_t n);

/* server_attach_sync.c */
/* Ends the job when everything that a process of the connection's user, ended by now, had counted is durable. */
void server_attach_sync(struct server *s, struct conn *c, uint64_t job);
void server_attach_on_sync(struct loop_task *task);
/* Puts it among those that SYNCs wait for, and takes it out. */
void server_attach_make_due(struct server *s, struct server_attached *a);
void server_attach_clear_due(struct server *s, struct server_attached *a);
/* The store has failed: nobody waits any more. */
void server_attach_fail_syncs(struct server *s);
void server_attach_end_syncs(struct server *s);

/* server_attach_page.c: the daemon's word to a process. */
/* A page that only we can write, and a descriptor of it to be handed over. */
enum profd_status server_attach_page_new(struct attach_page **page, int *fd, struct profd_error *e);
void server_attach_page_free(struct attach_page *page);
void server_attach_page_write(struct attach_page *page, bool paused, uint32_t rate);

/* server_attach_place.c: where processes live. */
/* Fills in the machine's part. */
void server_attach_place_init(struct server_attach *t);
/* Field 22 of /proc/PID/stat, 0 if it cannot be read. */
uint64_t server_attach_started(uint32_t pid);
void server_attach_origin(const struct server_attach *t, uint32_t pid, struct attach_origin *out);

/* server_attach_unseen.c: processes that ended while nobody looked. */
/* Now, and then every minute; for the first time when what a manager kept was taken back. */
void server_attach_look_unseen(struct server *s);
void server_attach_on_unseen(void *context);

/* server_attach_keep.c: memories that the service manager holds while the daemon is away. */
void server_attach_keep(struct server *s, struct server_attached *a);
void server_attach_drop_kept(struct server *s, struct server_attached *a);
/* Takes back what was kept; closes what is no longer wanted. Frees kept. */
void server_attach_take_kept(struct server *s, struct listen_kept *kept, size_t n);
/* The manager did not take everything at once. */
void server_attach_keep_again(struct server *s);
void server_attach_keep_end(struct server *s);

/* server_attach_switch.c: ADMIN pause and resume. */
enum profd_status server_attach_switch(struct server *s, const struct peer *peer, const struct request *request,
                                       struct server_page *page, struct profd_error *e);

/* server_attach_list.c: GET /api/v1/processes. */
#define SERVER_ATTACH_PATH "/api/v1/processes"
#define SERVER_ATTACH_PAGE_MAX (64u << 20) /* bytes of an answer */
/* True if the target is that path. */
bool server_attach_list(struct server *s, const struct query_request *request, struct server_page *page);
/* One process as a JSON object. */
void server_attach_add_json(const struct server_attached *a, int64_t now, struct buffer *out);
void server_attach_view(const struct server *s, struct metrics_view *v);

#endif
