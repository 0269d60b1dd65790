#include "profctl/profctl.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/pprof_codec.h"

/* The object of this number, below EXPORT_OBJECTS_MOST; NULL beyond it, and when memory is exhausted. */
static struct export_object *export_objects_take(struct export_objects *o, uint64_t number)
{
    if (number >= EXPORT_OBJECTS_MOST) {
        return NULL;
    }
    if (number >= o->count) {
        struct export_object *list = reallocarray(o->list, number + 1, sizeof *list);
        if (!list) {
            return NULL;
        }
        memset(list + o->count, 0, (number + 1 - o->count) * sizeof *list);
        o->list = list;
        o->count = number + 1;
    }
    return &o->list[number];
}

/* The lines of an object. *lines is NULL if there is no file of that build here, or it has no lines. NO_MEMORY. */
static enum profd_status export_objects_find(struct export_objects *o, uint64_t number, struct code_lines **lines,
                                             struct profd_error *e)
{
    struct export_object *x = number < o->count ? &o->list[number] : NULL;
    *lines = NULL;
    if (!x || !x->build_id) {
        return PROFD_OK;
    }
    const char *candidates[] = {o->given, x->path};
    for (size_t i = 0; !x->sought && i < COUNT(candidates); i++) {
        if (candidates[i] && build_is_file(candidates[i], x->build_id)) {
            TRY(code_lines_open(candidates[i], x->build_id, &x->lines, e));
            break;
        }
    }
    x->sought = true;
    *lines = x->lines;
    return PROFD_OK;
}

void export_objects_done(struct export_objects *o)
{
    for (size_t i = 0; i < o->count; i++) {
        free(o->list[i].path);
        free(o->list[i].build_id);
        code_lines_close(o->list[i].lines);
    }
    free(o->list);
}

/* Lines of a callgrind.out that profd wrote. */

#define BUILD_OF "desc: Build of ("
#define LINES_FUNCTION "desc: Lines: the first of each function"
#define LINES_DEBUG                                                                                                    \
    "desc: Lines: of each address, from debug information where there is any, else the first of each function"

struct costs {
    struct export_objects *objects;
    FILE *out;
    uint64_t object, called_object;
    char **files; /* by number, as written; NULL: not defined */
    size_t file_count;
    char *held_file, *held_function; /* "fl=" and "fn=" that wait for the function's address */
    const char *own;                 /* file of the function, and the one that holds for cost lines */
    char *current;
};

static enum profd_status find_frames(struct costs *f, uint64_t object, uint64_t address,
                                     struct code_frame frames[CODE_LINES_DEPTH], size_t *n, struct profd_error *e)
{
    struct code_lines *lines;
    enum profd_status status = export_objects_find(f->objects, object, &lines, e);
    *n = status == PROFD_OK && lines ? code_lines_find(lines, address, frames) : 0;
    return status;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* The text of "KEY=(NUMBER)" or "KEY=(NUMBER) TEXT"; NULL if the line has another form. */
static char *parse_name(char *line, uint64_t *number)
{
    char *at = strchr(line, '='), *end;
    if (!at || at[1] != '(') {
        return NULL;
    }
    *number = strtoull(at + 2, &end, 10);
    return *end == ')' ? end + 1 + (end[1] == ' ') : NULL;
}

/* Writes the held lines. file is the file of the function, as debug information has it; "" if unknown. NO_MEMORY. */
static enum profd_status release(struct costs *f, const char *file, struct profd_error *e)
{
    uint64_t number = 0;
    if (!f->held_file) {
        return PROFD_OK;
    }
    const char *text = parse_name(f->held_file, &number);
    if (text && text[0] != '\0') {
        const char *name = file[0] ? file : text;
        if (number >= f->file_count && number < UINT32_MAX) {
            const size_t more = number + number / 2 + 64;
            char **files = reallocarray(f->files, more, sizeof *files);
            if (!files) {
                return profd_no_memory(e);
            }
            memset(files + f->file_count, 0, (more - f->file_count) * sizeof *files);
            f->files = files;
            f->file_count = more;
        }
        if (number >= f->file_count) {
            return profd_no_memory(e);
        }
        free(f->files[number]);
        f->files[number] = strdup(name);
        if (!f->files[number]) {
            return profd_no_memory(e);
        }
        fprintf(f->out, "%.*s%s\n", (int)(text - f->held_file), f->held_file, name);
    } else {
        fprintf(f->out, "%s\n", f->held_file);
    }
    if (f->held_function) {
        fprintf(f->out, "%s\n", f->held_function);
    }
    if (f->held_file[0] == 'f') {
        free(f->current);
        f->own = text && number < f->file_count && f->files[number] ? f->files[number] : "";
        f->current = strdup(f->own);
    }
    f->held_file = f->held_function = NULL;
    return f->current ? PROFD_OK : profd_no_memory(e);
}

/* Takes a line of the file, which the daemon wrote. NO_MEMORY; MALFORMED. */
static enum profd_status take_line(struct costs *f, char *line, struct profd_error *e)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    size_t n = 0;
    char *end;
    if (begins(line, "0x")) { /* "0xADDRESS LINE COST" */
        const uint64_t address = strtoull(line, &end, 16);
        const char *cost = *end == ' ' ? strchr(end + 1, ' ') : NULL;
        TRY(cost ? find_frames(f, f->object, address, frames, &n, e)
                 : profd_error_set(e, PROFD_MALFORMED, "\"%.60s\" is no cost line", line));
        TRY(release(f, n > 0 ? frames[n - 1].file : "", e));
        if (n == 0 || frames[0].line == 0 || !frames[0].file[0]) {
            fprintf(f->out, "%s\n", line);
            return PROFD_OK;
        }
        if (strcmp(frames[0].file, f->current) != 0) {
            free(f->current);
            f->current = strdup(frames[0].file);
            fprintf(f->out, "%s=%s\n", strcmp(frames[0].file, f->own) == 0 ? "fe" : "fi", frames[0].file);
        }
        fprintf(f->out, "0x%" PRIx64 " %u%s\n", address, frames[0].line, cost);
        return f->current ? PROFD_OK : profd_no_memory(e);
    }
    if (begins(line, "calls=")) { /* "calls=COUNT 0xADDRESS LINE" */
        const char *target = strchr(line, ' ');
        const uint64_t address = target ? strtoull(target, NULL, 16) : 0;
        TRY(find_frames(f, f->called_object, address, frames, &n, e));
        TRY(release(f, n > 0 ? frames[n - 1].file : "", e));
        if (n > 0 && frames[n - 1].line > 0) {
            fprintf(f->out, "%.*s 0x%" PRIx64 " %u\n", (int)(target - line), line, address, frames[n - 1].line);
        } else {
            fprintf(f->out, "%s\n", line);
        }
        return PROFD_OK;
    }
    if ((begins(line, "fn=") || begins(line, "cfn=")) && f->held_file) {
        f->held_function = line;
        return PROFD_OK;
    }
    TRY(release(f, "", e));
    if (begins(line, "fl=") || begins(line, "cfi=")) {
        f->held_file = line;
        return PROFD_OK;
    }
    if (begins(line, "ob=") || begins(line, "cob=")) {
        uint64_t *number = line[0] == 'o' ? &f->object : &f->called_object;
        const char *path = parse_name(line, number);
        struct export_object *x = path && path[0] ? export_objects_take(f->objects, *number) : NULL;
        if (x && !x->path) {
            x->path = strdup(path);
        }
    }
    if (begins(line, BUILD_OF)) {
        const uint64_t number = strtoull(line + strlen(BUILD_OF), &end, 10);
        struct export_object *x = strncmp(end, "): ", 3) == 0 ? export_objects_take(f->objects, number) : NULL;
        if (x && !x->build_id) {
            x->build_id = strdup(end + 3);
        }
    }
    fprintf(f->out, "%s\n", strcmp(line, LINES_FUNCTION) == 0 ? LINES_DEBUG : line);
    return PROFD_OK;
}

enum profd_status export_callgrind_fill(struct export_objects *o, char *body, FILE *out, struct profd_error *e)
{
    struct costs f = {.objects = o, .out = out, .own = "", .current = strdup("")};
    enum profd_status status = f.current ? PROFD_OK : profd_no_memory(e);
    for (char *line = body, *next; status == PROFD_OK && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) {
            *next++ = '\0';
        }
        status = take_line(&f, line, e);
    }
    status = status ? status : release(&f, "", e);
    for (size_t i = 0; i < f.file_count; i++) {
        free(f.files[i]);
    }
    free(f.files);
    free(f.current);
    return status;
}

/* Lines of a pprof profile that profd wrote. */

/* A text and its number in the table of strings, or a function of the export that is split by files. */
struct export_name {
    const char *text, *file;
    uint64_t function; /* of the daemon's; 0: an inlined one, which has no location of its own */
    uint64_t number;
};

struct filling {
    struct export_objects *objects;
    struct arena *arena;
    Profd__Pprof__Profile *from, more; /* as the daemon wrote it, and what is added behind it */
    uint32_t string_capacity, function_capacity;
    uint64_t next_function;
    void *texts, *made; /* trees of struct export_name */
};

static int compare_texts(const void *left, const void *right)
{
    return strcmp(((const struct export_name *)left)->text, ((const struct export_name *)right)->text);
}

static int compare_functions(const void *left, const void *right)
{
    const struct export_name *a = left, *b = right;
    int order = (a->function > b->function) - (a->function < b->function);
    order = order != 0 ? order : strcmp(a->file, b->file);
    return order != 0 || a->function != 0 ? order : strcmp(a->text, b->text);
}

/* The row like this one; *fresh: there was none. NULL: no memory. Texts live as long as the lines. */
static struct export_name *intern(struct arena *a, void **tree, const struct export_name *like,
                                  int (*compare)(const void *, const void *), bool *fresh)
{
    struct export_name **found = tfind(like, tree, compare), *row;
    *fresh = !found;
    if (found) {
        return *found;
    }
    row = ARENA_NEW(a, struct export_name);
    if (row) {
        *row = *like;
        row = tsearch(row, tree, compare) ? row : NULL;
    }
    return row;
}

/* The number of a text, which is added if it is new. */
static bool take_text(struct filling *f, const char *text, int64_t *number)
{
    bool fresh;
    Profd__Pprof__Profile *more = &f->more;
    const struct export_name like = {.text = text, .number = f->from->n_string_table + more->n_string_table};
    struct export_name *row = intern(f->arena, &f->texts, &like, compare_texts, &fresh);
    if (row && fresh) {
        void *list = arena_extend(f->arena, more->string_table, (uint32_t)more->n_string_table, &f->string_capacity,
                                  sizeof *more->string_table);
        if (!list) {
            return false;
        }
        more->string_table = list;
        more->string_table[more->n_string_table++] = pprof_bytes(text, strlen(text));
    }
    *number = row ? (int64_t)row->number : 0;
    return row != NULL;
}

/* Returns the number of the function of a frame, and adds the function if it is new. of is the daemon's function for
 * the outermost frame, else NULL. */
static bool take_function(struct filling *f, const struct code_frame *frame, const Profd__Pprof__Function *of,
                          uint64_t *number)
{
    bool fresh;
    Profd__Pprof__Profile *more = &f->more;
    const struct export_name like = {
        .text = frame->function, .file = frame->file, .function = of ? of->id : 0, .number = f->next_function};
    struct export_name *row = intern(f->arena, &f->made, &like, compare_functions, &fresh);
    *number = row ? row->number : 0;
    if (!row || !fresh) {
        return row != NULL;
    }
    Profd__Pprof__Function *made = ARENA_NEW(f->arena, Profd__Pprof__Function);
    void *list = arena_extend(f->arena, more->function, (uint32_t)more->n_function, &f->function_capacity,
                              sizeof(Profd__Pprof__Function *));
    if (!made || !list) {
        return false;
    }
    more->function = list;
    more->function[more->n_function++] = made;
    profd__pprof__function__init(made);
    made->id = f->next_function++;
    made->name = of ? of->name : 0;
    made->start_line = frame->first_line;
    if (!take_text(f, frame->file, &made->filename) || (!of && !take_text(f, frame->function, &made->name))) {
        return false;
    }
    made->system_name = of ? of->system_name : made->name;
    return true;
}

static int compare_ids(const void *id, const void *row)
{
    const uint64_t key = *(const uint64_t *)id, other = (*(Profd__Pprof__Function *const *)row)->id;
    return (key > other) - (key < other);
}

/* Gives a location the lines of its address. It stays as the daemon wrote it if they are not known. */
static enum profd_status fill_location(struct filling *f, Profd__Pprof__Location *l, struct profd_error *e)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    struct code_lines *lines;
    const Profd__Pprof__Profile *from = f->from;
    Profd__Pprof__Function **function =
        l->n_line == 0 || from->n_function == 0
            ? NULL
            : bsearch(&l->line[l->n_line - 1]->function_id, from->function, from->n_function, sizeof *from->function,
                      compare_ids); /* the daemon writes them in order */
    TRY(export_objects_find(f->objects, l->mapping_id, &lines, e));
    const size_t n = lines && function ? code_lines_find(lines, l->address, frames) : 0;
    if (n == 0) {
        return PROFD_OK;
    }
    l->n_line = n;
    l->line = ARENA_ARRAY(f->arena, n, Profd__Pprof__Line *);
    for (size_t i = 0; i < n; i++) {
        Profd__Pprof__Line *line = ARENA_NEW(f->arena, Profd__Pprof__Line);
        if (!l->line || !line) {
            return profd_no_memory(e);
        }
        profd__pprof__line__init(line);
        l->line[i] = line;
        line->line = frames[i].line;
        if (!take_function(f, &frames[i], i + 1 == n ? *function : NULL, &line->function_id)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

/* Gives a mapping's build to the objects, and its has_… fields the value true if there are lines of it. */
static enum profd_status fill_mapping(struct filling *f, Profd__Pprof__Mapping *m, struct profd_error *e)
{
    struct code_lines *lines;
    struct export_object *x = export_objects_take(f->objects, m->id);
    if (x && !x->path) {
        const ProtobufCBinaryData path = pprof_text(f->from, m->filename), id = pprof_text(f->from, m->build_id);
        x->path = strndup((const char *)path.data, path.len);
        x->build_id = strndup((const char *)id.data, id.len);
        if (!x->path || !x->build_id) {
            return profd_no_memory(e);
        }
    }
    TRY(export_objects_find(f->objects, m->id, &lines, e));
    if (lines) {
        m->has_functions = m->has_filenames = m->has_line_numbers = m->has_inline_frames = true;
    }
    return PROFD_OK;
}

/* The daemon's comment on lines is replaced. */
static enum profd_status fill_comments(struct filling *f, struct profd_error *e)
{
    static const char old[] = PPROF_LINES_FUNCTION;
    const size_t tail = sizeof old - 1;
    for (size_t i = 0; i < f->from->n_string_table; i++) {
        ProtobufCBinaryData *s = &f->from->string_table[i];
        if (s->len > tail && memcmp(s->data + s->len - tail, old, tail) == 0) {
            const char *text =
                arena_format(f->arena, "%.*s" PPROF_LINES_DEBUG, (int)(s->len - tail), (const char *)s->data);
            if (!text) {
                return profd_no_memory(e);
            }
            *s = pprof_bytes(text, strlen(text));
        }
    }
    return PROFD_OK;
}

static enum profd_status fill_profile(struct filling *f, const uint8_t *body, size_t size, FILE *out,
                                      struct profd_error *e)
{
    struct buffer bytes;
    TRY(pprof_unpack(f->arena, &profd__pprof__profile__descriptor, body, size, &f->from, e));
    profd__pprof__profile__init(&f->more);
    for (size_t i = 0; i < f->from->n_function; i++) {
        const uint64_t id = f->from->function[i]->id;
        f->next_function = id >= f->next_function ? id + 1 : f->next_function;
    }
    TRY(fill_comments(f, e));
    for (size_t i = 0; i < f->from->n_mapping; i++) {
        TRY(fill_mapping(f, f->from->mapping[i], e));
    }
    for (size_t i = 0; i < f->from->n_location; i++) {
        TRY(fill_location(f, f->from->location[i], e));
    }
    buffer_init_arena(&bytes, f->arena);
    pprof_write(&bytes, f->from);
    pprof_write(&bytes, &f->more);
    (void)fwrite(bytes.data, 1, bytes.size, out);
    return bytes.failed ? profd_no_memory(e) : PROFD_OK;
}

static void keep_row(void *row)
{
    (void)row;
}

enum profd_status export_pprof_fill(struct export_objects *o, const uint8_t *body, size_t size, FILE *out,
                                    struct profd_error *e)
{
    struct filling f = {.objects = o, .arena = arena_new(0)};
    if (!f.arena) {
        return profd_no_memory(e);
    }
    enum profd_status status = fill_profile(&f, body, size, out, e);
    if (status == PROFD_MALFORMED) {
        status = profd_error_set(e, status, "the daemon's answer is not a pprof profile");
    }
    tdestroy(f.texts, keep_row);
    tdestroy(f.made, keep_row);
    arena_free(f.arena);
    return status;
}

bool export_lines_has(const char *format)
{
    return format && (strcmp(format, "pprof") == 0 || strcmp(format, "callgrind") == 0);
}

enum profd_status export_lines_fill(const char *format, const char *given, char *body, size_t size, FILE *out,
                                    struct profd_error *e)
{
    struct export_objects o = {.given = given};
    enum profd_status status = strcmp(format, "pprof") == 0 ? export_pprof_fill(&o, (const uint8_t *)body, size, out, e)
                                                            : export_callgrind_fill(&o, body, out, e);
    export_objects_done(&o);
    return status;
}
