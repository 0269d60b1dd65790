/* What the lock file remembers of the database, outside of it. */
#ifndef PROFD_WRITER_DATABASE_MARK_H
#define PROFD_WRITER_DATABASE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct database_mark {
    bool any;           /* this state directory had a database; inode is its */
    bool known;         /* the file that has its name now is that one */
    bool damaged;       /* damage was met in it */
    bool closed;        /* profd ended as it should, and last is what was stored then; else it was killed, */
    uint64_t log_inode; /* and this is the log, which is not empty; 0: not known */
    uint64_t inode;
    struct store_sqlite_state last;
};

/* path: of the database, which need not be there. What cannot be read is not known. */
void database_mark_read(int lock_fd, const char *path, struct database_mark *out);

/* Each replaces what was noted before, and is durable when it returns; a failure is logged. */
/* Damage was met. closed: the database is being closed and needs no log; else what was noted of the log stays noted. */
void database_mark_write_damaged(int lock_fd, const char *path, bool closed);
/* The database is open, and its log not empty. */
void database_mark_write_open(int lock_fd, const char *path);
/* Nothing more is committed, and the next start takes the database for another one: its ETags become new. */
void database_mark_write_unsalted(int lock_fd, const char *path);
/* Nothing more is committed. */
void database_mark_write_closed(int lock_fd, const char *path, const struct store_sqlite_state *last);

#endif
