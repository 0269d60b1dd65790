#include "tier/mirror.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/container.h"
#include "core/hashmap.h"
#include "base/log.h"
#include "net/loop.h"
#include "tier/row_binary.h"
#include "tier/statement.h"
#include "tier/steps.h"
#include "tier/tombstone.h"

#define LOOK_MS 4000u
#define LOOK_AGAIN_MS 4000u /* while a block arrives */
#define REFUSED_MS 300000u  /* then a refused block is tried again */
#define PAGE_ROWS 2000u
#define PUT_ROWS 250u
#define BLOCKS_MOST 100000u
#define SUMS_MOST (1u << 28)
#define REPLY_BYTES (256u << 20)
#define STATEMENT_BYTES (8u << 20)

/* The steps: each runs on the mirror's thread, or is a job of the writer. */
enum mirror_step {
    MIRROR_LOOK,  /* thread: reads the manifest, the marks and the tombstones, and chooses the next step */
    MIRROR_MARK,  /* writer: which marks there are */
    MIRROR_BURY,  /* writer: applies what was deleted at any centre */
    MIRROR_COVER, /* thread: tombstones for blocks that were sealed before this centre knew of the deletion */
    MIRROR_LIST,  /* writer: which blocks there are */
    MIRROR_CHECK, /* thread: the block is what the manifest says */
    MIRROR_BEGIN, /* writer */
    MIRROR_READ,  /* thread: a page of its sums */
    MIRROR_PUT,   /* writer: some of them */
    MIRROR_SHOW,  /* writer: the block becomes visible */
    MIRROR_END,   /* writer: all that this centre had sealed before a restore is there */
    MIRROR_CLEAN, /* writer: a slice of what is hidden */
};

/* A block of the manifest. Its bytes are those of counts and spread. */
struct listed {
    struct store_mirror m; /* name: in the arena */
    uint64_t rows, checksum, version;
    int state;
    bool own, known, adopted; /* own: of this centre; then, the database has it as its own, or adopts it */
};

/* Names a block in the list of refused ones. */
struct refused_key {
    uint8_t centre[STORE_CENTRE_SIZE];
    uint64_t number, attempt;
};

struct mirror {
    struct steps steps;
    const struct store_archive *archive;
    uint64_t looked; /* ms of loop_now */
    bool more;       /* of the latest job */
    uint8_t own[STORE_CENTRE_SIZE];

    struct arena *manifest_arena; /* of what follows: the manifest, as far as it counts */
    struct listed *manifest;
    size_t manifest_count;
    uint64_t manifest_digest;   /* 0: it was not read */
    bool manifest_broken;       /* it has rows that break a rule */
    struct store_block lacking; /* the first of this centre's written blocks that it lacks; number 0: it has all */
    uint64_t lacking_told;      /* number of the block that the log has named */

    struct arena *list_arena;
    struct store_mirror *list; /* the blocks of other centres */
    struct listed *listed;     /* the same, with what a check needs */
    size_t list_count;
    struct store_block *own_blocks; /* all of this centre */
    size_t own_count;
    bool adopted;          /* all blocks of a restored centre are there */
    bool differs, leaving; /* the database has other ones; it has hidden rows */
    struct listed next;    /* the block that arrives */
    uint64_t next_row;
    struct hashmap refused; /* struct refused_key → ms of loop_now when it was */

    struct arena *mark_arena;      /* of what follows */
    struct store_tier_mark *marks; /* if the database does not have them */
    size_t mark_count;
    uint64_t marks_read;  /* how many rows there were at the latest look */
    uint64_t marks_known; /* how many there were when the database was given them; UINT64_MAX: it was not */

    struct arena *tombstone_arena; /* of what follows */
    struct store_tombstone *tombstones;
    size_t tombstone_count;    /* 0: all that there are have been applied */
    uint64_t tombstones_read;  /* how many there were at the latest look */
    uint64_t tombstones_known; /* how many are applied and covered */

    struct store_stub after; /* the sum that was read last; its program is text */
    char after_program[BUILDID_TEXT_SIZE];
    uint8_t *keys; /* of a block of this centre */
    size_t keys_size;
    uint64_t seen, kept; /* sums of the block that were read, and those that are mirrored */
    struct arena *page;  /* of what follows */
    struct store_block_sum *sums;
    size_t sum_count, put; /* put: of these, how many are in the database */

    struct mirror_counts counts, shown; /* the thread's, and the loop's */
};

/* --- The manifest --- */

static enum profd_status mirror_cut(struct profd_error *e)
{
    return profd_error_set(e, PROFD_PROTOCOL, "a reply of ClickHouse ends within a row, or has a text with a NUL");
}

static bool mirror_may_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);

    return n && n <= STORE_CENTRE_NAME_MOST && strspn(name, allowed) == n;
}

static int listed_order_of_block(const void *key, const void *element)
{
    const struct store_block *a = key, *b = &((const struct listed *)element)->m.block;
    const int order = memcmp(a->centre, b->centre, sizeof a->centre);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* The greatest version of a block comes first. */
static int listed_order(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    const int order = listed_order_of_block(&x->m.block, y);

    return order ? order : (x->version < y->version) - (x->version > y->version);
}

/* One row. *good false: it breaks a rule, and is left out. */
static enum profd_status mirror_take_listed(struct mirror *m, struct row_reader *r, struct listed *l, bool *good,
                                            struct profd_error *e)
{
    struct store_block *b = &l->m.block;
    size_t n;

    *l = (struct listed){.state = 0};
    rows_fixed(r, b->centre, sizeof b->centre);
    /* Not rows_text: a name with a NUL must not end the reading of the other rows. */
    l->m.name = (const char *)rows_bytes(r, m->manifest_arena, &n);
    TRY(l->m.name ? PROFD_OK : profd_no_memory(e));
    b->day = rows_u32(r);
    b->number = rows_u32(r);
    b->attempt = rows_u32(r);
    l->state = rows_u8(r);
    l->rows = rows_u64(r);
    b->bytes = rows_u64(r);
    l->checksum = rows_u64(r);
    b->sealed = rows_i64(r);
    l->version = rows_u64(r);
    *good = strlen(l->m.name) == n && mirror_may_name(l->m.name) && b->day <= INT32_MAX / 24 && b->number &&
            b->attempt && l->rows <= SUMS_MOST && b->bytes <= INT64_MAX && b->sealed > 0 &&
            ((l->state == STATEMENT_VISIBLE && l->rows) || l->state == STATEMENT_DROPPED);
    if (!r->cut && !*good) {
        m->manifest_broken = true;
        (void)snprintf(m->counts.refused, sizeof m->counts.refused,
                       "the manifest has a row of block %" PRIu64 " of the day %s that breaks its rules (name, day, "
                       "attempt, state, rows, bytes and time): it is left out",
                       b->number, statement_format_day(b->day).text);
    }
    return r->cut ? mirror_cut(e) : PROFD_OK;
}

/* Reads the manifest, unless it is as it was. It has no order by which new rows could be found. Of each block the row
 * of the greatest version counts, if it is visible. */
static enum profd_status mirror_read_manifest(struct mirror *m, struct profd_error *e)
{
    struct row_reader r;
    uint64_t digest;
    uint32_t n = 0, capacity = 0;
    size_t kept = 0;
    struct listed *all = NULL;
    struct store_block last;
    enum profd_status status;

    TRY(clickhouse_take_number(m->steps.lanes[0].client, STATEMENT_DIGEST_BLOCKS, &digest, e));
    if (digest && digest == m->manifest_digest) {
        return PROFD_OK;
    }
    TRY(clickhouse_take(m->steps.lanes[0].client, STATEMENT_LIST_BLOCKS, &r, e));
    arena_reset(m->manifest_arena);
    m->manifest_count = 0;
    m->manifest_digest = 0;
    m->manifest_broken = false;
    for (status = PROFD_OK; rows_more(&r) && !status;) {
        bool good = false;

        struct listed *list = n > BLOCKS_MOST ? NULL : arena_extend(m->manifest_arena, all, n, &capacity, sizeof *list);

        all = list ? list : all;
        status = list              ? mirror_take_listed(m, &r, &list[n], &good, e)
                 : n > BLOCKS_MOST ? profd_error_set(e, PROFD_LIMIT, "the manifest has more than %u rows", BLOCKS_MOST)
                                   : profd_no_memory(e);
        n += good;
    }
    rows_close(&r);
    TRY(status);
    if (n) {
        qsort(all, n, sizeof *all, listed_order);
    }
    for (size_t i = 0; i < n; i++) {
        const struct store_block *b = &all[i].m.block;
        const bool newest = i == 0 || listed_order_of_block(&last, &all[i]);

        last = *b;
        if (newest && all[i].state == STATEMENT_VISIBLE) {
            all[kept] = all[i];
            all[kept++].own = memcmp(b->centre, m->own, sizeof m->own) == 0;
        }
    }
    m->manifest = all;
    m->manifest_count = kept;
    m->manifest_digest = digest;
    return PROFD_OK;
}

/* --- What the database has of it --- */

static struct refused_key refused_key(const struct store_block *b)
{
    struct refused_key key = {.number = b->number, .attempt = b->attempt};
    memcpy(key.centre, b->centre, sizeof key.centre);
    return key;
}

static bool mirror_is_refused(struct mirror *m, const struct listed *l)
{
    const struct refused_key key = refused_key(&l->m.block);
    uint64_t *until = hashmap_find(&m->refused, &key, sizeof key);

    if (until && *until <= loop_now()) {
        hashmap_remove(&m->refused, until);
        until = NULL;
    }
    return until != NULL;
}

/* The block that arrives is tried again only then. */
static void mirror_put_off(struct mirror *m, unsigned ms)
{
    const struct refused_key key = refused_key(&m->next.m.block);
    const uint64_t until = loop_now() + ms;

    (void)hashmap_put(&m->refused, &key, sizeof key, &until, sizeof until); /* without memory it is tried at once */
}

static struct listed *mirror_find_listed(const struct mirror *m, const struct store_block *b)
{
    return m->list_count ? bsearch(b, m->listed, m->list_count, sizeof *m->listed, listed_order_of_block) : NULL;
}

static bool mirror_note_own(void *context, const struct store_block *block)
{
    struct mirror *m = context;
    struct listed *l = mirror_find_listed(m, block);

    if (l && l->own) {
        l->known = true;
    } else if (!m->lacking.number && (block->state == STORE_BLOCK_WRITTEN || block->state == STORE_BLOCK_SEALED)) {
        m->lacking = *block;
    }
    return true;
}

/* A block that two manifests lack was not just being written. before: the block that the previous manifest lacked. */
static void mirror_judge_lacking(struct mirror *m, uint64_t before)
{
    const uint64_t number = m->lacking.number;

    if (!number || number != before || m->counts.refused[0]) {
        return;
    }
    (void)snprintf(m->counts.refused, sizeof m->counts.refused,
                   "the table manifest of ClickHouse lacks block %" PRIu64 " of the day %s, and so do other centres: "
                   "the table has lost rows, or the day was dropped before this database was restored from a backup",
                   number, statement_format_day(m->lacking.day).text);
    if (m->lacking_told != number) {
        m->lacking_told = number;
        log_write(LOG_LEVEL_WARNING, NULL, "%s", m->counts.refused);
    }
}

static bool mirror_note_adopted(void *context, const struct store_mirror *here)
{
    struct listed *l = mirror_find_listed(context, &here->block);

    if (l && l->own && here->block.state != STORE_BLOCK_LEAVING) {
        l->adopted = true;
        l->known |= here->block.state == STORE_BLOCK_MIRRORED;
    }
    return true;
}

/* If a restored database lacks a block that this centre had sealed, all blocks of that day are adopted: the latest of
 * them has what the backup had not sealed of the day. */
static void mirror_choose_own(struct mirror *m)
{
    for (size_t i = 0; i < m->list_count; i++) {
        const struct listed *lacking = &m->listed[i];

        for (size_t k = 0; k < m->list_count && lacking->own && !lacking->known; k++) {
            m->listed[k].adopted |= m->listed[k].own && m->listed[k].m.block.day == lacking->m.block.day;
        }
    }
}

/* Makes the list of blocks that are mirrored or adopted. */
static enum profd_status mirror_make_list(struct mirror *m, bool restored, struct profd_error *e)
{
    const size_t n = m->list_count = m->manifest_count;
    size_t kept = 0;

    arena_reset(m->list_arena);
    m->listed = ARENA_ARRAY(m->list_arena, n + 1, struct listed);
    m->own_blocks = ARENA_ARRAY(m->list_arena, n + 1, struct store_block);
    m->list = ARENA_ARRAY(m->list_arena, n + 1, struct store_mirror);
    if (!m->listed || !m->own_blocks || !m->list) {
        m->list_count = 0;
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        m->listed[i] = m->manifest[i];
    }
    const uint64_t lacked = m->lacking.number;
    m->lacking.number = 0;
    TRY(store_each_block(m->steps.store, mirror_note_own, m, e));
    TRY(store_each_mirror(m->steps.store, mirror_note_adopted, m, e));
    if (restored) {
        mirror_choose_own(m);
    } else {
        mirror_judge_lacking(m, lacked);
    }
    m->own_count = 0;
    for (size_t i = 0; i < n; i++) {
        struct listed *l = &m->listed[i];

        if (l->own) {
            m->own_blocks[m->own_count++] = l->m.block;
            l->m.name = "";
        }
        if (!l->own || l->adopted) {
            m->listed[kept] = *l;
            m->list[kept++] = l->m;
        }
    }
    m->list_count = kept;
    return PROFD_OK;
}

/* Blocks of the list that the database has. */
struct mirror_comparing {
    struct mirror *m;
    bool reading, any; /* reading: next_row is the block that arrives */
    bool visible;      /* readers see a block */
    size_t matched, adopted;
    struct listed next; /* if any */
    uint64_t next_row;
};

static bool mirror_compare(void *context, const struct store_mirror *here)
{
    struct mirror_comparing *c = context;
    struct mirror *m = c->m;
    const struct listed *l = mirror_find_listed(m, &here->block);
    const bool same = l && l->m.block.attempt == here->block.attempt,
               left = here->block.state == STORE_BLOCK_ARRIVING && !(c->reading && here->block.row == m->next_row);

    if (here->block.state == STORE_BLOCK_LEAVING) {
        m->leaving = true;
        return true;
    }
    m->leaving |= !here->block.sealed; /* retention removes it */
    c->visible |= here->block.state == STORE_BLOCK_MIRRORED;
    c->matched += same;
    c->adopted += same && l->own && here->block.state == STORE_BLOCK_MIRRORED;
    m->differs |= left || (!same && (!l || here->block.state != STORE_BLOCK_MIRRORED));
    if (same && here->block.state == STORE_BLOCK_LISTED && (!c->any || (l->own && !c->next.own)) &&
        !mirror_is_refused(m, l)) {
        c->any = true;
        c->next = *l;
        c->next_row = here->block.row;
    }
    return true;
}

static void mirror_note_centre(void *context, const struct store_tier_centre *centre)
{
    struct mirror *m = context;
    struct mirror_counts *c = &m->counts;
    const size_t n = strlen(m->steps.config.name);

    if (c->centre_count < MIRROR_CENTRES_SHOWN) {
        c->centres[c->centre_count++] = *centre;
    }
    if (!c->twins[0] && strncmp(centre->name, m->steps.config.name, n) == 0 &&
        (centre->name[n] == '\0' || centre->name[n] == ' ')) {
        (void)snprintf(c->twins, sizeof c->twins, "another centre is named %s, too: give each a tier-name of its own",
                       m->steps.config.name);
    } else if (!c->twins[0] && strchr(centre->name, ' ')) {
        (void)snprintf(c->twins, sizeof c->twins,
                       "another centre has the name of %s, too: give each a tier-name of "
                       "its own",
                       centre->name);
    }
}

/* Reads the marks, unless they are as they were. */
static enum profd_status mirror_read_marks(struct mirror *m, struct profd_error *e)
{
    struct clickhouse *client = m->steps.lanes[0].client;
    struct row_reader r;
    size_t n = 0;

    arena_reset(m->mark_arena);
    m->marks = NULL;
    TRY(clickhouse_take_number(client, STATEMENT_COUNT_MARKS, &m->marks_read, e));
    if (m->marks_read == m->marks_known) {
        return PROFD_OK;
    }
    TRY(clickhouse_take(client, STATEMENT_LIST_MARKS, &r, e));
    const size_t most = (size_t)(r.end - r.at) / (STORE_CENTRE_SIZE + 14); /* bytes of the smallest row */
    struct store_tier_mark *list = ARENA_ARRAY(m->mark_arena, most + 1, struct store_tier_mark);
    enum profd_status status = list ? PROFD_OK : profd_no_memory(e);
    for (; !status && rows_more(&r) && n < most; n++) {
        rows_fixed(&r, list[n].centre, sizeof list[n].centre);
        list[n].hour = rows_i64(&r);
        list[n].tenant = rows_text(&r, m->mark_arena);
        list[n].host = rows_text(&r, m->mark_arena);
        list[n].reasons = rows_u32(&r);
        status = r.cut ? mirror_cut(e) : list[n].tenant && list[n].host ? PROFD_OK : profd_no_memory(e);
    }
    rows_close(&r);
    TRY(status);
    m->marks = list;
    m->mark_count = n;
    return PROFD_OK;
}

/* Reads the manifest and compares the database with it. */
static enum profd_status mirror_look(struct mirror *m, struct profd_error *e)
{
    struct store_centre centre;
    struct mirror_comparing c = {.m = m, .reading = m->steps.step == MIRROR_READ};
    char before[sizeof m->counts.twins];

    TRY(store_get_greeting(m->steps.store, &centre, e));
    memcpy(m->own, centre.name, sizeof m->own);
    m->counts.adopting = centre.restored;
    TRY(mirror_read_manifest(m, e));
    m->counts.refused[0] = m->refused.count || m->manifest_broken ? m->counts.refused[0] : '\0';
    TRY(mirror_make_list(m, centre.restored, e));
    m->looked = loop_now();
    m->differs = false;
    TRY(store_each_mirror(m->steps.store, mirror_compare, &c, e));
    /* what is dropped keeps a row there */
    FAIL_IF(!m->manifest_digest && c.visible, e, PROFD_PROTOCOL,
            "the table manifest of ClickHouse is empty, although this database has blocks of it: restore that table "
            "from a backup of ClickHouse; until then reports keep these blocks");
    m->differs |= c.matched < m->list_count;
    size_t own = 0;
    for (size_t i = 0; i < m->list_count; i++) {
        own += m->listed[i].own;
    }
    m->adopted = centre.restored && !m->differs && c.adopted == own;
    if (!c.reading) {
        m->next = c.next;
        m->next_row = c.any ? c.next_row : 0;
    }
    memcpy(before, m->counts.twins, sizeof before);
    m->counts.centre_count = 0;
    m->counts.twins[0] = '\0';
    TRY(store_each_centre(m->steps.store, mirror_note_centre, m, e));
    if (m->counts.twins[0] && strcmp(before, m->counts.twins) != 0) {
        log_write(LOG_LEVEL_WARNING, NULL, "%s", m->counts.twins);
    }
    /* After the manifest: what a block lacks, and which of its hours are marked, is known before the block arrives. */
    TRY(c.reading ? PROFD_OK : mirror_read_marks(m, e));
    arena_reset(m->tombstone_arena);
    m->tombstones_read = m->tombstones_known;
    return tombstone_read(m->steps.lanes[0].client, m->tombstone_arena, &m->tombstones_read, &m->tombstones,
                          &m->tombstone_count, e);
}

/* --- A block --- */

static enum profd_status mirror_find_keys(struct mirror *m, struct profd_error *e)
{
    struct buffer statement;
    struct row_reader r;
    size_t n = 0;

    free(m->keys);
    m->keys = NULL;
    buffer_init(&statement, STATEMENT_BYTES);
    statement_find_keys(&statement, &m->next.m.block);
    TRY(clickhouse_read(m->steps.lanes[0].client, &statement, &r, e));
    const char *keys = rows_string(&r, &n);
    const bool cut = rows_u8(&r) != STATEMENT_VISIBLE;
    if (!cut && (m->keys = malloc(n + 1))) {
        memcpy(m->keys, n ? keys : "", n);
        m->keys_size = n;
    }
    rows_close(&r);
    return cut ? mirror_cut(e) : m->keys ? PROFD_OK : profd_no_memory(e);
}

static enum profd_status mirror_check(struct mirror *m, struct profd_error *e)
{
    const struct listed *l = &m->next;

    TRY(steps_check_block(&m->steps, &l->m.block, l->rows, l->m.block.bytes, l->checksum, e));
    TRY(l->own ? mirror_find_keys(m, e) : PROFD_OK);
    m->after_program[0] = '\0';
    m->after = (struct store_stub){.program = m->after_program};
    m->seen = m->kept = 0;
    return PROFD_OK;
}

static enum profd_status mirror_refuse(struct profd_error *e, const char *rule)
{
    return profd_error_set(e, PROFD_PROTOCOL, "%s", rule);
}

/* One sum, as far as its row says what it is of. */
static enum profd_status mirror_take_sum(struct mirror *m, struct row_reader *r, struct store_block_sum *sum,
                                         struct profd_error *e)
{
    struct buildid id;
    struct store_stub *s = &sum->stub;
    const char *program = rows_text(r, m->page);

    TRY(program ? PROFD_OK : profd_no_memory(e));
    *sum = (struct store_block_sum){.stub = {.block = m->next.m.block, .program = program}};
    rows_fixed(r, s->series, sizeof s->series);
    s->level = rows_u8(r);
    s->at = rows_i64(r);
    sum->number = rows_u64(r);
    sum->uploads = rows_u64(r);
    sum->processes = rows_u64(r);
    sum->ticks = rows_u64(r);
    sum->calls = rows_u64(r);
    sum->first = rows_i64(r);
    sum->last = rows_i64(r);
    sum->inexact = rows_u32(r);
    sum->groups = rows_bytes(r, m->page, &sum->groups_size);
    sum->shares = rows_bytes(r, m->page, &sum->shares_size);
    s->bytes = rows_u64(r);
    sum->bulk.host_count = rows_u64(r);
    if (r->cut) {
        return mirror_cut(e);
    }
    TRY(sum->groups && sum->shares ? PROFD_OK : profd_no_memory(e));
    if (buildid_parse(program, strlen(program), &id, NULL) || strcmp(id.text, program) != 0) {
        return mirror_refuse(e, "the program of a sum is no build-id");
    }
    const struct store_stub *a = &m->after;
    int order = strcmp(a->program, program);
    order = order ? order : memcmp(a->series, s->series, sizeof a->series);
    order = order ? order : a->level - s->level;
    if (order > 0 || (order == 0 && a->at >= s->at)) {
        return mirror_refuse(e, "a sum is there twice, or the sums are not in their order");
    }
    memcpy(m->after_program, program, strlen(program) + 1);
    m->after = *s;
    m->after.program = m->after_program;
    return PROFD_OK;
}

/* Reads one row of table series. Sets in *out the key and what belongs to all sums of the series. */
static enum profd_status mirror_take_series(struct mirror *m, struct row_reader *r, struct store_block_sum *out,
                                            struct profd_error *e)
{
    size_t builds, names, labels;
    const char **texts[3];

    *out = (struct store_block_sum){.uploads = 0};
    rows_fixed(r, out->stub.series, sizeof out->stub.series);
    out->tenant = rows_text(r, m->page);
    texts[0] = rows_texts(r, m->page, &builds);
    texts[1] = rows_texts(r, m->page, &names);
    texts[2] = rows_texts(r, m->page, &labels);
    out->stub.program = rows_text(r, m->page);
    if (r->cut) {
        return mirror_cut(e);
    }
    if (builds != names || builds > LIMIT_BUILDS || labels % 2 || labels > 2 * LIMIT_LABELS) {
        return mirror_refuse(e, "a series has too many builds or labels, or not a name for each build");
    }
    struct store_build *b = ARENA_ARRAY(m->page, builds + 1, struct store_build);
    struct store_label *l = ARENA_ARRAY(m->page, labels / 2 + 1, struct store_label);
    TRY(out->tenant && out->stub.program && texts[0] && texts[1] && texts[2] && b && l ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < builds; i++) {
        if (strlen(texts[0][i]) >= sizeof b[i].id.text) {
            return mirror_refuse(e, "a series has a build-id that is none");
        }
        memcpy(b[i].id.text, texts[0][i], strlen(texts[0][i]) + 1);
        b[i].name = texts[1][i];
    }
    for (size_t i = 0; i < labels / 2; i++) {
        l[i] = (struct store_label){texts[2][2 * i], texts[2][2 * i + 1]};
    }
    out->builds = b;
    out->build_count = builds;
    out->labels = l;
    out->label_count = labels / 2;
    return PROFD_OK;
}

/* Sets *kept: the sum belongs into the database. Two kinds of sums do not. Those of local users of another centre stay
 * out, because user 0 of two machines is not one user. Those that a tombstone covers were deleted. */
static enum profd_status mirror_judge(const struct mirror *m, const struct store_block_sum *of, bool *kept,
                                      struct profd_error *e)
{
    struct store_tombstone t = {.tenant = of->tenant, .build = of->stub.program, .block = m->next.m.block.number};
    bool buried = false;

    memcpy(t.centre, m->next.m.block.centre, sizeof t.centre);
    *kept = m->next.own || strncmp(of->tenant, "uid ", 4) != 0;
    if (*kept && m->tombstones_known) {
        TRY(store_is_buried(m->steps.store, &t, &buried, e));
        *kept = !buried;
    }
    return PROFD_OK;
}

/* Sets what the sums of the page are of, and leaves out those that do not belong into the database. */
static enum profd_status mirror_name_sums(struct mirror *m, struct hashmap *known, struct profd_error *e)
{
    const struct store_stub **stubs = ARENA_ARRAY(m->page, m->sum_count + 1, const struct store_stub *);
    struct buffer statement;
    struct row_reader r;
    enum profd_status status = PROFD_OK;
    size_t kept = 0;

    TRY(stubs ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < m->sum_count; i++) {
        stubs[i] = &m->sums[i].stub;
    }
    buffer_init(&statement, STATEMENT_BYTES);
    statement_find_series(&statement, stubs, m->sum_count);
    TRY(clickhouse_read(m->steps.lanes[0].client, &statement, &r, e));
    while (rows_more(&r) && !status) {
        struct store_block_sum of;

        status = mirror_take_series(m, &r, &of, e);
        if (!status && !hashmap_find(known, of.stub.series, sizeof of.stub.series) &&
            !hashmap_put(known, of.stub.series, sizeof of.stub.series, &of, sizeof of)) {
            status = profd_no_memory(e);
        }
    }
    rows_close(&r);
    for (size_t i = 0; i < m->sum_count && !status; i++) {
        struct store_block_sum *sum = &m->sums[i];
        const struct store_block_sum *of = hashmap_find(known, sum->stub.series, sizeof sum->stub.series);

        if (!of || strcmp(of->stub.program, sum->stub.program) != 0) {
            status = mirror_refuse(e, "a sum is of a series that table series does not have");
            continue;
        }
        bool keep = false;

        status = mirror_judge(m, of, &keep, e);
        if (keep) {
            sum->tenant = of->tenant;
            sum->builds = of->builds;
            sum->build_count = of->build_count;
            sum->labels = of->labels;
            sum->label_count = of->label_count;
            m->sums[kept++] = *sum;
        }
    }
    m->sum_count = kept;
    return status;
}

/* Days of the page whose counts are being read. */
struct mirror_days {
    struct mirror *m;
    struct store_stub *stubs;
    struct store_block_sum **sums;
    size_t n;
};

static enum profd_status mirror_keep_day(void *context, size_t i, const struct store_bulk *bulk, struct profd_error *e)
{
    struct mirror_days *d = context;
    struct store_block_sum *sum = d->sums[i];
    uint8_t *arcs = NULL;
    size_t n = 0;
    TRY(store_keep_arcs(bulk->counts, bulk->counts_size, sum->build_count, &arcs, &n, e));

    sum->bulk.counts = (const uint8_t *)arena_copy(d->m->page, (const char *)arcs, n);
    sum->bulk.counts_size = n;
    free(arcs);
    return sum->bulk.counts ? PROFD_OK : profd_no_memory(e);
}

/* Cycles are found over the arcs of all time: those of each day stay in the database. */
static enum profd_status mirror_keep_days(struct mirror *m, struct profd_error *e)
{
    struct mirror_days d = {.m = m,
                            .stubs = ARENA_ARRAY(m->page, m->sum_count + 1, struct store_stub),
                            .sums = ARENA_ARRAY(m->page, m->sum_count + 1, struct store_block_sum *)};

    TRY(d.stubs && d.sums ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < m->sum_count; i++) {
        if (m->sums[i].stub.level == 1) {
            d.stubs[d.n] = m->sums[i].stub;
            d.sums[d.n++] = &m->sums[i];
        }
    }
    return m->archive->fetch(m->archive->context, d.stubs, d.n, STORE_ARCHIVE_COUNTS, mirror_keep_day, &d, e);
}

/* Reads the next page of the block; none is left when it has no sums. */
static enum profd_status mirror_read(struct mirror *m, struct profd_error *e)
{
    struct buffer statement;
    struct row_reader r;
    struct hashmap known;
    enum profd_status status = PROFD_OK;

    arena_reset(m->page);
    m->sum_count = m->put = 0;
    if (loop_now() - m->looked > LOOK_AGAIN_MS) {
        TRY(mirror_look(m, e));
        /* what left is hidden first, and what was deleted */
        FAIL_IF(m->differs || m->tombstone_count, e, PROFD_CONFLICT, "the manifest has changed");
    }
    buffer_init(&statement, STATEMENT_BYTES);
    statement_list_sums(&statement, &m->next.m.block, &m->after, PAGE_ROWS);
    m->sums = ARENA_ARRAY(m->page, PAGE_ROWS, struct store_block_sum);
    if (!m->sums) {
        buffer_done(&statement);
        return profd_no_memory(e);
    }
    TRY(clickhouse_read(m->steps.lanes[0].client, &statement, &r, e));
    for (; rows_more(&r) && !status; m->sum_count += !status) {
        status = m->sum_count == PAGE_ROWS ? mirror_refuse(e, "a reply has more sums than were asked for")
                                           : mirror_take_sum(m, &r, &m->sums[m->sum_count], e);
    }
    rows_close(&r);
    m->seen += m->sum_count;
    if (!status && m->sum_count == 0 && m->seen != m->next.rows) {
        status = mirror_refuse(e, "some of its sums are gone");
    }
    if (status || m->sum_count == 0) {
        return status;
    }
    hashmap_init(&known, 0);
    status = mirror_name_sums(m, &known, e);
    hashmap_clear(&known);
    status = status ? status : mirror_keep_days(m, e);
    m->kept += m->sum_count;
    return status;
}

/* --- Steps --- */

static enum profd_status mirror_run(struct steps *steps, unsigned lane, struct profd_error *e)
{
    struct mirror *m = container_of(steps, struct mirror, steps);

    return steps->step == MIRROR_CHECK  ? mirror_check(m, e)
           : steps->step == MIRROR_READ ? mirror_read(m, e)
           : steps->step == MIRROR_COVER
               ? tombstone_cover(steps->lanes[lane].client, m->tombstones, m->tombstone_count, e)
               : mirror_look(m, e);
}

static enum profd_status mirror_write(struct steps *steps, struct store *store, struct profd_error *e)
{
    struct mirror *m = container_of(steps, struct mirror, steps);
    struct store_progress progress = {.more = false};
    enum profd_status status;
    uint64_t uploads;

    m->more = false;
    switch (steps->step) {
    case MIRROR_MARK:
        return store_set_tier_marks(store, m->marks, m->mark_count, e);
    case MIRROR_BURY:
        return store_bury(store, m->tombstones, m->tombstone_count, &uploads, e);
    case MIRROR_LIST:
        return store_mirror_list(store, m->list, m->list_count, &m->more, e);
    case MIRROR_BEGIN:
        return store_mirror_begin(store, m->next_row, e);
    case MIRROR_PUT: {
        const size_t left = m->sum_count - m->put, n = left < PUT_ROWS ? left : PUT_ROWS;

        TRY(n ? store_mirror_put(store, m->next_row, m->sums + m->put, n, e) : PROFD_OK);
        m->put += n;
        m->more = m->put < m->sum_count;
        return PROFD_OK;
    }
    case MIRROR_SHOW:
        return m->next.own ? store_mirror_adopt(store, m->next_row, m->kept, m->keys, m->keys_size, e)
                           : store_mirror_show(store, m->next_row, m->kept, e);
    case MIRROR_END:
        return store_mirror_end(store, m->own_blocks, m->own_count, e);
    default:
        status = store_mirror_clean(store, &progress, e);
        m->more = progress.more;
        return status;
    }
}

static unsigned mirror_choose(struct steps *steps)
{
    struct mirror *m = container_of(steps, struct mirror, steps);

    switch (steps->step) {
    case MIRROR_LOOK:
        m->shown = m->counts;
        if (!m->next_row) {
            steps_work(steps);
        }
        steps->step = m->tombstone_count ? MIRROR_BURY
                      : m->marks         ? MIRROR_MARK
                      : m->differs       ? MIRROR_LIST
                      : m->adopted       ? MIRROR_END
                      : m->leaving       ? MIRROR_CLEAN
                      : m->next_row      ? MIRROR_CHECK
                                         : MIRROR_LOOK;
        return steps->step == MIRROR_LOOK ? LOOK_MS : 0;
    case MIRROR_MARK:
        m->marks_known = m->marks_read;
        steps->step = MIRROR_LOOK;
        return 0;
    case MIRROR_BURY:
        m->leaving = true;
        steps->step = MIRROR_COVER;
        return 0;
    case MIRROR_COVER:
        m->tombstones_known = m->tombstones_read;
        steps->step = MIRROR_LOOK;
        return 0;
    case MIRROR_SHOW:
        steps_work(steps);
        __attribute__((fallthrough));
    case MIRROR_LIST:
        m->leaving = true;
        steps->step = m->more ? MIRROR_LIST : MIRROR_LOOK;
        return steps_pause(steps);
    case MIRROR_END:
        log_write(LOG_LEVEL_NOTICE, NULL,
                  "what this centre had sealed before it was restored from a backup is in its reports again");
        steps->step = MIRROR_LOOK;
        return 0;
    case MIRROR_CHECK:
    case MIRROR_BEGIN:
        steps->step++;
        return 0;
    case MIRROR_READ:
        steps->step = m->sum_count || m->seen < m->next.rows ? MIRROR_PUT : MIRROR_SHOW;
        return 0;
    case MIRROR_PUT:
        steps->step = m->more ? MIRROR_PUT : MIRROR_READ;
        return steps_pause(steps);
    case MIRROR_CLEAN:
        m->leaving = m->more;
        steps->step = m->more ? MIRROR_CLEAN : MIRROR_LOOK;
        return steps_pause(steps);
    default:
        steps->step = MIRROR_LOOK;
        return 0;
    }
}

/* True if the same step could succeed later, whatever the block is. */
static bool mirror_is_passing(enum profd_status status)
{
    return status == PROFD_UNAVAILABLE || status == PROFD_TIMEOUT || status == PROFD_BUSY || status == PROFD_FULL ||
           status == PROFD_STOPPING || status == PROFD_NO_MEMORY || status == PROFD_UNAUTHORIZED ||
           status == PROFD_FORBIDDEN || status == PROFD_UNTRUSTED || status == PROFD_IO;
}

/* A block that breaks a rule is refused, and named. */
static bool mirror_excuse(struct steps *steps, enum profd_status status, const struct profd_error *e)
{
    struct mirror *m = container_of(steps, struct mirror, steps);
    const struct store_block *b = &m->next.m.block;
    const bool of_block = steps->step >= MIRROR_CHECK && steps->step <= MIRROR_SHOW,
               refused = of_block && !mirror_is_passing(status);

    if (of_block) { /* others come first */
        mirror_put_off(m, refused ? REFUSED_MS : steps->back_off_ms);
    }
    if (refused) {
        (void)snprintf(m->counts.refused, sizeof m->counts.refused,
                       "block %" PRIu64
                       " of centre %02x%02x%02x%02x is not mirrored, so its day is missing in reports: "
                       "%.380s",
                       b->number, b->centre[0], b->centre[1], b->centre[2], b->centre[3], e->sentence);
        log_write(LOG_LEVEL_WARNING, NULL, "%s", m->counts.refused);
    }
    m->shown = m->counts;
    return refused;
}

#define IN(step) (1u << (step))

static const struct steps_type mirror_type = {
    .thread = "profd-mirror",
    .writing = IN(MIRROR_MARK) | IN(MIRROR_BURY) | IN(MIRROR_LIST) | IN(MIRROR_BEGIN) | IN(MIRROR_PUT) |
               IN(MIRROR_SHOW) | IN(MIRROR_END) | IN(MIRROR_CLEAN),
    .writing_when_full = IN(MIRROR_BURY) | IN(MIRROR_CLEAN),
    .reply_bytes = REPLY_BYTES,
    .look_ms = LOOK_MS,
    .back_off_ms_most = 60000,
    .failing = "what other centres have sealed cannot be read from ClickHouse",
    .working = "what other centres have sealed is read from ClickHouse again",
    .read = mirror_run,
    .write = mirror_write,
    .choose = mirror_choose,
    .excuse = mirror_excuse};

enum profd_status mirror_start(const struct sealer_config *config, const struct store_archive *archive,
                               struct mirror **out, struct profd_error *e)
{
    struct mirror *m = calloc(1, sizeof *m);

    TRY(m ? PROFD_OK : profd_no_memory(e));
    *m = (struct mirror){.archive = archive,
                         .leaving = true,
                         .marks_known = UINT64_MAX,
                         .mark_arena = arena_new(0),
                         .manifest_arena = arena_new(0),
                         .list_arena = arena_new(0),
                         .tombstone_arena = arena_new(0),
                         .page = arena_new(0)};
    hashmap_init(&m->refused, 0);
    const enum profd_status status =
        m->manifest_arena && m->list_arena && m->mark_arena && m->tombstone_arena && m->page
            ? steps_start(&m->steps, &mirror_type, config, e)
            : profd_no_memory(e);
    if (status) {
        mirror_free(m);
        return status;
    }
    *out = m;
    return PROFD_OK;
}

bool mirror_is_idle(const struct mirror *m)
{
    return !m->steps.running;
}

void mirror_stop(struct mirror *m)
{
    steps_stop(&m->steps);
}

void mirror_free(struct mirror *m)
{
    if (m) {
        steps_done(&m->steps);
        arena_free(m->manifest_arena);
        arena_free(m->list_arena);
        arena_free(m->mark_arena);
        arena_free(m->tombstone_arena);
        arena_free(m->page);
        free(m->keys);
        hashmap_clear(&m->refused);
        free(m);
    }
}

void mirror_get_counts(const struct mirror *m, struct mirror_counts *out)
{
    *out = m->shown;
    out->failures = m->steps.failures;
    (void)snprintf(out->failure, sizeof out->failure, "%s", m->steps.failure);
}
