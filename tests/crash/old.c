#include "tests/crash/old.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/identity.h"
#include "tests/crash/place.h"

#define TEXT_MOST (1u << 20)

/* The file as one string; free() it. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = calloc(1, TEXT_MOST);
    const size_t n = f && text ? fread(text, 1, TEXT_MOST - 1, f) : 0;

    if (f) {
        fclose(f);
    }
    if (n) {
        return text;
    }
    free(text);
    return NULL;
}

bool old_make(const char *path, const char *folder)
{
    char file[PLACE_PATH], machine[IDENTITY_HOST_SIZE], own[512];
    char *text = read_text(path);
    sqlite3 *db = NULL;
    bool ok;

    mkdir(folder, 0700);
    place_join(file, folder, "profd.db");
    identity_host(machine);
    /* Ids are kept by host and user, for 30 days: host and user are those of the client that goes on, and it sent them
     * just now. */
    snprintf(own, sizeof own,
             "UPDATE host SET machine='%s'; UPDATE sender SET seen=strftime('%%s'), uid=%u; UPDATE series SET uid=%u; "
             "UPDATE build_user SET uid=%u; "
             "UPDATE build_set_user SET uid=%u; UPDATE user_epoch SET uid=%u; PRAGMA journal_mode=WAL",
             machine, geteuid(), geteuid(), geteuid(), geteuid(), geteuid());
    ok = text && sqlite3_open(file, &db) == SQLITE_OK && sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK &&
         sqlite3_exec(db, own, NULL, NULL, NULL) == SQLITE_OK;
    if (!ok) {
        printf("# %s: %s\n", path, text ? sqlite3_errmsg(db) : "cannot be read");
    }
    sqlite3_close(db);
    free(text);
    return ok;
}

void old_continue(struct stream *s)
{
    for (unsigned i = 0; i < STREAM_LANES; i++) {
        memcpy(s->lanes[i].sender, "campaign-v1", 11);
        s->lanes[i].sender[11] = (uint8_t)('0' + i);
        s->lanes[i].next = OLD_UPLOADS / STREAM_LANES;
        s->lanes[i].acked = OLD_UPLOADS / STREAM_LANES;
    }
    s->old = OLD_UPLOADS;
    for (unsigned i = 0; i < OLD_UPLOADS; i++) {
        s->state[i] = STREAM_ACKED;
    }
}
