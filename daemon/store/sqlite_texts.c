/* The text of every cached statement. */
#include "store/sqlite.h"

/* For live processes, by series: their number, and the earliest and latest of their latest harvests. */
#define IN_SCOPE(n) "=?" #n /* ?n: SCOPE */
#define LIVING_OF(INSTANCES)                                                                                           \
    "SELECT s.labels, i.n, i.earliest, i.latest FROM (SELECT series, sum(n) AS n, min(seen) AS earliest, "             \
    "max(seen) AS latest FROM " INSTANCES " WHERE (?2<=0 OR seen<?2) AND seen>=?7 GROUP BY series) i "                 \
    "CROSS JOIN series s ON s.id=i.series WHERE (?3 OR s.uid" IN_SCOPE(                                                \
        4) ") AND (?5='' OR EXISTS (SELECT 1 FROM build b "                                                            \
           "CROSS JOIN build_set_member m ON m.build=b.id AND m.build_set=s.build_set "                                \
           "WHERE b.build_id=?5 AND (?6=0 OR s.program=b.id)))"

#define SQL(name, text) [SQL_##name] = (text),
const char *const sqlite_texts[SQL_COUNT] = {
#include "store/sqlite_texts.inc"
};
