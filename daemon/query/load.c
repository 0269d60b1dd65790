#include "query/load.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "proto/message.h"
#include "proto/collector.h"
#include "query/load_rolled.h"
#include "query/load_shares.h"
#include "query/row.h"
#include "query/set.h"

struct loading {
    const struct load_request *request;
    struct arena *arena;
    struct profile_sum *sum;
    struct rolled *rolled;
    struct load_shares *shares; /* NULL: not wanted */
    struct set series, hosts, host_labels, users, senders;
    const uint32_t **maps; /* per series: the sum's index of each build of its uploads */
    uint32_t map_capacity;
    const char **names; /* per build of the sum */
    uint32_t name_capacity;
    struct provenance provenance;
};

static enum profd_status add_build(struct loading *l, const struct store_build *build, uint32_t *index)
{
    enum profd_status status = profile_sum_build(l->sum, build->id.text, index);
    if (status != PROFD_OK) {
        return status;
    }
    void *names = arena_extend(l->arena, l->names, *index, &l->name_capacity, sizeof *l->names);
    if (names == NULL) {
        return PROFD_NO_MEMORY;
    }
    l->names = names;
    if (l->names[*index] == NULL) {
        const char *name = build->name != NULL ? build->name : "";
        l->names[*index] = arena_copy(l->arena, name, strlen(name));
    }
    return l->names[*index] != NULL ? PROFD_OK : PROFD_NO_MEMORY;
}

/* When only one build is wanted, nothing may point at the others any more: they get the index COUNTS_NOWHERE. */
static enum profd_status make_map(struct loading *l, const struct store_row *row, const uint32_t **out)
{
    uint32_t *map = ARENA_ARRAY(l->arena, row->build_count + 1, uint32_t);
    if (map == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (size_t i = 0; i < row->build_count; i++) {
        map[i] = COUNTS_NOWHERE;
        if (l->request->alone && strcmp(row->builds[i].id.text, l->request->filter.build_id) != 0) {
            continue;
        }
        enum profd_status status = add_build(l, &row->builds[i], &map[i]);
        if (status != PROFD_OK) {
            return status;
        }
    }
    *out = map;
    return PROFD_OK;
}

static enum profd_status add_host_label(struct loading *l, const struct store_row *row)
{
    uint32_t number;
    bool added;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < row->label_count; i++) {
        const struct store_label *label = &row->labels[i];
        if (strcmp(label->name, "host") == 0 && label->value[0] != '\0') {
            status = set_add(&l->host_labels, label->value, strlen(label->value), &number, &added);
        }
    }
    return status;
}

static enum profd_status find_map(struct loading *l, const struct store_row *row, const uint32_t **map)
{
    uint32_t number;
    bool added;
    enum profd_status status = set_add(&l->series, &row->series, sizeof row->series, &number, &added);
    if (status != PROFD_OK) {
        return status;
    }
    void *maps = arena_extend(l->arena, l->maps, number, &l->map_capacity, sizeof *l->maps);
    if (maps == NULL) {
        return PROFD_NO_MEMORY;
    }
    l->maps = maps;
    if (added) {
        status = add_host_label(l, row);
        if (status == PROFD_OK) {
            status = make_map(l, row, &l->maps[number]);
        }
        if (status == PROFD_OK && !l->request->alone) { /* the first upload of a series is its earliest */
            profile_sum_load_order(l->sum, l->maps[number], (uint32_t)row->build_count, row->commit);
        }
    }
    *map = l->maps[number];
    return status;
}

/* The collector's counters describe whole processes: they stay with the requested build. */
static void counts_keep_histograms(struct counts *c, const uint32_t *map, uint32_t builds)
{
    uint32_t n = 0, kept = 0;
    while (kept < builds && map[kept] == COUNTS_NOWHERE) {
        kept++;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        struct counts_histogram h = c->histograms[i];
        if (collector_is_dimension(h.dimension) && kept < builds) {
            h.build = kept;
        }
        if (map[h.build] != COUNTS_NOWHERE) {
            c->histograms[n++] = h;
        }
    }
    c->histogram_count = n;
}

/* Drops what does not touch the wanted build, in place; ends elsewhere lose their addresses, so that they add up. */
static void counts_keep_alone(struct counts *c, const uint32_t *map, uint32_t builds)
{
    uint32_t n = 0;
    counts_keep_histograms(c, map, builds);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        bool from = c->from_build[i] != COUNTS_NOWHERE && map[c->from_build[i]] != COUNTS_NOWHERE;
        bool to = c->to_build[i] != COUNTS_NOWHERE && map[c->to_build[i]] != COUNTS_NOWHERE;
        if (!from && !to) {
            continue;
        }
        c->from_build[n] = from ? c->from_build[i] : COUNTS_NOWHERE;
        c->to_build[n] = to ? c->to_build[i] : COUNTS_NOWHERE;
        c->from[n] = from ? c->from[i] : 0;
        c->to[n] = to ? c->to[i] : 0;
        if (c->sorted) {
            c->rank[n] = c->rank[i];
        }
        c->calls[n++] = c->calls[i];
    }
    c->arc_count = n;
}

static enum profd_status add_host(struct loading *l, uint32_t uid, const char *host)
{
    uint32_t number;
    bool added;
    const size_t n = host != NULL ? strlen(host) : 0;
    enum profd_status status = n == 0 ? PROFD_OK : set_add(&l->hosts, host, n, &number, &added);
    if (status == PROFD_OK && n > 0 && store_is_tenant(uid)) { /* with its NUL: it is used as text */
        status = set_add(&l->senders, host, n + 1, &number, &added);
    }
    return status;
}

static enum profd_status add_source(struct loading *l, const struct store_row *row)
{
    struct provenance *p = &l->provenance;
    uint32_t number;
    bool added, first = p->uploads == 0;
    p->uploads += row->uploads;
    p->processes += row->processes_started;
    random_groups_add(&p->groups, &row->groups);
    p->inexact |= row->inexact;
    p->inexact_all = first ? row->inexact : p->inexact_all & row->inexact;
    p->first = first || row->start < p->first ? row->start : p->first;
    p->last = first || row->end > p->last ? row->end : p->last;
    enum profd_status status = set_add(&l->users, &row->uid, sizeof row->uid, &number, &added);
    if (status == PROFD_OK) {
        status = add_host(l, row->uid, row->host);
    }
    for (size_t i = 0; status == PROFD_OK && i < row->host_count; i++) {
        status = add_host(l, row->uid, row->hosts[i]);
    }
    return status;
}

static enum profd_status take_counts(struct loading *l, const struct store_row *row, const uint32_t *map,
                                     struct profd_error *e)
{
    struct counts c = {0};
    enum profd_status status = row_decode_counts(row, &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (l->request->alone) {
        counts_keep_alone(&c, map, (uint32_t)row->build_count);
    }
    status = profile_sum_add(l->sum, &c, map, row->commit, l->request->arcs_only, e);
    if (status == PROFD_OK && l->request->stacks != LOAD_STACKS_NONE) {
        const struct tree_addend stacks = {.list = {c.trees, COUNTS_NODES(&c), c.tree_count},
                                           .map = map,
                                           .alone = l->request->alone,
                                           .group = row->group};
        status = profile_sum_add_stacks(l->sum, &stacks, row->commit, e);
    }
    counts_done(&c);
    return status;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct loading *l = context;
    const uint32_t *map;
    if (add_source(l, row) != PROFD_OK || find_map(l, row, &map) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up uploads");
    }
    enum profd_status status = l->shares != NULL ? load_shares_add(l->shares, row, map, e) : PROFD_OK;
    if (status != PROFD_OK) {
        return status;
    }
    return row->rolled ? rolled_add(l->rolled, row, map, e) : take_counts(l, row, map, e);
}

static int uid_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static enum profd_status finish_users(struct loading *l)
{
    const char **senders = ARENA_ARRAY(l->arena, (size_t)l->senders.count + 1, const char *);
    uint32_t *uids = ARENA_ARRAY(l->arena, (size_t)l->users.count + 1, uint32_t);
    if (uids == NULL || senders == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < l->senders.count; i++) {
        senders[i] = (const char *)l->senders.keys[i].bytes;
    }
    l->provenance.senders = senders;
    l->provenance.sender_count = l->senders.count;
    for (uint32_t i = 0; i < l->users.count; i++) {
        memcpy(&uids[i], l->users.keys[i].bytes, sizeof *uids);
    }
    qsort(uids, l->users.count, sizeof *uids, uid_compare);
    l->provenance.uids = uids;
    l->provenance.uid_count = l->users.count;
    l->provenance.hosts = l->hosts.count;
    l->provenance.host_labels = l->host_labels.count;
    return PROFD_OK;
}

/* Live processes, and those not read since the restart: loaded before the uploads, as store_get_living requires. */
static enum profd_status find_living(struct loading *l, struct profd_error *e)
{
    const struct load_request *r = l->request;
    struct provenance *p = &l->provenance;
    struct store_living unread, read;
    enum profd_status status = store_get_living(r->store, STORE_UNREAD, &r->scope, &r->filter, &unread, e);
    if (status == PROFD_OK) {
        status = store_get_living(r->store, STORE_READ, &r->scope, &r->filter, &read, e);
    }
    if (status == PROFD_OK) {
        p->unread = unread.processes;
        p->unread_since = unread.earliest;
        p->inexact |= unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0;
        p->live = read.processes;
        p->as_of = read.latest;
    }
    return status;
}

/* Something of what came from hosts is missing. */
static enum profd_status find_marks(struct loading *l, struct profd_error *e)
{
    uint32_t reasons = 0;
    bool any = l->users.count == 0;
    for (uint32_t i = 0; i < l->users.count && !any; i++) {
        uint32_t uid;
        memcpy(&uid, l->users.keys[i].bytes, sizeof uid);
        any = store_is_tenant(uid);
    }
    enum profd_status status =
        any ? store_get_marks(l->request->store, &l->request->scope, &l->request->filter, &reasons, e) : PROFD_OK;
    l->provenance.inexact |= reasons;
    return status;
}

/* Everything that matches becomes one profile. */
static enum profd_status load_sum(struct loading *l, struct profile **profile, struct shares *shares,
                                  struct profd_error *e)
{
    const struct load_request *request = l->request;
    struct store_filter filter = request->filter;
    enum profd_status status = find_living(l, e);
    filter.spread |= request->stacks == LOAD_STACKS_SHARES;
    if (status != PROFD_OK) {
        return status;
    }
    status = store_each_upload(request->store, &request->scope, &filter, take_row, l, e);
    if (status == PROFD_OK) {
        status = find_marks(l, e);
    }
    if (status == PROFD_OK) {
        status = store_pattern_judge(&request->filter, e);
    }
    if (status == PROFD_OK) {
        status = rolled_close(l->rolled, l->sum, e);
    }
    if (status == PROFD_OK) {
        status = profile_sum_finish(l->sum, profile, e);
    }
    if (status == PROFD_OK) {
        status = rolled_join(l->rolled, *profile, e);
    }
    return status == PROFD_OK && l->shares != NULL ? load_shares_finish(l->shares, *profile, request->alone, shares, e)
                                                   : status;
}

enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e)
{
    struct loading l = {.request = request, .arena = a, .sum = profile_sum_new(a)};
    const struct rolled_config rolled = {.cache = request->cache,
                                         .alone = request->alone,
                                         .arcs_only = request->arcs_only,
                                         .stacks = request->stacks != LOAD_STACKS_NONE,
                                         .shares = request->stacks == LOAD_STACKS_SHARES,
                                         .sum = l.sum};
    l.rolled = l.sum != NULL ? rolled_new(a, &rolled) : NULL;
    set_init(&l.series, a);
    set_init(&l.hosts, a);
    set_init(&l.host_labels, a);
    set_init(&l.users, a);
    set_init(&l.senders, a);
    l.shares = l.rolled != NULL && request->shares != NULL ? load_shares_new(request->shares) : NULL;
    if (l.rolled == NULL || (request->shares != NULL && l.shares == NULL)) {
        rolled_done(l.rolled);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up uploads");
    }
    struct load result = {0};
    enum profd_status status = PROFD_OK;
    if (request->stacks != LOAD_STACKS_NONE) {
        status = profile_sum_want_stacks(l.sum, request->stacks == LOAD_STACKS_SHARES);
    }
    status = status == PROFD_OK ? load_sum(&l, &result.profile, &result.shares, e)
                                : profd_error_set(e, status, "no memory to add up uploads");
    rolled_done(l.rolled);
    load_shares_done(l.shares);
    if (status == PROFD_OK && finish_users(&l) != PROFD_OK) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up uploads");
    }
    if (status == PROFD_OK && request->downtime != NULL) {
        downtime_measure(request->downtime, l.provenance.first, l.provenance.last, &l.provenance.down_count,
                         &l.provenance.down_ns);
    }
    if (status == PROFD_OK) {
        result.names = l.names;
        result.provenance = l.provenance;
        *out = result;
    }
    return status;
}
