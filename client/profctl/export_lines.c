/* The lines of a callgrind.out that profd wrote, from executables on this machine. pprof -symbolize=local:force finds
 * those of a profile in its own format itself. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"

#define OBJECTS_MOST 65536u

#define BUILD_OF "desc: Build of ("
#define LINES_FUNCTION "desc: Lines: the first of each function"
#define LINES_DEBUG                                                                                                    \
    "desc: Lines: of each address, from debug information where there is any, else the first of each function"

/* An executable of the export, by the number that it gives to builds. */
struct export_object {
    char *path, *build_id; /* NULL: not stated */
    struct code_lines *lines;
    bool sought;
};

struct costs {
    const char *given; /* a file that the user named: it may be one of them */
    struct export_object *objects;
    size_t object_count;
    FILE *out;
    uint64_t object, called_object;
    char **files; /* by number, as written; NULL: not defined */
    size_t file_count;
    char *held_file, *held_function; /* "fl=" and "fn=" that wait for the function's address */
    const char *own;                 /* file of the function, and the one that holds for cost lines */
    char *current;
};

/* The object of this number; NULL from OBJECTS_MOST on, and when memory is exhausted. */
static struct export_object *take_object(struct costs *f, uint64_t number)
{
    if (number >= OBJECTS_MOST) {
        return NULL;
    }
    if (number >= f->object_count) {
        struct export_object *list = reallocarray(f->objects, number + 1, sizeof *list);
        if (!list) {
            return NULL;
        }
        memset(list + f->object_count, 0, (number + 1 - f->object_count) * sizeof *list);
        f->objects = list;
        f->object_count = number + 1;
    }
    return &f->objects[number];
}

/* Sets *n to 0 if there is no file of the object's build here, or it has no lines. NO_MEMORY. */
static enum profd_status find_frames(struct costs *f, uint64_t object, uint64_t address,
                                     struct code_frame frames[CODE_LINES_DEPTH], size_t *n, struct profd_error *e)
{
    struct export_object *x = object < f->object_count ? &f->objects[object] : NULL;
    const char *candidates[] = {f->given, x ? x->path : NULL};
    for (size_t i = 0; x && x->build_id && !x->sought && i < COUNT(candidates); i++) {
        if (candidates[i] && build_is_file(candidates[i], x->build_id)) {
            TRY(code_lines_open(candidates[i], x->build_id, &x->lines, e));
            break;
        }
    }
    if (x) {
        x->sought = x->build_id != NULL;
    }
    *n = x && x->lines ? code_lines_find(x->lines, address, frames) : 0;
    return PROFD_OK;
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
            TRY(files ? PROFD_OK : profd_no_memory(e));
            memset(files + f->file_count, 0, (more - f->file_count) * sizeof *files);
            f->files = files;
            f->file_count = more;
        }
        if (number >= f->file_count) {
            return profd_no_memory(e);
        }
        free(f->files[number]);
        f->files[number] = strdup(name);
        TRY(f->files[number] ? PROFD_OK : profd_no_memory(e));
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
        struct export_object *x = path && path[0] ? take_object(f, *number) : NULL;
        if (x && !x->path) {
            x->path = strdup(path);
        }
    }
    if (begins(line, BUILD_OF)) {
        const uint64_t number = strtoull(line + strlen(BUILD_OF), &end, 10);
        struct export_object *x = strncmp(end, "): ", 3) == 0 ? take_object(f, number) : NULL;
        if (x && !x->build_id) {
            x->build_id = strdup(end + 3);
        }
    }
    fprintf(f->out, "%s\n", strcmp(line, LINES_FUNCTION) == 0 ? LINES_DEBUG : line);
    return PROFD_OK;
}

enum profd_status export_lines_fill(const char *given, char *body, FILE *out, struct profd_error *e)
{
    struct costs f = {.given = given, .out = out, .own = "", .current = strdup("")};
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
    for (size_t i = 0; i < f.object_count; i++) {
        free(f.objects[i].path);
        free(f.objects[i].build_id);
        code_lines_close(f.objects[i].lines);
    }
    free(f.objects);
    free(f.files);
    free(f.current);
    return status;
}
