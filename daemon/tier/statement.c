#include "tier/statement.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <time.h>

#include "tier/row_binary.h"

struct day_text statement_format_day(int64_t day)
{
    struct day_text out = {"a day without a date"};
    const time_t at = (time_t)day * 86400;
    struct tm tm;

    if (gmtime_r(&at, &tm)) {
        (void)strftime(out.text, sizeof out.text, "%F", &tm);
    }
    return out;
}

/* A string of bytes. */
static void statement_add_bytes(struct buffer *b, const uint8_t *bytes, size_t n)
{
    buffer_add_char(b, '\'');
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(b, "\\x%02x", bytes[i]);
    }
    buffer_add_char(b, '\'');
}

static void statement_add_block(struct buffer *b, const struct store_block *block)
{
    buffer_add_text(b, "WHERE centre = ");
    statement_add_bytes(b, block->centre, sizeof block->centre);
    buffer_add_format(b, " AND day = %" PRId64 " AND block = %" PRIu64 " AND attempt = %" PRIu32, block->day,
                      block->number, block->attempt);
}

void statement_check_block(struct buffer *b, const struct store_block *block)
{
    static const char *const numbers[] = {"level", "at",    "number", "uploads", "processes",
                                          "ticks", "calls", "first",  "last",    "inexact"};

    buffer_add_text(b, "SELECT count(), sum(length(counts) + length(spread)), "
                       "sum(reinterpretAsUInt64(SHA256(concat(hex(series), ' '");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        buffer_add_format(b, ", toString(%s), ' '", numbers[i]);
    }
    buffer_add_text(b, ", program, groups, shares, arrayStringConcat(hosts, ''), totals, counts, spread)))) FROM sum ");
    statement_add_block(b, block);
}

uint64_t statement_digest(const struct store_block_sum *sum)
{
    struct sha256_ctx ctx;
    char text[2 * STORE_SERIES_KEY_SIZE + 256];
    uint8_t digest[8];
    uint64_t out = 0;
    int n = 0;

    sha256_init(&ctx);
    for (size_t i = 0; i < STORE_SERIES_KEY_SIZE; i++) {
        n += snprintf(text + n, 3, "%02X", sum->stub.series[i]);
    }
    n += snprintf(text + n, sizeof text - (size_t)n,
                  " %d %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64
                  " %" PRIu32 " ",
                  sum->stub.level, sum->stub.at, sum->number, sum->uploads, sum->processes, sum->ticks, sum->calls,
                  sum->first, sum->last, sum->inexact);
    sha256_update(&ctx, (size_t)n, (const uint8_t *)text);
    sha256_update(&ctx, strlen(sum->stub.program), (const uint8_t *)sum->stub.program);
    sha256_update(&ctx, sum->groups_size, sum->groups);
    sha256_update(&ctx, sum->shares_size, sum->shares);
    for (size_t i = 0; i < sum->bulk.host_count; i++) {
        sha256_update(&ctx, strlen(sum->bulk.hosts[i]), (const uint8_t *)sum->bulk.hosts[i]);
    }
    sha256_update(&ctx, sum->bulk.totals_size, sum->bulk.totals);
    sha256_update(&ctx, sum->bulk.counts_size, sum->bulk.counts);
    sha256_update(&ctx, sum->bulk.spread_size, sum->bulk.spread);
    sha256_digest(&ctx, sizeof digest, digest);
    for (size_t i = sizeof digest; i-- > 0;) {
        out = out << 8 | digest[i];
    }
    return out;
}

/* "name IN (each distinct value)": the index finds the sums by these. The stubs are sorted such that equal values are
 * near each other; a repeated one does no harm. */
static void statement_add_keys(struct buffer *b, const struct store_stub *const *stubs, size_t n)
{
    buffer_add_text(b, " AND program IN (");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(stubs[i]->program, stubs[i - 1]->program)) {
            buffer_add_format(b, "%s'%s'", i ? "," : "", stubs[i]->program);
        }
    }
    buffer_add_text(b, ") AND series IN (");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || memcmp(stubs[i]->series, stubs[i - 1]->series, sizeof stubs[i]->series)) {
            buffer_add_text(b, i ? "," : "");
            statement_add_bytes(b, stubs[i]->series, sizeof stubs[i]->series);
        }
    }
    buffer_add_char(b, ')');
}

void statement_find_days(const struct store_stub *const *stubs, size_t n, int64_t *first, int64_t *last)
{
    *first = *last = stubs[0]->block.day;
    for (size_t i = 1; i < n; i++) {
        *first = stubs[i]->block.day < *first ? stubs[i]->block.day : *first;
        *last = stubs[i]->block.day > *last ? stubs[i]->block.day : *last;
    }
}

void statement_fetch(struct buffer *b, const struct store_stub *const *stubs, size_t n, enum store_archive_part part)
{
    static const char *const columns[] = {[STORE_ARCHIVE_COUNTS] = "hosts, counts",
                                          [STORE_ARCHIVE_SPREAD] = "hosts, counts, spread",
                                          [STORE_ARCHIVE_TOTALS] = "totals"};
    int64_t first, last;

    statement_find_days(stubs, n, &first, &last);
    buffer_add_format(b, "SELECT %s, block, attempt, series, level, at FROM sum WHERE centre = ", columns[part]);
    statement_add_bytes(b, stubs[0]->block.centre, sizeof stubs[0]->block.centre);
    buffer_add_format(b, " AND day BETWEEN %" PRId64 " AND %" PRId64, first, last);
    statement_add_keys(b, stubs, n);
    /* Tuples of two are parsed ten times as fast as those of all five. */
    for (size_t i = 0; i < n; i++) {
        const struct store_stub *s = stubs[i], *before = i ? stubs[i - 1] : NULL;
        const bool more = before && before->block.number == s->block.number && before->level == s->level;

        if (!more) {
            buffer_add_format(b,
                              "%s(block = %" PRIu64 " AND attempt = %" PRIu32 " AND level = %d AND (series, at) IN (",
                              before ? ")) OR " : " AND (", s->block.number, s->block.attempt, s->level);
        }
        buffer_add_text(b, more ? ",(" : "(");
        statement_add_bytes(b, s->series, sizeof s->series);
        buffer_add_format(b, ",%" PRId64 ")", s->at);
    }
    buffer_add_text(b, ")))");
}

void statement_find_keys(struct buffer *b, const struct store_block *block)
{
    buffer_add_text(b, "SELECT keys, state FROM manifest ");
    statement_add_block(b, block);
    buffer_add_text(b, " AND state = 1 ORDER BY version DESC LIMIT 1");
}

void statement_list_sums(struct buffer *b, const struct store_block *block, const struct store_stub *after, unsigned n)
{
    buffer_add_text(b, "SELECT program, series, level, at, number, uploads, processes, ticks, calls, first, last, "
                       "inexact, groups, shares, toUInt64(length(counts) + length(spread)), "
                       "toUInt64(if(totals = '', 0, length(hosts))) FROM sum ");
    statement_add_block(b, block);
    if (*after->program) {
        buffer_add_format(b, " AND (program > '%s' OR (program = '%s' AND (series > ", after->program, after->program);
        statement_add_bytes(b, after->series, sizeof after->series);
        buffer_add_text(b, " OR (series = ");
        statement_add_bytes(b, after->series, sizeof after->series);
        buffer_add_format(b, " AND (level > %d OR (level = %d AND at > %" PRId64 "))))))", after->level, after->level,
                          after->at);
    }
    buffer_add_format(b, " ORDER BY program, series, level, at LIMIT %u", n);
}

void statement_find_series(struct buffer *b, const struct store_stub *const *stubs, size_t n)
{
    buffer_add_text(b, "SELECT series, tenant, builds, names, labels, program FROM series WHERE 1");
    statement_add_keys(b, stubs, n);
    buffer_add_text(b, " LIMIT 1 BY series");
}

void statement_add_manifest(struct buffer *b, const struct statement_manifest *m)
{
    rows_put_fixed(b, m->block->centre, STORE_CENTRE_SIZE);
    rows_put_text(b, m->name);
    rows_put_u32(b, (uint32_t)m->block->day);
    rows_put_u32(b, (uint32_t)m->block->number);
    rows_put_u32(b, m->block->attempt);
    rows_put_u8(b, m->state);
    rows_put_u64(b, m->rows);
    rows_put_u64(b, m->bytes);
    rows_put_u64(b, m->checksum);
    rows_put_bytes(b, m->keys, m->keys_size);
    rows_put_i64(b, m->now);
    rows_put_u64(b, m->version);
}

void statement_drop_day(struct buffer *b, const uint8_t centre[STORE_CENTRE_SIZE], int64_t day, bool cluster)
{
    buffer_add_format(b, "ALTER TABLE sum%s DROP PARTITION (", cluster ? "_local" : "");
    statement_add_bytes(b, centre, STORE_CENTRE_SIZE);
    buffer_add_format(b, ", %" PRId64 ")", day);
}

void statement_drop_marks(struct buffer *b, const uint8_t centre[STORE_CENTRE_SIZE], int64_t day, bool cluster)
{
    buffer_add_format(b, "ALTER TABLE mark%s DELETE WHERE centre = ", cluster ? "_local" : "");
    statement_add_bytes(b, centre, STORE_CENTRE_SIZE);
    buffer_add_format(b, " AND hour < %" PRId64, day * 24);
}
