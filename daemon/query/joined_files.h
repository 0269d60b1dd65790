/* One static function has another file where its program was built in another directory. */
#ifndef PROFD_QUERY_JOINED_FILES_H
#define PROFD_QUERY_JOINED_FILES_H

#include "core/report.h"
#include "core/rows.h"
#include "query/set.h"

/* Of functions of one name, the ends of their files' paths say which is which: as many parts of a path as tell apart
 * all of one report. Two of one report are never the same. */
struct joined_files {
    struct arena *arena;
    struct set names;
    uint32_t *parts, capacity;
};

void joined_files_init(struct joined_files *x, struct arena *a);

/* Takes the files of a report's functions. scratch: what only this call needs. O(n log n), and of one name with k files
 * O(k²), where k ≤ 64: functions of a name with more are only the same if their files are equal. */
void joined_files_add(struct joined_files *x, const struct report *r, struct arena *scratch);

/* The last part of a path. */
const char *joined_files_base(const char *path);

/* Adds up rows of one name, one object and one end of the file, in the place of the first; the file becomes the end
 * that their files have in common. Each name and file is one row before. *count: of rows. O(rows) expected. */
void joined_files_merge(const struct joined_files *x, struct joined_row *rows, uint32_t *count);

#endif
