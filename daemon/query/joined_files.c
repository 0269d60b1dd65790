#include "query/joined_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/sum.h"

#define FILES_MOST 64u /* of one name in one report */

struct named_file {
    uint32_t name;
    const char *file;
};

void joined_files_init(struct joined_files *x, struct arena *a)
{
    *x = (struct joined_files){.arena = a};
    set_init(&x->names, a);
}

/* The last n parts of a path; all of it if it has no more. */
static const char *path_end(const char *path, uint32_t n)
{
    const char *at = path + strlen(path);
    for (; at > path; at--) {
        if (at[-1] == '/' && n-- <= 1) {
            break;
        }
    }
    return at;
}

const char *joined_files_base(const char *path)
{
    return path_end(path, 1);
}

/* How many parts at the end of two paths are equal. */
static uint32_t path_common(const char *a, const char *b)
{
    size_t i = strlen(a), j = strlen(b);
    uint32_t n = 0;
    while (i > 0 && j > 0 && a[i - 1] == b[j - 1]) {
        n += a[i - 1] == '/';
        i--;
        j--;
    }
    return n + ((i == 0 || a[i - 1] == '/') && (j == 0 || b[j - 1] == '/') && (i > 0 || j > 0 || a[0] != '/'));
}

static int file_compare(const void *left, const void *right)
{
    const struct named_file *a = left, *b = right;
    return a->name != b->name ? (a->name < b->name ? -1 : 1) : strcmp(a->file, b->file);
}

/* Of n files of one name, each once. */
static uint32_t find_parts(const struct named_file *files, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; n <= FILES_MOST && i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            uint32_t common = path_common(files[i].file, files[k].file);
            most = common > most ? common : most;
        }
    }
    return n > FILES_MOST ? UINT32_MAX : most + 1;
}

void joined_files_add(struct joined_files *x, const struct report *r, struct arena *scratch)
{
    uint32_t n = 0, kept = 0;
    struct named_file *files = ARENA_ARRAY(scratch, (size_t)r->function_count + 1, struct named_file);
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        bool added;
        if (f->kind != REPORT_FUNCTION || f->file == NULL || f->file[0] == '\0') {
            continue;
        }
        struct named_file *file = &files[n++];
        file->file = f->file;
        file->name = set_add(&x->names, f->name, strlen(f->name) + 1, &added);
        if (added) {
            x->parts = arena_extend(x->arena, x->parts, file->name, &x->capacity, sizeof *x->parts);
            x->parts[file->name] = 1;
        }
    }
    qsort(files, n, sizeof *files, file_compare);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || file_compare(&files[kept - 1], &files[i]) != 0) {
            files[kept++] = files[i];
        }
    }
    for (uint32_t i = 0, end; i < kept; i = end) {
        for (end = i + 1; end < kept && files[end].name == files[i].name;) {
            end++;
        }
        uint32_t parts = find_parts(files + i, end - i);
        x->parts[files[i].name] = parts > x->parts[files[i].name] ? parts : x->parts[files[i].name];
    }
}

static void add_row(struct joined_row *to, const struct joined_row *from)
{
    bool saturated = false;
    to->self += from->self;
    to->total += from->total;
    sum_add(&to->calls, from->calls, &saturated);
    sum_add(&to->self_calls, from->self_calls, &saturated);
    to->programs += from->programs;
    to->builds += from->builds;
    to->file = path_end(to->file, path_common(to->file, from->file));
}

void joined_files_merge(const struct joined_files *x, struct joined_row *rows, uint32_t *count)
{
    struct set ends;
    struct buffer key;
    uint32_t kept = 0, number = 0, *place = ARENA_ARRAY(x->arena, (size_t)*count + 1, uint32_t);
    set_init(&ends, x->arena);
    buffer_init_arena(&key, x->arena);
    for (uint32_t i = 0; i < *count; i++) {
        const struct joined_row *row = &rows[i];
        bool added = true;
        uint32_t name;
        if (row->file[0] != '\0' && set_find(&x->names, row->name, strlen(row->name) + 1, &name)) {
            const char *end = path_end(row->file, x->parts[name]);
            key.size = 0;
            buffer_add(&key, row->name, strlen(row->name) + 1);
            buffer_add(&key, row->object, strlen(row->object) + 1);
            buffer_add_text(&key, end);
            number = set_add(&ends, key.data, key.size, &added);
            if (added) {
                place[number] = kept;
            }
        }
        if (added) {
            rows[kept++] = *row;
        } else {
            add_row(&rows[place[number]], row);
        }
    }
    *count = kept;
}
