/* Opens reading handles to what a daemon stores, whatever the engine. */
#ifndef PROFD_STORE_OPENER_H
#define PROFD_STORE_OPENER_H

#include "store/store.h"

/* Outlives its users, which may call open on any thread. */
struct store_opener {
    bool shared; /* other daemons write to it, too */
    enum profd_status (*open)(const struct store_opener *o, struct store **out, struct profd_error *e);
};

/* The database at a path, which the caller keeps and the process's writing handle has open. */
struct store_sqlite_opener {
    struct store_opener base;
    const char *path;
};
struct store_sqlite_opener store_sqlite_opener(const char *path);

#endif
