/* Verdicts on new versions: whether a watched function takes more or less than in the version before.
 *
 * A version is a value of the label `version`; of uploads without the label, the build. The newest version of each
 * program of a watch is compared with its predecessor, which stays the predecessor whatever is removed later. Verdicts
 * come from /api/v1/diff; each version, function and watch gets one, which is final and stored. A verdict waits until
 * the smallest change that could be seen is at most the threshold.
 *
 * Looks. The chance that one of the watched functions of a program gets a false verdict on a version is at most ALPHA =
 * 5 %, however often the data is looked at. Look k of a pair of versions spends ALPHA / (k (k + 1)), which add up to
 * ALPHA: an alpha-spending function in the sense of Lan and DeMets (Discrete sequential boundaries for clinical trials,
 * Biometrika 70, 1983), here ALPHA k / (k + 1). Looks are combined by Boole's inequality, which asks for no assumption
 * on how they depend on each other; the n functions of the watch share equally. So the interval of look k has the
 * confidence 1 − ALPHA / (n k (k + 1)), and the smallest visible change is that of this confidence. The data counts as
 * looked at when a function that waits has enough samples for a test, and the new version has twice the ticks of the
 * look before: so looks are few. In between only the amount of data is read. */
#ifndef PROFD_WATCH_WATCH_VERDICTS_H
#define PROFD_WATCH_WATCH_VERDICTS_H

#include "core/watch_list.h"
#include "proto/status.h"
#include "watch/watch_ask.h"
#include "watch/watch_rows.h"

#define WATCH_VERDICTS_ALPHA 0.05
#define WATCH_VERDICTS_MOST 250u /* stored of one watch: 12 versions with 20 functions */

struct watch_judging {
    const char *metric; /* as /api/v1/diff names it */
    double threshold;   /* a part: 0.02 */
};

/* Compares the newest versions of one watch, and removes the verdicts beyond WATCH_VERDICTS_MOST, those that were
 * decided first before others, those that wait last. Errors as the queries. */
enum profd_status watch_verdicts_look(const struct watch_ask *ask, const struct watch *w,
                                      const struct watch_judging *judging, struct watch_rows *rows,
                                      struct profd_error *e);

#endif
