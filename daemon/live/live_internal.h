/* What the files of live/ share. For live/ only. Files lower in this list do not call those above them:
 *
 *   live, live_attach, orphans, live_list
 *   exits
 *   harvest
 *   live_process
 *   sync, fdstore
 *   live_table, live_origin
 *
 * While a process is being read or stored its attach_process and harvest belong to the thread that does so. */
#ifndef PROFD_LIVE_LIVE_INTERNAL_H
#define PROFD_LIVE_LIVE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/container.h"
#include "core/hashmap.h"
#include "core/rows.h"
#include "ingest/attach.h"
#include "ingest/ingest.h"
#include "live/live.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/peer.h"
#include "net/work.h"
#include "proto/limits.h"
#include "store/store.h"
#include "writer/writer.h"

#define LIVE_BUCKETS 4096u
#define LIVE_NAME 96u /* of a memory that the service manager keeps */

/* What a live process counted, on its way to the store: all of a batch in one transaction. */
struct live_harvest {
    struct writer_job job; /* its item serves the harvesting thread's queue, too; its status is first that of reading */
    struct live *live;
    struct attach_harvest harvest;
    enum store_outcome outcome;
    void (*read)(void *context, struct live_harvest *h);      /* on the harvesting thread */
    void (*was_read)(struct live *l, struct live_harvest *h); /* then, on the loop; or, status STOPPING, instead */
    void (*stored)(struct live *l, struct live_harvest *h);   /* after the writer, on the loop; likewise */
};

/* What lists show of a process, as of its latest harvest. The texts follow it in the same block. */
struct live_summary {
    struct attach_summary values; /* its labels are these: */
    struct label_row labels[];
};

enum live_stage { LIVE_IDLE, LIVE_PENDING, LIVE_READING, LIVE_STORING };

struct live_user;

LIST_HEAD(live_of_pid, live_process);
STAILQ_HEAD(live_syncs, live_sync);

/* A live process, or one that has ended and is to be read for the last time. */
struct live_process {
    struct live_harvest harvest;
    struct live *live;
    struct live_user *user;
    LIST_ENTRY(live_process) all, of_pid;
    struct live_process **of_instance, **of_memory; /* its entries in the tables */
    bool in_of_pid;                                 /* is in a list of its process number */
    struct live_process *next_ready;
    struct live_process *next_pending, *previous_pending;

    uint8_t instance[ATTACH_INSTANCE_SIZE];
    uint32_t uid;
    struct attach_origin origin;
    uint64_t device, inode; /* of the memory */
    int memory;             /* its descriptor, which belongs to process */
    struct attach_process *process;
    conn_id conn; /* 0: hung up */
    int pidfd;    /* −1: only the connection tells of its end */
    struct loop_watch *watch;
    struct attach_page *page;
    struct live_summary *summary; /* NULL before the first harvest */

    enum live_stage stage;
    bool resume;       /* the durable snapshot is to be read first */
    bool dead, ending; /* ended; and the harvest under way says so */
    bool hears;        /* it has a connection at the beginning of a harvest, */
    bool more_filters; /* which then finds this */
    bool look;         /* without a connection: check before the harvest whether it runs another program, */
    bool left;         /* and it does: this was the last harvest */
    bool again;        /* asked for while one was under way */
    bool failed;       /* it is not valid: it is removed when no harvest of it is in flight */
    bool owed;     /* the connection waits for the ACK of ATTACH, which is sent when the process is in the database */
    uint32_t tag;  /* of that ACK, */
    int page_fd;   /* the descriptor to send with it; −1: none */
    bool kept;     /* by the service manager */
    bool ask;      /* there is something for it to read in its connection */
    bool filtered; /* it has more seccomp filters than when it began to count */
    size_t weight; /* bytes being read (an estimate), or read and not stored yet */
    size_t kept_bytes;         /* of its snapshot, in memory */
    uint64_t pending;          /* position among those that a SYNC waits for; 0: none */
    uint64_t next_at;          /* ms of loop_now: when it is read again */
    uint64_t began;            /* ms of loop_now: when it was attached */
    uint64_t read_ms, read_us; /* start and duration of the latest reading */
};

/* Those of one user. */
struct live_user {
    struct live_user *next, *next_ready;
    uint32_t uid;
    size_t count;
    struct live_process *ready_first, *ready_last;
    bool ready; /* stands in the queue of users */
    struct live_process *pending_first, *pending_last;
    struct live_syncs syncs; /* SYNCs that wait for pending processes, */
    struct live_syncs heard; /* those before which what the user's connections have sent is being read, */
    struct live_syncs asked; /* and those that came meanwhile */
    uint32_t heard_at;       /* how far that has come */
    bool asking;             /* heard or asked are not empty: it is in the list of such users */
    TAILQ_ENTRY(live_user) next_asking;
    uint64_t refused_count; /* processes, and connections that may have been of one, not accepted since the start */
};

/* A process that is not read any more. */
struct live_refused {
    struct live_refused *next;
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
};

/* A process of an earlier daemon that lives, and may attach again: its end is observed. */
struct live_awaited {
    struct live_awaited *next;
    struct attach_origin origin;
    uint32_t uid;
    uint8_t instance[STORE_INSTANCE_SIZE];
    int pidfd; /* −1: unknown */
    struct loop_watch *watch;
};

struct live {
    struct live_config config;
    LIST_HEAD(live_processes, live_process) processes;
    struct hashmap of_instance, of_memory;      /* user and instance, device and inode → struct live_process * */
    struct live_of_pid connected[LIVE_BUCKETS]; /* by process number: those with a connection, */
    struct live_of_pid silent[LIVE_BUCKETS];    /* and those without that are not known to have ended */
    struct live_user *users[LIVE_BUCKETS];
    size_t count, page_count, awaited_count; /* processes; page_fd of processes; handles of awaited ones */
    struct live_user *ready_first, *ready_last;
    size_t in_flight, in_flight_bytes; /* harvests */
    size_t kept_bytes;                 /* of all snapshots in memory */
    uint64_t sequence;                 /* of what SYNCs wait for */

    uint64_t refused_count; /* of users that are not known: as in struct live_user */

    TAILQ_HEAD(, live_user) asking; /* users with SYNCs that are not begun yet */
    size_t syncs;
    struct loop_task sync_task;
    bool sync_posted;

    struct store *store; /* of the harvesting thread, as is what it remembers of builds */
    struct build_cache *builds;
    struct work *work;
    struct loop_timer *sweep_timer, *orphan_timer;
    bool stopping, sweeping, orphans_running;
    struct live_refused *refused; /* their ends are to be stored */
    struct live_awaited *awaited;
    int64_t began; /* ns of loop_clock */
    bool searched; /* the memory of processes of an earlier daemon was searched */
    char host[33]; /* machine-id, or "" */
    uint8_t boot[16];
    size_t kept;                     /* memories that the service manager holds */
    struct fdstore_dropped *dropped; /* names of descriptors that the service manager is still to remove */
    struct live_counts counts;       /* those since the start */
};

/* live_table.c: by user and instance, by process number, by user. */
struct live_process *table_find(const struct live *l, uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE]);
struct live_user *table_find_user(const struct live *l, uint32_t uid);
/* The same, made if need be; NULL when out of memory. */
struct live_user *table_open_user(struct live *l, uint32_t uid);
/* Forgets a user without processes and without state to keep. */
void table_close_user(struct live *l, struct live_user *user);
/* The entry that has the same memory, of any user; NULL if there is none. */
struct live_process *table_find_same(const struct live *l, const struct live_process *a);
/* Makes it a process of another user. False when out of memory: nothing was changed. */
bool table_change_user(struct live *l, struct live_process *a, uint32_t uid);
/* Checks that there is capacity for one more process of this user. BUSY names the limit. */
enum profd_status table_check_capacity(const struct live *l, uint32_t uid, struct profd_error *e);
/* What processes hold is not there for connections: to be called when that has changed. */
void table_share(struct live *l);
/* Adds it; false when out of memory. Its user, instance and memory are those of no other entry. */
bool table_insert(struct live *l, struct live_process *a);
/* Files it by its process number: to be called when its connection came or went, or it is known to have ended, or not
 * any more. Those that have ended and have no connection are in no list, so that no ATTACH walks over them. */
void table_file(struct live *l, struct live_process *a);
/* Takes it out, and its user when it was the last. */
void table_remove(struct live *l, struct live_process *a);
/* Calls f for each; f may remove the one it is given. */
void table_each(struct live *l, void (*f)(struct live *l, struct live_process *a));
/* The process will not be read any more: its end is stored as not seen, although it may live. */
void table_note_refused(struct live *l, uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE]);
void table_free_refused(struct live_refused *list);

/* live_table.c: processes of an earlier daemon that live and have not attached again. */
/* Observes the ends of those in the list that have not attached, instead of those of the previous call. Takes the list
 * over. */
void awaited_set(struct live *l, struct live_awaited *list);
/* A process has attached: what an earlier program of the same process counted, and was not read, is lost. */
void awaited_end_earlier(struct live *l, const struct live_process *a);
void awaited_free(struct live_awaited *list);

/* live_process.c */
/* A new entry for the memory fd, not yet in the table; takes over fd. On failure fd stays the caller's. */
enum profd_status process_new(struct live *l, uint32_t uid, const struct attach_origin *origin, int fd,
                              struct live_process **out, struct profd_error *e);
/* Frees an entry that was not inserted, and closes its memory. */
void process_discard(struct live_process *a);
/* The descriptor of the page that is to be sent, −1: none. Closes the earlier one. */
void process_set_page_fd(struct live *l, struct live_process *a, int fd);
/* Removes it and frees what it holds; SYNCs do not wait for it any more. Only when no harvest of it is in flight. */
void process_remove(struct live *l, struct live_process *a);

/* What a process is told (live_process.c). */
/* The process is in the database: acknowledges ATTACH, if that was not done. */
void answer_acknowledge(struct live *l, struct live_process *a);
/* Closes the connection with a reason; answers ATTACH if that was not done. */
void answer_dismiss(struct live *l, struct live_process *a, enum profd_status status, const char *sentence);

/* exits.c */
/* Watches for the end of the process, and finds its place; pidfd is taken over, −1: unknown. */
void exits_watch(struct live *l, struct live_process *a, enum peer_process state, int pidfd);
/* What earlier programs of the same process counted is complete. */
void exits_mark_earlier(struct live *l, const struct live_process *a);
void exits_on_sync(struct loop_task *task);

/* live_process.c: a copy of what is known of it, for the loop, which answers while the process itself is being read. */
void summary_copy(struct live_process *a);

/* harvest.c */
/* Schedules a harvest as soon as possible; first: before the others of its user. */
void harvest_want(struct live *l, struct live_process *a, bool first);
/* The process has ended, or can no longer be observed: schedules the last harvest. */
void harvest_mark_exited(struct live *l, struct live_process *a);
/* Begins the harvests that are due, at most as many as may be in flight. */
void harvest_dispatch(struct live *l);
/* Of the harvesting thread's queue. */
void harvest_run(void *context, struct work_item *const *items, size_t n);
void harvest_was_read(void *context, struct work_item *item);
void harvest_drop(void *context, struct work_item *item);
/* Sets the timer for the next harvest that becomes due. */
void harvest_sweep(struct live *l);
void harvest_on_sweep(void *context);

/* harvest.c: all of a batch in one transaction. */
extern const struct writer_job_type live_harvest_type;

/* sync.c */
/* Adds the process to those that SYNCs wait for, or removes it. */
void sync_make_pending(struct live *l, struct live_process *a);
void sync_clear_pending(struct live *l, struct live_process *a);
/* Waits for what is pending now, if anything is; else it is granted. u: its user. */
void sync_wait(struct live *l, struct live_user *u, struct live_sync *sync);
/* Has exits_on_sync called in the next pass of the loop. */
void sync_post(struct live *l);
/* All SYNCs of the user have been begun. */
void sync_stop_asking(struct live *l, struct live_user *u);
/* No SYNC will be granted any more. */
void sync_end(struct live *l);

/* live_list.c: the page by which a process is told to pause. */
/* Creates a page that only the daemon can write, and a descriptor of it for the process. */
enum profd_status page_new(struct attach_page **page, int *fd, struct profd_error *e);
void page_free(struct attach_page *page);
/* The process is to find out that its connection was closed. */
void page_close(struct attach_page *page);
/* The heartbeat. ask: the process is to read its connection. filtered: it must not make system calls any more. */
void page_beat(struct attach_page *page, bool ask, bool filtered);
void page_write(struct attach_page *page, bool paused, uint32_t rate);

/* live_origin.c: machine, boot, and the moment a process began, which with its number names it. */
/* Fills in the machine's part. */
void origin_init(struct live *l);
/* Reads where the process runs, while it is certain which one it is. If that fails and its number is known, it may
 * state no such label itself. pidfd: −1: unknown. */
void origin_find_place(const struct live *l, struct live_process *a, int pidfd);
/* CPU time of the process in ns; 0 if it is not there. */
uint64_t origin_read_cpu(const struct attach_origin *origin);
/* Number of its seccomp filters (proto/filters.h). */
uint32_t origin_count_filters(const struct attach_origin *origin);
void origin_of(const struct live *l, uint32_t pid, struct attach_origin *out);

/* fdstore.c: memories of processes that an earlier daemon read. */
/* Opens the memory of this instance in a process of the daemon's own user; −1 if there is none that can be trusted.
 * Nothing of other users' processes is opened, whatever the daemon's rights. O(descriptors of the process); may block.
 */
int search_find_memory(const struct attach_origin *origin, const uint8_t instance[ATTACH_INSTANCE_SIZE]);
/* True if the process no longer maps the memory with this inode number (0: any memory file), so it runs another
 * program. False if that is not known: only processes of the daemon's own user are checked, because the memory map of
 * another one could stay locked. May block. */
bool search_has_unmapped(const struct attach_origin *origin, uint64_t inode);
/* True if one of the four user ids of the process is this one. */
bool search_has_user(const struct attach_origin *origin, uint32_t uid);
/* Returns whether the process with this origin still exists. A zombie does not. */
enum peer_process search_open_process(const struct attach_origin *origin, int *pidfd);

/* orphans.c */
void orphans_on_timer(void *context);

/* fdstore.c: memories that the service manager holds while the daemon is away. */
void fdstore_keep(struct live *l, struct live_process *a);
void fdstore_drop(struct live *l, struct live_process *a);
/* profd-INSTANCE-UID-PID-STARTED, as fdstore_keep gave it. */
bool fdstore_parse_name(const char *name, uint8_t instance[ATTACH_INSTANCE_SIZE], uint32_t *uid, uint32_t *pid,
                        uint64_t *started);
/* Tells the manager to drop a name; false: not now. */
bool fdstore_say_drop(const char *name);
/* The manager did not take everything at once. */
void fdstore_retry(struct live *l);
void fdstore_end(struct live *l);

/* live_list.c */
/* Makes a row with copies of its texts in the arena. False when that is exhausted. */
bool list_copy_row(const struct live_process *a, int64_t now, struct arena *arena, struct process_row *row);

#endif
