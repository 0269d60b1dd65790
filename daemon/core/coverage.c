#include "core/coverage.h"

#include <string.h>

#include "core/sum.h"

void coverage_make(const struct profile *p, struct coverage *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        for (uint32_t k = 0; words_are(h->dimension) && k < h->used; k++) {
            if (h->index[k] >= WORDS_ROOM) {
                continue;
            }
            uint64_t *word = &out->words[h->index[k]];
            sum_add(word, h->ticks[k], &out->saturated);
            out->saturated |= *word == SUM_MAX;
            out->any = true;
        }
    }
}

uint64_t coverage_attributed(const struct coverage *c)
{
    static const enum words_word LOSSES[] = {WORDS_INSIDE_NS, WORDS_BLOCKED_NS, WORDS_DROPPED_NS, WORDS_OUTSIDE_NS};
    bool saturated = false;
    uint64_t left = c->words[WORDS_SAMPLED_NS];
    sum_add(&left, c->words[WORDS_WALL_NS], &saturated);
    for (unsigned i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        left -= c->words[LOSSES[i]] < left ? c->words[LOSSES[i]] : left;
    }
    return left;
}

bool coverage_share(const struct coverage *c, double *share)
{
    if (c->words[WORDS_WALL_NS] != 0 || c->words[WORDS_CPU_NS] <= c->words[WORDS_INSIDE_NS]) {
        return false;
    }
    *share = (double)coverage_attributed(c) / (double)(c->words[WORDS_CPU_NS] - c->words[WORDS_INSIDE_NS]);
    return true;
}

bool coverage_overhead(const struct coverage *c, double *share)
{
    if (c->words[WORDS_WALL_NS] != 0 || c->words[WORDS_SAMPLED_NS] < c->words[WORDS_INSIDE_NS] ||
        c->words[WORDS_SAMPLED_NS] == 0 || c->words[WORDS_SAMPLED_NS] < c->words[WORDS_CPU_NS] / 2) {
        return false;
    }
    *share = (double)c->words[WORDS_INSIDE_NS] / (double)c->words[WORDS_SAMPLED_NS];
    return true;
}
