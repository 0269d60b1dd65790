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
    struct set series, hosts, host_labels, users;
    const uint32_t **maps; /* per series: the sum's index of each build of its uploads */
    uint32_t map_capacity;
    const char **names; /* per build of the sum */
    uint32_t name_capacity;
    struct provenance provenance;
};

static uint32_t add_build(struct loading *l, const struct store_build *build)
{
    const uint32_t index = profile_sum_build(l->sum, build->id.text);
    l->names = arena_extend(l->arena, l->names, index, &l->name_capacity, sizeof *l->names);
    if (l->names[index] == NULL) {
        const char *name = build->name != NULL ? build->name : "";
        l->names[index] = arena_copy(l->arena, name, strlen(name));
    }
    return index;
}

/* When only one build is wanted, nothing may point at the others any more: they get the index COUNTS_NOWHERE. */
static const uint32_t *make_map(struct loading *l, const struct store_row *row)
{
    uint32_t *map = ARENA_ARRAY(l->arena, row->build_count + 1, uint32_t);
    for (size_t i = 0; i < row->build_count; i++) {
        const bool left_out = l->request->alone && strcmp(row->builds[i].id.text, l->request->filter.build_id) != 0;
        map[i] = left_out ? COUNTS_NOWHERE : add_build(l, &row->builds[i]);
    }
    return map;
}

static void add_host_label(struct loading *l, const struct store_row *row)
{
    bool added;
    for (size_t i = 0; i < row->label_count; i++) {
        const struct store_label *label = &row->labels[i];
        if (strcmp(label->name, "host") == 0 && label->value[0] != '\0') {
            set_add(&l->host_labels, label->value, strlen(label->value), &added);
        }
    }
}

static const uint32_t *find_map(struct loading *l, const struct store_row *row)
{
    bool added;
    const uint32_t number = set_add(&l->series, &row->series, sizeof row->series, &added);
    l->maps = arena_extend(l->arena, l->maps, number, &l->map_capacity, sizeof *l->maps);
    if (added) {
        add_host_label(l, row);
        l->maps[number] = make_map(l, row);
        if (!l->request->alone) { /* a series is first seen with the number of its earliest upload */
            profile_sum_load_order(l->sum, l->maps[number], (uint32_t)row->build_count, row->commit);
        }
    }
    return l->maps[number];
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

static void add_host(struct loading *l, const char *host)
{
    bool added;
    if (host != NULL && host[0] != '\0') {
        set_add(&l->hosts, host, strlen(host), &added);
    }
}

static void add_source(struct loading *l, const struct store_row *row)
{
    struct provenance *p = &l->provenance;
    bool added, first = p->uploads == 0;
    p->uploads += row->uploads;
    p->processes += row->processes_started;
    random_groups_add(&p->groups, &row->groups);
    p->inexact |= row->inexact;
    p->inexact_all = first ? row->inexact : p->inexact_all & row->inexact;
    p->first = first || row->start < p->first ? row->start : p->first;
    p->last = first || row->end > p->last ? row->end : p->last;
    set_add(&l->users, &row->uid, sizeof row->uid, &added);
    add_host(l, row->host);
    for (size_t i = 0; i < row->host_count; i++) {
        add_host(l, row->hosts[i]);
    }
}

static enum profd_status take_counts(struct loading *l, const struct store_row *row, const uint32_t *map,
                                     struct profd_error *e)
{
    struct row_counts opened;
    struct counts *c = &opened.counts;
    enum profd_status status = row_open_counts(row, l->arena, &opened, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (l->request->alone) {
        counts_keep_alone(c, map, (uint32_t)row->build_count);
    }
    profile_sum_add(l->sum, c, map, row->commit, l->request->arcs_only);
    if (l->request->stacks != LOAD_STACKS_NONE) {
        const struct tree_addend stacks = {.list = {c->trees, COUNTS_NODES(c), c->tree_count},
                                           .map = map,
                                           .alone = l->request->alone,
                                           .group = row->group};
        status = profile_sum_add_stacks(l->sum, &stacks, row->commit, e);
    }
    row_close_counts(&opened);
    return status;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct loading *l = context;
    ARENA_BOUNDARY(l->arena, profd_no_memory(e));
    const uint32_t *map = find_map(l, row);
    if (row->uploads == 0) {
        return PROFD_OK;
    }
    add_source(l, row);
    if (l->shares) {
        TRY(load_shares_add(l->shares, row, map, e));
    }
    return row->rolled ? rolled_add(l->rolled, row, map, e) : take_counts(l, row, map, e);
}

static int uid_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Live processes, and those not read since the restart: loaded before the uploads, as store_get_living requires. */
static enum profd_status find_living(struct loading *l, struct profd_error *e)
{
    const struct load_request *r = l->request;
    struct provenance *p = &l->provenance;
    struct store_living unread, read;
    TRY(store_get_living(r->store, STORE_UNREAD, &r->scope, &r->filter, &unread, e));
    TRY(store_get_living(r->store, STORE_READ, &r->scope, &r->filter, &read, e));
    p->unread = unread.processes;
    p->unread_since = unread.earliest;
    p->inexact |= unread.processes > 0 ? (uint32_t)INEXACT_NOT_READ : 0;
    p->live = read.processes;
    p->as_of = read.latest;
    return PROFD_OK;
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
    filter.spread |= request->stacks == LOAD_STACKS_SHARES;
    filter.arcs_only = request->arcs_only;
    TRY(find_living(l, e));
    TRY(store_each_upload(request->store, &request->scope, &filter, take_row, l, e));
    TRY(find_marks(l, e));
    TRY(store_pattern_judge(&request->filter, e));
    TRY(rolled_close(l->rolled, l->sum, e));
    TRY(profile_sum_finish(l->sum, profile, e));
    TRY(rolled_join(l->rolled, *profile, e));
    return l->shares != NULL ? load_shares_finish(l->shares, *profile, request->alone, shares, e) : PROFD_OK;
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
    l.rolled = rolled_new(a, &rolled);
    set_init(&l.series, a);
    set_init(&l.hosts, a);
    set_init(&l.host_labels, a);
    set_init(&l.users, a);
    l.shares = request->shares != NULL ? load_shares_new(request->shares) : NULL;
    struct load result = {0};
    if (request->stacks != LOAD_STACKS_NONE) {
        profile_sum_want_stacks(l.sum, request->stacks == LOAD_STACKS_SHARES);
    }
    enum profd_status status = load_sum(&l, &result.profile, &result.shares, e);
    rolled_done(l.rolled);
    load_shares_done(l.shares);
    if (status == PROFD_OK && request->downtime != NULL) {
        downtime_measure(request->downtime, l.provenance.first, l.provenance.last, &l.provenance.down_count,
                         &l.provenance.down_ns);
    }
    if (status == PROFD_OK) {
        uint32_t *uids = ARENA_ARRAY(l.arena, (size_t)l.users.count + 1, uint32_t);
        for (uint32_t i = 0; i < l.users.count; i++) {
            memcpy(&uids[i], l.users.keys[i].bytes, sizeof *uids);
        }
        qsort(uids, l.users.count, sizeof *uids, uid_compare);
        l.provenance.uids = uids;
        l.provenance.uid_count = l.users.count;
        l.provenance.hosts = l.hosts.count;
        l.provenance.host_labels = l.host_labels.count;
        result.names = l.names;
        result.provenance = l.provenance;
        *out = result;
    }
    return status;
}
