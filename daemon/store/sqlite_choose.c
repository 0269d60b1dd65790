/* Chooses the object that names a build's functions for a user (DECISIONS 12). */
#include <stdlib.h>
#include <string.h>

#include "store/sqlite.h"

/* One object with a summary of its senders. */
struct candidate {
    int64_t object, build;
    struct sqlite_choice hosts; /* if hosts have sent it: by, hosts */
    bool readable, has_names, trusted;
    size_t matched;    /* number of the uids that sent it */
    int64_t delivered; /* latest delivery by a trusted sender or one of the uids */
    char *note;        /* of that delivery */
};

/* When all senders of an object were read: keeps the better of it and the best so far. */
static void judge_candidate(struct candidate *c, size_t uid_count, struct candidate *best, struct candidate *failure)
{
    bool by_all = uid_count > 0 && c->matched == uid_count;
    struct candidate *target = NULL;
    if (c->readable && (c->trusted || by_all)) {
        if (best->object == 0 || c->has_names > best->has_names ||
            (c->has_names == best->has_names &&
             (c->trusted > best->trusted || (c->trusted == best->trusted && c->delivered > best->delivered)))) {
            target = best;
        }
    } else if (!c->readable && c->delivered > failure->delivered) {
        target = failure;
    }
    if (target) {
        free(target->note);
        *target = *c;
        c->note = NULL;
    }
    free(c->note);
    c->note = NULL;
}

static bool is_member(const uint32_t *uids, size_t n, uint32_t uid)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uids[middle] < uid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && uids[low] == uid;
}

/* Adds a row of SQL_OBJECT_EACH to its object. */
static enum profd_status fold_sender(struct sqlite_store *s, struct candidate *c, sqlite3_stmt *q,
                                     const struct store_senders *of, struct profd_error *e)
{
    const uint32_t uid = (uint32_t)sqlite3_column_int64(q, 3);
    bool trusted = sqlite3_column_int(q, 4) != 0, member = is_member(of->uids, of->uid_count, uid);
    int64_t delivered = sqlite3_column_int64(q, 5);
    if (member && store_is_tenant(uid)) {
        enum profd_status status = sqlite_judge_hosts(s, c->build, c->object, of, &c->hosts, &member, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    c->readable = sqlite3_column_int(q, 1) != 0;
    c->has_names = sqlite3_column_int(q, 2) != 0;
    c->trusted |= trusted;
    c->matched += member;
    if ((!trusted && !member) || delivered <= c->delivered) {
        return PROFD_OK;
    }
    c->delivered = delivered;
    free(c->note);
    c->note = strdup(sqlite_text(q, 6));
    return c->note ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a sentence about an executable");
}

enum profd_status sqlite_choose_object(struct sqlite_store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    struct candidate current = {.object = 0}, best = {.object = 0}, failure = {.object = 0};
    enum profd_status status = sqlite_start(s, SQL_OBJECT_EACH, VALUES(INTEGER(build)), &q, e);
    while (status == PROFD_OK && (status = sqlite_next(s, q, &row, e)) == PROFD_OK && row) {
        if (sqlite3_column_int64(q, 0) != current.object) {
            judge_candidate(&current, of->uid_count, &best, &failure);
            current = (struct candidate){.object = sqlite3_column_int64(q, 0), .build = build};
        }
        status = fold_sender(s, &current, q, of, e);
        if (status != PROFD_OK) {
            sqlite_finish(q);
        }
    }
    judge_candidate(&current, of->uid_count, &best, &failure);
    if (status == PROFD_OK) {
        choice->object = best.object;
        choice->has_names = best.has_names;
        choice->by = best.trusted ? STORE_NAMED_BY_USERS : best.hosts.by;
        choice->hosts = best.trusted ? 0 : best.hosts.hosts;
        choice->note = best.object != 0 ? best.note : failure.note;
        *(best.object != 0 ? &best.note : &failure.note) = NULL;
    }
    free(best.note);
    free(failure.note);
    return status;
}
