#include "admin/verify.h"

#include <string.h>

#define SENTENCES_MAX (1u << 20)
#define ROUND_MS UINT64_C(86400000)
#define PAUSE_MS_MIN 1000u
#define PAUSE_MS_MAX 60000u

void verify_init(struct verify *v, uint64_t kept_max)
{
    *v = (struct verify){.kept_max = kept_max};
    buffer_init(&v->sentences, SENTENCES_MAX);
}

void verify_done(struct verify *v)
{
    buffer_done(&v->sentences);
}

static void verify_note(void *context, const char *sentence)
{
    struct verify *v = context;
    const size_t n = strlen(sentence);

    v->mismatches++;
    if (v->kept >= v->kept_max || v->sentences.size + n + 1 > SENTENCES_MAX) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buffer_add_char(&v->sentences, sentence[i] == '\n' ? ' ' : sentence[i]);
    }
    buffer_add_char(&v->sentences, '\n');
    v->kept++;
}

enum profd_status verify_step(struct verify *v, struct store *store, struct profd_error *e)
{
    struct store_totals totals;
    uint64_t uploads = 0;
    enum profd_status status = PROFD_OK;

    if (v->steps % 64 == 0) {
        status = store_get_totals(store, &totals, e);
        if (!status) {
            v->total = totals.uploads - totals.retired_uploads;
        }
    }
    if (!status) {
        status = store_verify(store, &v->cursor, verify_note, v, &uploads, e);
    }
    if (status) {
        return status;
    }
    v->uploads += uploads;
    v->steps++;
    return PROFD_OK;
}

uint64_t verify_pause(const struct verify *v, uint64_t ms)
{
    const uint64_t left = ms < ROUND_MS ? ROUND_MS - ms : 0;
    const uint64_t uploads = v->total > v->uploads ? v->total - v->uploads : 0;
    const uint64_t each = v->steps ? v->uploads / v->steps : 0;
    uint64_t pause;

    if (!each) {
        return PAUSE_MS_MAX;
    }
    pause = left / (uploads / each + 1);
    if (pause > PAUSE_MS_MAX) {
        return PAUSE_MS_MAX;
    }
    return pause < PAUSE_MS_MIN ? PAUSE_MS_MIN : pause;
}
