#include "profctl/profctl.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pprof_format.h"

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

/* Lines of a profile.proto that profd wrote (github.com/google/pprof). */

enum { LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3 };
enum { MAPPING_FILE = 5, MAPPING_BUILD = 6, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_INLINE_FRAMES = 10 };

/* A text and its number in the table of strings, or a function of the export that is split by files. */
struct export_name {
    const char *text, *file;
    uint64_t function; /* of the daemon's; 0: an inlined one, which has no location of its own */
    uint64_t number;
};

struct filling {
    struct export_objects *objects;
    FILE *out;
    const uint8_t *body;
    size_t size;
    struct pprof_field *strings, *functions; /* by number */
    uint64_t string_count, string_capacity, function_count, next_string, next_function;
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
static struct export_name *intern(void **tree, const struct export_name *like,
                                  int (*compare)(const void *, const void *), bool *fresh)
{
    struct export_name **found = tfind(like, tree, compare), *row;
    *fresh = !found;
    if (found) {
        return *found;
    }
    row = malloc(sizeof *row);
    if (row) {
        *row = *like;
        if (!tsearch(row, tree, compare)) {
            free(row);
            row = NULL;
        }
    }
    return row;
}

static void put_number(FILE *out, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    const uint8_t *end = varint_put(bytes, value);
    (void)fwrite(bytes, 1, (size_t)(end - bytes), out);
}

static void put_field(FILE *out, unsigned field, uint64_t value)
{
    put_number(out, (uint64_t)field << 3 | PPROF_WIRE_NUMBER);
    put_number(out, value);
}

static void put_bytes(FILE *out, unsigned field, const void *bytes, size_t n)
{
    put_number(out, (uint64_t)field << 3 | PPROF_WIRE_BYTES);
    put_number(out, n);
    (void)fwrite(bytes, 1, n, out);
}

/* Closes a message in memory and writes it as a field. */
static bool put_message(FILE *out, unsigned field, FILE *message, char **bytes, const size_t *n)
{
    const bool whole = !ferror(message) && fclose(message) == 0;
    if (whole) {
        put_bytes(out, field, *bytes, *n);
    }
    free(*bytes);
    *bytes = NULL;
    return whole;
}

/* The number of a field of a message; 0 if it is not there. */
static uint64_t number_of(struct pprof_cursor message, uint32_t field)
{
    struct pprof_field f;
    bool broken = false;
    uint64_t value = 0;
    while (pprof_field_next(&message, &f, &broken)) {
        value = f.number == field && f.wire == PPROF_WIRE_NUMBER ? f.value : value;
    }
    return value;
}

static char *copy_string(const struct filling *f, uint64_t number)
{
    const struct pprof_cursor *c = number < f->string_count ? &f->strings[number].inside : NULL;
    return c ? strndup((const char *)c->at, (size_t)(c->end - c->at)) : NULL;
}

/* Reads the strings, which functions there are, and the objects of the mappings. */
static enum profd_status read_tables(struct filling *f, struct profd_error *e)
{
    struct pprof_cursor c = {f->body, f->body + f->size, f->body};
    struct pprof_field field;
    bool broken = false;
    while (pprof_field_next(&c, &field, &broken)) {
        const bool string = field.number == PPROF_STRING;
        const uint64_t number = string                           ? f->string_count++
                                : field.number == PPROF_FUNCTION ? number_of(field.inside, 1)
                                                                 : 0;
        struct pprof_field **list = string ? &f->strings : &f->functions;
        uint64_t *capacity = string ? &f->string_capacity : &f->function_count;
        if ((!string && field.number != PPROF_FUNCTION) || number > f->size) {
            continue;
        }
        if (number >= *capacity) {
            struct pprof_field *grown = reallocarray(*list, 2 * number + 64, sizeof *grown);
            if (!grown) {
                return profd_no_memory(e);
            }
            memset(grown + *capacity, 0, (2 * number + 64 - *capacity) * sizeof *grown);
            *list = grown;
            *capacity = 2 * number + 64;
        }
        (*list)[number] = field;
    }
    f->next_string = f->string_count;
    f->next_function = f->function_count;
    if (broken) {
        return profd_error_set(e, PROFD_MALFORMED, "the daemon's answer is no pprof profile");
    }
    for (c.at = f->body; pprof_field_next(&c, &field, &broken);) {
        struct export_object *x =
            field.number == PPROF_MAPPING ? export_objects_take(f->objects, number_of(field.inside, 1)) : NULL;
        if (x && !x->path) {
            x->path = copy_string(f, number_of(field.inside, MAPPING_FILE));
            x->build_id = copy_string(f, number_of(field.inside, MAPPING_BUILD));
            if (!x->path || !x->build_id) {
                return profd_no_memory(e);
            }
        }
    }
    return PROFD_OK;
}

/* The number of a text, which is written if it is new. */
static bool take_text(struct filling *f, const char *text, uint64_t *number)
{
    bool fresh;
    struct export_name *row =
        intern(&f->texts, &(struct export_name){.text = text, .number = f->next_string}, compare_texts, &fresh);
    if (row && fresh) {
        put_bytes(f->out, PPROF_STRING, text, strlen(text));
        f->next_string++;
    }
    *number = row ? row->number : 0;
    return row != NULL;
}

/* The number of the function of a frame, which is written if it is new. function: the daemon's, for the outermost. */
static bool take_function(struct filling *f, const struct code_frame *frame, uint64_t function, uint64_t *number)
{
    bool fresh;
    uint64_t name = 0, raw = 0, file = 0;
    const struct export_name like = {
        .text = frame->function, .file = frame->file, .function = function, .number = f->next_function};
    struct export_name *row = intern(&f->made, &like, compare_functions, &fresh);
    *number = row ? row->number : 0;
    if (!row || !fresh) {
        return row != NULL;
    }
    f->next_function++;
    if (!take_text(f, frame->file, &file) || (function == 0 && !take_text(f, frame->function, &name))) {
        return false;
    }
    raw = name;
    if (function != 0) {
        name = number_of(f->functions[function].inside, FUNCTION_NAME);
        raw = number_of(f->functions[function].inside, FUNCTION_SYSTEM_NAME);
    }
    char *bytes = NULL;
    size_t n = 0;
    FILE *message = open_memstream(&bytes, &n);
    if (!message) {
        return false;
    }
    put_field(message, 1, row->number);
    put_field(message, FUNCTION_NAME, name);
    put_field(message, FUNCTION_SYSTEM_NAME, raw);
    put_field(message, 4, file);
    put_field(message, 5, frame->first_line);
    return put_message(f->out, PPROF_FUNCTION, message, &bytes, &n);
}

/* Writes a location with the lines of its address. */
static enum profd_status put_location(struct filling *f, struct pprof_cursor location, struct profd_error *e)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    struct code_lines *lines;
    struct pprof_field field;
    uint64_t numbers[CODE_LINES_DEPTH], function = 0;
    const uint64_t mapping = number_of(location, LOCATION_MAPPING), address = number_of(location, LOCATION_ADDRESS);
    char *bytes = NULL, *inner = NULL;
    size_t size = 0, inner_size = 0;
    bool broken = false;
    for (struct pprof_cursor c = location; pprof_field_next(&c, &field, &broken);) {
        if (field.number == LOCATION_LINE && field.wire == PPROF_WIRE_BYTES) {
            function = number_of(field.inside, 1);
        }
    }
    const bool known = function > 0 && function < f->function_count && f->functions[function].number == PPROF_FUNCTION;
    TRY(export_objects_find(f->objects, mapping, &lines, e));
    const size_t n = lines && known ? code_lines_find(lines, address, frames) : 0;
    if (n == 0) { /* as the daemon wrote it */
        put_bytes(f->out, PPROF_LOCATION, location.at, (size_t)(location.end - location.at));
        return PROFD_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (!take_function(f, &frames[i], i + 1 == n ? function : 0, &numbers[i])) {
            return profd_no_memory(e);
        }
    }
    FILE *message = open_memstream(&bytes, &size);
    if (!message) {
        return profd_no_memory(e);
    }
    put_field(message, 1, number_of(location, 1));
    put_field(message, LOCATION_MAPPING, mapping);
    put_field(message, LOCATION_ADDRESS, address);
    for (size_t i = 0; i < n; i++) {
        FILE *line = open_memstream(&inner, &inner_size);
        if (line) {
            put_field(line, 1, numbers[i]);
            put_field(line, 2, frames[i].line);
        }
        if (!line || !put_message(message, LOCATION_LINE, line, &inner, &inner_size)) {
            (void)fclose(message);
            free(bytes);
            return profd_no_memory(e);
        }
    }
    return put_message(f->out, PPROF_LOCATION, message, &bytes, &size) ? PROFD_OK : profd_no_memory(e);
}

/* Writes a mapping. has_functions, has_filenames, has_line_numbers and has_inline_frames are true if it has lines. */
static enum profd_status put_mapping(struct filling *f, struct pprof_cursor mapping, struct profd_error *e)
{
    struct code_lines *lines;
    char *bytes = NULL;
    size_t size = 0;
    TRY(export_objects_find(f->objects, number_of(mapping, 1), &lines, e));
    FILE *message = open_memstream(&bytes, &size);
    if (!message) {
        return profd_no_memory(e);
    }
    (void)fwrite(mapping.at, 1, (size_t)(mapping.end - mapping.at), message);
    for (unsigned i = MAPPING_HAS_FUNCTIONS; lines && i <= MAPPING_HAS_INLINE_FRAMES; i++) {
        put_field(message, i, 1);
    }
    return put_message(f->out, PPROF_MAPPING, message, &bytes, &size) ? PROFD_OK : profd_no_memory(e);
}

enum profd_status export_pprof_fill(struct export_objects *o, const uint8_t *body, size_t size, FILE *out,
                                    struct profd_error *e)
{
    static const char old[] = PPROF_LINES_FUNCTION;
    struct filling f = {.objects = o, .out = out, .body = body, .size = size};
    struct pprof_cursor c = {body, body + size, body};
    struct pprof_field field;
    bool broken = false;
    enum profd_status status = read_tables(&f, e);

    /* The daemon's strings come first, so that they keep their numbers. Its comment on lines is replaced. */
    for (uint64_t i = 0; status == PROFD_OK && i < f.string_count; i++) {
        const char *text = (const char *)f.strings[i].inside.at;
        const size_t n = (size_t)(f.strings[i].inside.end - f.strings[i].inside.at), tail = sizeof old - 1;
        if (n <= tail || memcmp(text + n - tail, old, tail) != 0) {
            put_bytes(out, PPROF_STRING, text, n);
            continue;
        }
        put_number(out, (uint64_t)PPROF_STRING << 3 | PPROF_WIRE_BYTES);
        put_number(out, n - tail + strlen(PPROF_LINES_DEBUG));
        (void)fwrite(text, 1, n - tail, out);
        (void)fputs(PPROF_LINES_DEBUG, out);
    }
    for (const uint8_t *begin = c.at; status == PROFD_OK && pprof_field_next(&c, &field, &broken); begin = c.at) {
        if (field.number == PPROF_MAPPING) {
            status = put_mapping(&f, field.inside, e);
        } else if (field.number == PPROF_LOCATION) {
            status = put_location(&f, field.inside, e);
        } else if (field.number != PPROF_STRING) {
            (void)fwrite(begin, 1, (size_t)(c.at - begin), out);
        }
    }
    tdestroy(f.texts, free);
    tdestroy(f.made, free);
    free(f.strings);
    free(f.functions);
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
