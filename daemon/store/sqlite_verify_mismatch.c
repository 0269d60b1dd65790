/* Reports differences. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/sum.h"
#include "store/sqlite_verify.h"

void sqlite_verify_tell(struct sqlite_verifying *v, const char *format, ...)
{
    char sentence[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    v->mismatch(v->context, sentence);
}

void sqlite_verify_equal(struct sqlite_verifying *v, const char *where, const char *name, const char *in_one,
                         uint64_t x, const char *in_other, uint64_t y)
{
    if (x != y) {
        sqlite_verify_tell(v, "%s: %s: %" PRIu64 " by the %s, %" PRIu64 " by the %s", where, name, x, in_one, y,
                           in_other);
    }
}

enum profd_status sqlite_verify_load(struct sqlite_verifying *v, const struct sqlite_identity *series, int level,
                                     int64_t at, struct sqlite_rolled *row, bool *found, struct profd_error *e)
{
    struct profd_error why;
    enum profd_status status =
        sqlite_rollup_load(v->s, v->arena, series->id, level, at, series->build_count, row, found, &why);
    if (status == PROFD_DAMAGED && v->s->broken == PROFD_OK) {
        sqlite_verify_tell(v, "series %" PRId64 ", level %d, number %" PRId64 ": %s", series->id, level, at,
                           why.sentence);
        *found = false;
        return PROFD_OK;
    }
    if (status != PROFD_OK && e) {
        *e = why;
    }
    return status;
}

void sqlite_verify_amounts(struct sqlite_verifying *v, const char *where, const char *in_one,
                           const struct store_amount *x, const char *in_other, const struct store_amount *y)
{
    sqlite_verify_equal(v, where, "uploads", in_one, x->uploads, in_other, y->uploads);
    if (x->ticks < SUM_MAX && y->ticks < SUM_MAX) { /* a saturated sum is unknown, and so are its parts */
        sqlite_verify_equal(v, where, "ticks", in_one, x->ticks, in_other, y->ticks);
    }
    if (x->calls < SUM_MAX && y->calls < SUM_MAX) {
        sqlite_verify_equal(v, where, "calls", in_one, x->calls, in_other, y->calls);
    }
}
