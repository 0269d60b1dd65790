/* The text of every cached statement. */
#include "store/sqlite.h"

const char *const sqlite_texts[SQL_COUNT] = {
    [SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_STATE_GET] =
        "SELECT number, list_epoch, salt, uploads, ticks, calls, version, retired_uploads, retired_ticks, "
        "retired_calls, raw_uploads, raw_bytes, rollups, retiring FROM state",
    [SQL_STATE_SET] =
        "UPDATE state SET number=?1, list_epoch=?2, uploads=?3, ticks=?4, calls=?5, version=?6, retired_uploads=?7, "
        "retired_ticks=?8, retired_calls=?9, raw_uploads=?10, raw_bytes=?11, rollups=?12, retiring=?13",
    [SQL_HOST_FIND] = "SELECT id FROM host WHERE machine=?1",
    [SQL_HOST_ADD] = "INSERT INTO host (machine) VALUES (?1)",
    [SQL_BUILD_FIND] = "SELECT id FROM build WHERE build_id=?1",
    [SQL_BUILD_ADD] = "INSERT INTO build (build_id, epoch, named) VALUES (?1, 0, 0)",
    [SQL_BUILD_EPOCH_SET] = "UPDATE build SET epoch=?2 WHERE id=?1",
    [SQL_BUILD_NAMED_SET] = "UPDATE build SET named=1 WHERE id=?1",
    [SQL_SET_FIND] = "SELECT id FROM build_set WHERE builds=?1",
    [SQL_SET_ADD] = "INSERT INTO build_set (builds) VALUES (?1)",
    [SQL_SET_MEMBER_ADD] = "INSERT OR IGNORE INTO build_set_member VALUES (?1, ?2)",
    [SQL_SET_USER_ADD] = "INSERT OR IGNORE INTO build_set_user VALUES (?1, ?2)",
    [SQL_SERIES_FIND] = "SELECT id FROM series WHERE build_set=?1 AND uid=?2 AND program=?3 AND labels=?4",
    [SQL_SERIES_ADD] =
        "INSERT INTO series (build_set, uid, program, labels, uploads, processes, ticks, calls, first, last, "
        "inexact, raw_uploads, raw_bytes, shares) VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0, 0, 0, 0, 0, x'')",
    [SQL_UPLOAD_ADD] =
        "INSERT INTO upload (number, series, hour, host, start, length, inexact, started, spread_group, counts) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    /* The upload and its hour's row in the ledger, in which its sums stand. */
    [SQL_UPLOAD_GROWING] =
        "SELECT u.host, u.start, u.length, u.inexact, u.started, u.spread_group, u.counts FROM upload u "
        "CROSS JOIN ledger l ON l.series=u.series AND l.hour=u.hour "
        "WHERE u.number=?1 AND u.series=?2 AND u.hour=?3 AND l.raw_uploads>0 AND length(u.counts)<=?4",
    [SQL_UPLOAD_GROW] = "UPDATE upload SET start=?2, length=?3, inexact=?4, started=?5, counts=?6 WHERE number=?1",
    [SQL_SENDER_FIND] = "SELECT mark, seen, above FROM sender WHERE host=?1 AND uid=?2 AND sender=?3",
    [SQL_SENDER_SET] =
        "INSERT INTO sender (host, uid, sender, mark, seen, above) VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, x'')) "
        "ON CONFLICT DO UPDATE SET mark=excluded.mark, seen=excluded.seen, above=excluded.above",
    [SQL_SENDER_SCAN] = "SELECT host, uid, sender, seen FROM sender WHERE (host, uid, sender) > (?1, ?2, ?3) "
                        "ORDER BY host, uid, sender LIMIT ?4",
    [SQL_SENDER_REMOVE] = "DELETE FROM sender WHERE (host, uid, sender) > (?1, ?2, ?3) "
                          "AND (host, uid, sender) <= (?4, ?5, ?6) AND seen < ?7",
    [SQL_BUILD_USER_FIND] = "SELECT is_program, first, last, uploads, processes, nanoseconds, calls, inexact "
                            "FROM build_user WHERE build=?1 AND uid=?2",
    [SQL_BUILD_USER_SET] =
        "INSERT INTO build_user (build, uid, epoch, added, is_program, first, last, uploads, processes, nanoseconds, "
        "calls, "
        "inexact, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO UPDATE SET "
        "epoch=?3, is_program=?5, first=?6, last=?7, uploads=?8, processes=?9, nanoseconds=?10, calls=?11, inexact=?12",
    [SQL_USER_EPOCH_SET] = "INSERT INTO user_epoch VALUES (?1, ?2) ON CONFLICT DO UPDATE SET epoch=?2",
    [SQL_OBJECT_EACH] = "SELECT o.id, o.variant<>'', o.has_names, s.uid, s.trusted, s.delivered, s.note FROM object o "
                        "JOIN object_sender s ON s.object=o.id WHERE o.build=?1 ORDER BY o.id, s.uid",
    [SQL_OBJECT_GET] = "SELECT size, compressed, encoded FROM object WHERE id=?1",
    [SQL_OBJECT_BOUNDS] = "SELECT bounds FROM object WHERE id=?1",
    [SQL_OBJECT_SAME] = "SELECT size, compressed, encoded, id FROM object WHERE build=?1 AND variant=?2 ORDER BY id",
    [SQL_OBJECT_ADD] = "INSERT INTO object (build, variant, has_names, size, compressed, bounds, encoded) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_OBJECT_SENDER_FIND] = "SELECT trusted, delivered, note FROM object_sender WHERE object=?1 AND uid=?2",
    [SQL_OBJECT_SENDER_SET] = "INSERT INTO object_sender (object, uid, trusted, delivered, name, note, received) "
                              "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
                              "ON CONFLICT DO UPDATE SET trusted=?3, delivered=?4, name=?5, note=?6, received=?7",
    [SQL_OBJECT_SENDER_SEEN] = "UPDATE object_sender SET received=?3 WHERE object=?1 AND uid=?2",
    [SQL_OBJECT_KNOWN] = "SELECT 1 FROM build b JOIN object o ON o.build=b.id JOIN object_sender s ON s.object=o.id "
                         "WHERE b.build_id=?1 AND (s.uid=?2 OR (s.trusted=1 AND o.variant<>'')) LIMIT 1",
    [SQL_OBJECT_VARIANTS] = "SELECT count(*) FROM object WHERE build=?1 AND variant<>''",
    [SQL_OBJECT_LATEST] =
        "SELECT max(s.delivered) FROM object o JOIN object_sender s ON s.object=o.id WHERE o.build=?1",
    /* A report that an object of build ?1 can change: on any build that was in one process with it, for any user (?2)
     * or the sender (?3). */
    [SQL_TOUCH_BUILD_USERS] =
        "UPDATE build_user SET epoch=?4 WHERE (build, uid) IN (SELECT c.build, u.uid FROM build_set_member m "
        "JOIN build_set_user u ON u.build_set=m.build_set JOIN build_set_member c ON c.build_set=m.build_set "
        "WHERE m.build=?1 AND (?2 OR u.uid=?3))",
    [SQL_TOUCH_BUILDS] =
        "UPDATE build SET epoch=?4 WHERE id IN (SELECT c.build FROM build_set_member m "
        "JOIN build_set_user u ON u.build_set=m.build_set JOIN build_set_member c ON c.build_set=m.build_set "
        "WHERE m.build=?1 AND (?2 OR u.uid=?3))",
    [SQL_TOUCH_USERS] = "UPDATE user_epoch SET epoch=?4 WHERE uid IN "
                        "(SELECT uid FROM build_user WHERE build=?1 AND (?2 OR uid=?3))",
    [SQL_FIND_EXACT_ALL] = "SELECT build_id FROM build WHERE build_id=?1 AND epoch>0",
    [SQL_FIND_EXACT_UID] =
        "SELECT b.build_id FROM build b JOIN build_user u ON u.build=b.id WHERE b.build_id=?1 AND u.uid=?2",
    [SQL_FIND_PREFIX_ALL] = "SELECT build_id FROM build WHERE build_id>=?1 AND build_id<?1||'~' AND epoch>0 "
                            "ORDER BY build_id LIMIT 2",
    [SQL_FIND_PREFIX_UID] = "SELECT b.build_id FROM build b CROSS JOIN build_user u ON u.build=b.id AND u.uid=?2 "
                            "WHERE b.build_id>=?1 AND b.build_id<?1||'~' ORDER BY b.build_id LIMIT 2",
#define BUILD_COLUMNS                                                                                                  \
    "SELECT b.build_id, b.id, u.uid, u.name, u.is_program, u.first, u.last, u.uploads, u.processes, u.nanoseconds, "   \
    "u.calls, u.inexact, u.added "
    [SQL_EACH_BUILD_ALL] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                         "WHERE b.build_id>?1 ORDER BY b.build_id, u.uid",
    [SQL_EACH_BUILD_UID] = BUILD_COLUMNS "FROM build_user u CROSS JOIN build b ON b.id=u.build "
                                         "WHERE u.uid=?2 AND b.build_id>?1 ORDER BY b.build_id",
    [SQL_GET_BUILD_ALL] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                        "WHERE b.build_id=?1 ORDER BY u.uid",
    [SQL_GET_BUILD_UID] = BUILD_COLUMNS "FROM build b CROSS JOIN build_user u ON u.build=b.id "
                                        "WHERE b.build_id=?1 AND u.uid=?2",
#undef BUILD_COLUMNS
    [SQL_LABELS_ALL] = "SELECT labels, uploads FROM series WHERE (?1 OR uid=?2)",
    [SQL_LABELS_BUILD] = "SELECT s.labels, s.uploads FROM build b CROSS JOIN build_set_member m ON m.build=b.id "
                         "CROSS JOIN series s ON s.build_set=m.build_set WHERE b.build_id=?3 AND (?1 OR s.uid=?2)",
    [SQL_COMPANION_SETS] = "SELECT t.builds FROM build_set_member m CROSS JOIN build_set t ON t.id=m.build_set "
                           "WHERE m.build=?3 AND EXISTS (SELECT 1 FROM build_set_user u WHERE u.build_set=t.id "
                           "AND (?1 OR u.uid=?2))",
    [SQL_BUILD_NAME] = "SELECT b.build_id, u.name FROM build b JOIN build_user u ON u.build=b.id "
                       "WHERE b.id=?1 AND (?2 OR u.uid=?3) ORDER BY u.added, u.uid LIMIT 1",
    [SQL_SERIES_OF_BUILD] =
        "SELECT s.id, s.uid, s.program, s.labels, t.builds, t.id FROM build_set_member m CROSS JOIN series s "
        "ON s.build_set=m.build_set CROSS JOIN build_set t ON t.id=m.build_set "
        "WHERE m.build=?1 AND (?2 OR s.uid=?3) AND (?4=0 OR s.program=?1) ORDER BY m.build_set, s.uid",
    [SQL_UPLOAD_NUMBERS] = "SELECT number FROM upload WHERE series=?1 AND hour BETWEEN ?2 AND ?3",
    [SQL_UPLOAD_GET] = "SELECT host, start, length, inexact, started, counts FROM upload WHERE number=?1",
    [SQL_HOST_GET] = "SELECT machine FROM host WHERE id=?1",
    [SQL_EPOCH_ALL] = "SELECT epoch FROM build WHERE build_id=?1 AND epoch>0",
    [SQL_EPOCH_UID] = "SELECT u.epoch FROM build b JOIN build_user u ON u.build=b.id WHERE b.build_id=?1 AND u.uid=?2",
    [SQL_LIST_EPOCH_UID] = "SELECT epoch FROM user_epoch WHERE uid=?1",
    [SQL_TOTALS] = "SELECT count(*), coalesce(sum(named=0), 0) FROM build WHERE epoch>0",
    [SQL_PAGES] =
        "SELECT page_count, page_size, freelist_count FROM pragma_page_count, pragma_page_size, pragma_freelist_count",
/* --- sums --- */
#define SUM_COLUMNS "uploads, processes, ticks, calls, first, last, inexact, raw_uploads, raw_bytes"
    [SQL_LEDGER_GET] = "SELECT " SUM_COLUMNS ", raw_since, shares FROM ledger WHERE series=?1 AND hour=?2",
    [SQL_LEDGER_RANGE] =
        "SELECT " SUM_COLUMNS ", raw_since, shares, hour FROM ledger WHERE series=?1 AND hour BETWEEN ?2 AND ?3 "
        "ORDER BY hour",
    [SQL_LEDGER_ADD] = "INSERT INTO ledger (series, hour, " SUM_COLUMNS ", raw_since, shares) "
                       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [SQL_LEDGER_SET] = "UPDATE ledger SET uploads=?3, processes=?4, ticks=?5, calls=?6, first=?7, last=?8, inexact=?9, "
                       "raw_uploads=?10, raw_bytes=?11, shares=?12 WHERE series=?1 AND hour=?2",
    [SQL_LEDGER_SINCE] = "UPDATE ledger SET raw_since=?3 WHERE series=?1 AND hour=?2",
    [SQL_LEDGER_REMOVE] = "DELETE FROM ledger WHERE series=?1 AND hour BETWEEN ?2 AND ?3",
    [SQL_LEDGER_RAW] = "SELECT raw_since, series, hour, raw_uploads FROM ledger WHERE raw_since IS NOT NULL "
                       "ORDER BY raw_since, series, hour LIMIT 1",
    [SQL_LEDGER_RAW_IN] =
        "SELECT hour FROM ledger WHERE series=?1 AND hour BETWEEN ?2 AND ?3 AND raw_uploads>0 LIMIT 1",
    [SQL_LEDGER_OLDEST] = "SELECT hour, series FROM ledger INDEXED BY ledger_by_hour ORDER BY hour, series LIMIT 1",
    [SQL_LEDGER_NEXT] = "SELECT hour FROM ledger WHERE series=?1 AND hour>=?2 ORDER BY hour LIMIT 1",
    [SQL_SERIES_GET] = "SELECT " SUM_COLUMNS ", NULL, shares, build_set, uid, program FROM series WHERE id=?1",
    [SQL_SERIES_SET] = "UPDATE series SET uploads=?2, processes=?3, ticks=?4, calls=?5, first=?6, last=?7, inexact=?8, "
                       "raw_uploads=?9, raw_bytes=?10, shares=?11 WHERE id=?1",
    [SQL_SERIES_NEXT] = "SELECT s.id, t.builds FROM series s JOIN build_set t ON t.id=s.build_set WHERE s.id>=?1 "
                        "ORDER BY s.id LIMIT 1",
    [SQL_SERIES_SET_OF] =
        "SELECT t.builds, s.uid, s.program, s.build_set FROM series s JOIN build_set t ON t.id=s.build_set "
        "WHERE s.id=?1",
    [SQL_SERIES_SUMS] = "SELECT " SUM_COLUMNS ", NULL, shares, t.builds, s.program, s.uid FROM build_set_member m "
                        "CROSS JOIN series s ON s.build_set=m.build_set CROSS JOIN build_set t ON t.id=m.build_set "
                        "WHERE m.build=?1 AND s.uid=?2",
    [SQL_SERIES_EVERY] = "SELECT " SUM_COLUMNS ", NULL, shares, t.builds, s.program, s.uid, s.id FROM series s "
                         "JOIN build_set t ON t.id=s.build_set",
/* --- rollups --- */
#define ROLLUP_COLUMNS "id, folded, number, uploads, processes, first, last, inexact, hosts, counts"
    [SQL_ROLLUP_GET] =
        "SELECT " ROLLUP_COLUMNS ", spread, ticks, calls FROM rollup WHERE series=?1 AND level=?2 AND at=?3",
    [SQL_ROLLUP_READ] = "SELECT " ROLLUP_COLUMNS ", version, level FROM rollup WHERE id=?1",
    [SQL_ROLLUP_ADD] =
        "INSERT INTO rollup (series, level, at, folded, version, number, uploads, processes, ticks, calls, first, "
        "last, inexact, hosts, counts, spread) "
        "VALUES (?1, ?2, ?3, ?2=2, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    [SQL_ROLLUP_SET] =
        "UPDATE rollup SET version=?4, number=?5, uploads=?6, processes=?7, ticks=?8, calls=?9, first=?10, last=?11, "
        "inexact=?12, hosts=?13, counts=?14, spread=?15 WHERE series=?1 AND level=?2 AND at=?3",
    [SQL_ROLLUP_FOLD] = "UPDATE rollup SET folded=1 WHERE series=?1 AND level=?2 AND at=?3",
    [SQL_ROLLUP_UNFOLD] = "UPDATE rollup SET folded=0 WHERE series=?1 AND level=1 AND folded=1",
    [SQL_ROLLUP_REMOVE] = "DELETE FROM rollup WHERE series=?1 AND level=?2 AND at BETWEEN ?3 AND ?4",
    [SQL_ROLLUP_TO_FOLD] =
        "SELECT series, at FROM rollup INDEXED BY rollup_to_fold WHERE folded=0 AND level=?1 AND at<?2 "
        "ORDER BY at, series LIMIT 1",
    [SQL_ROLLUP_OPEN_AT] = "SELECT at FROM rollup INDEXED BY rollup_open WHERE folded=0 AND series=?1 AND level=?2 "
                           "AND at BETWEEN ?3 AND ?4 ORDER BY at LIMIT 1",
    [SQL_ROLLUP_FOLDED_AT] = "SELECT at FROM rollup WHERE series=?1 AND level=?2 AND at BETWEEN ?3 AND ?4 AND folded=1 "
                             "ORDER BY at LIMIT 1",
    [SQL_ROLLUP_EXISTS] = "SELECT 1 FROM rollup WHERE series=?1 AND level=?2 AND at=?3",
    [SQL_ROLLUP_IDS] = "SELECT number, id FROM rollup WHERE series=?1 AND level=?2 AND at BETWEEN ?3 AND ?4",
    [SQL_ROLLUP_IDS_OPEN] =
        "SELECT number, id FROM rollup INDEXED BY rollup_open WHERE folded=0 AND series=?1 AND level=?2 "
        "AND at BETWEEN ?3 AND ?4",
    [SQL_ROLLUP_IS_HOUR] = "SELECT 1 FROM rollup WHERE series=?1 AND level=0 AND at=?2",
    [SQL_ROLL_BEGIN] = "SAVEPOINT roll",
    [SQL_ROLL_UNDO] = "ROLLBACK TO roll",
    [SQL_ROLL_DONE] = "RELEASE roll",
    [SQL_RAW_EACH] = "SELECT number, host, start, length, inexact, started, spread_group, counts FROM upload "
                     "WHERE series=?1 AND hour=?2 ORDER BY number LIMIT ?3",
    [SQL_RAW_REMOVE] = "DELETE FROM upload WHERE series=?1 AND hour BETWEEN ?2 AND ?3 AND number<=?4",
    /* --- removal --- */
    [SQL_DOOMED_NEXT] = "SELECT series FROM doomed ORDER BY series LIMIT 1",
    [SQL_DOOMED_ADD] = "INSERT INTO doomed (series) VALUES (?1)",
    [SQL_DOOMED_REMOVE] = "DELETE FROM doomed WHERE series=?1",
    [SQL_DOOMED_RAW] = "DELETE FROM upload WHERE number IN (SELECT number FROM upload WHERE series=?1 LIMIT 256)",
    [SQL_DOOMED_ROLLUPS] = "DELETE FROM rollup WHERE id IN (SELECT id FROM rollup WHERE series=?1 LIMIT 32)",
    [SQL_DOOMED_LEDGER] =
        "DELETE FROM ledger WHERE series=?1 AND hour IN (SELECT hour FROM ledger WHERE series=?1 LIMIT 1000)",
    [SQL_SERIES_REMOVE] = "DELETE FROM series WHERE id=?1",
    [SQL_SERIES_OF_PROGRAM] = "SELECT s.id FROM build_set_member m CROSS JOIN series s ON s.build_set=m.build_set "
                              "WHERE m.build=?1 AND s.program=?1 AND (?2 OR s.uid=?3) LIMIT 1",
    [SQL_PROGRAM_OF_LIBRARY] =
        "SELECT b.build_id, u.name FROM build_set_member m CROSS JOIN series s ON s.build_set=m.build_set "
        "JOIN build b ON b.id=s.program JOIN build_user u ON u.build=b.id AND u.uid=s.uid "
        "WHERE m.build=?1 AND (?2 OR s.uid=?3) LIMIT 1",
    [SQL_SET_USER_REMOVE] = "DELETE FROM build_set_user WHERE build_set=?1 AND uid=?2 "
                            "AND NOT EXISTS (SELECT 1 FROM series WHERE build_set=?1 AND uid=?2)",
    [SQL_SET_REMOVE] = "DELETE FROM build_set WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM series WHERE build_set=?1)",
    [SQL_SET_MEMBERS_REMOVE] = "DELETE FROM build_set_member WHERE (build, build_set) IN (SELECT build, build_set "
                               "FROM build_set_member INDEXED BY build_set_member_by_set WHERE build_set=?1)",
    [SQL_BUILD_USER_REMOVE] = "DELETE FROM build_user WHERE build=?1 AND uid=?2",
    [SQL_BUILD_USER_ANY] = "SELECT 1 FROM build_user WHERE build=?1 LIMIT 1",
    [SQL_BUILD_UNSEEN] = "UPDATE build SET seen=max(seen, ?2), epoch=iif(?3, 0, epoch) WHERE id=?1",
    [SQL_BUILD_FORGET] =
        "DELETE FROM build WHERE id=?1 AND epoch=0 AND NOT EXISTS (SELECT 1 FROM object WHERE build=?1) "
        "AND NOT EXISTS (SELECT 1 FROM build_set_member WHERE build=?1)",
    [SQL_BUILD_IS_MEMBER] = "SELECT 1 FROM build_set_member WHERE build=?1 LIMIT 1",
    [SQL_BUILD_UNNAMED] = "UPDATE build SET named=0 WHERE id=?1",
    [SQL_OBJECT_UNSEEN] =
        "SELECT b.id FROM build b INDEXED BY build_unseen WHERE b.epoch=0 AND b.seen<?1 AND NOT EXISTS "
        "(SELECT 1 FROM object o JOIN object_sender s ON s.object=o.id WHERE o.build=b.id AND s.received>=?1) "
        "ORDER BY b.seen LIMIT 1",
    [SQL_OBJECT_SENDERS_REMOVE] = "DELETE FROM object_sender WHERE object IN (SELECT id FROM object WHERE build=?1)",
    [SQL_OBJECT_REMOVE] = "DELETE FROM object WHERE build=?1",
    /* --- verification --- */
    [SQL_BUILD_USERS] =
        "SELECT build, uid, is_program, first, last, uploads, processes, nanoseconds, calls, inexact FROM build_user",
    [SQL_RAW_COUNT] = "SELECT count(*) FROM upload",
    [SQL_ROLLUP_COUNT] = "SELECT count(*) FROM rollup",
    [SQL_RAW_ORPHAN] =
        "SELECT u.series, u.hour FROM upload u LEFT JOIN ledger l ON l.series=u.series AND l.hour=u.hour "
        "WHERE l.raw_uploads IS NULL LIMIT 1",
    [SQL_ROLLUP_ORPHAN] = "SELECT r.series, r.level, r.at FROM rollup r WHERE CASE r.level "
                          "WHEN 0 THEN NOT EXISTS (SELECT 1 FROM ledger l WHERE l.series=r.series AND l.hour=r.at) "
                          "WHEN 1 THEN NOT EXISTS (SELECT 1 FROM ledger l WHERE l.series=r.series AND l.hour BETWEEN "
                          "24*r.at AND 24*r.at+23) "
                          "ELSE NOT EXISTS (SELECT 1 FROM ledger l WHERE l.series=r.series) END LIMIT 1",
    [SQL_LEDGER_ORPHAN] =
        "SELECT l.series, l.hour FROM ledger l WHERE NOT EXISTS (SELECT 1 FROM series s WHERE s.id=l.series) "
        "AND NOT EXISTS (SELECT 1 FROM doomed d WHERE d.series=l.series) LIMIT 1",
    [SQL_DOOMED_COUNT] = "SELECT count(*) FROM doomed",
    /* --- live processes --- */
    [SQL_INSTANCE_GET] = "SELECT id, generation, upload, series, hour FROM instance WHERE uid=?1 AND name=?2",
    [SQL_INSTANCE_ADD] = "INSERT INTO instance (uid, name, generation, upload, series, hour, seen, ended) "
                         "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [SQL_INSTANCE_SET] =
        "UPDATE instance SET generation=?2, upload=?3, series=?4, hour=?5, seen=?6, ended=?7 WHERE id=?1",
    [SQL_INSTANCE_EACH] =
        "SELECT i.uid, i.name, i.generation, i.seen, s.bytes FROM instance i INDEXED BY instance_living "
        "CROSS JOIN snapshot s ON s.instance=i.id WHERE i.ended=0",
    [SQL_INSTANCE_REMOVE] = "DELETE FROM instance WHERE id IN (SELECT id FROM instance INDEXED BY instance_ended "
                            "WHERE ended=1 AND seen<?1 ORDER BY seen, id LIMIT ?2)",
    [SQL_SNAPSHOT_GET] = "SELECT i.generation, s.bytes FROM instance i LEFT JOIN snapshot s ON s.instance=i.id "
                         "WHERE i.uid=?1 AND i.name=?2",
    [SQL_SNAPSHOT_SET] = "INSERT INTO snapshot (instance, bytes) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET bytes=?2",
    [SQL_SNAPSHOT_REMOVE] = "DELETE FROM snapshot WHERE instance IN (SELECT id FROM instance INDEXED BY instance_ended "
                            "WHERE ended=1 AND seen<?1 ORDER BY seen, id LIMIT ?2)",
    [SQL_INSTANCE_EVERY] = "SELECT i.uid, i.name, i.generation, i.upload, i.series, i.hour, i.ended, u.series, u.hour, "
                           "EXISTS (SELECT 1 FROM snapshot s INDEXED BY snapshot_by_instance WHERE s.instance=i.id) "
                           "FROM instance i LEFT JOIN upload u ON u.number=i.upload",
    [SQL_INSTANCE_SHARED] =
        "SELECT upload FROM instance WHERE upload IS NOT NULL GROUP BY upload HAVING count(*)>1 LIMIT 1",
    [SQL_SNAPSHOT_ORPHAN] = "SELECT instance FROM snapshot INDEXED BY snapshot_by_instance "
                            "WHERE instance NOT IN (SELECT id FROM instance) LIMIT 1",
#undef SUM_COLUMNS
#undef ROLLUP_COLUMNS
};
