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
    const char *path, *build_id; /* NULL: not stated */
    struct code_lines *lines;
    bool sought;
};

struct costs {
    struct arena *arena;
    const char *given; /* a file that the user named: it may be one of them */
    struct export_object *objects;
    uint32_t object_count, object_capacity, file_count, file_capacity;
    FILE *out;
    uint64_t object, called_object;
    const char **files;              /* by number, as written; NULL: not defined */
    char *held_file, *held_function; /* "fl=" and "fn=" that wait for the function's address */
    const char *own, *current;       /* file of the function, and the one that holds for cost lines */
};

/* The object of this number; NULL from OBJECTS_MOST on. */
static struct export_object *take_object(struct costs *f, uint64_t number)
{
    if (number >= OBJECTS_MOST) {
        return NULL;
    }
    while (f->object_count <= number) {
        (void)ARENA_EXTEND(f->arena, f->objects, f->object_count, f->object_capacity);
        f->objects[f->object_count++] = (struct export_object){.path = NULL};
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

/* Writes the held lines. file is the file of the function, as debug information has it; "" if unknown. */
static void release(struct costs *f, const char *file)
{
    uint64_t number = 0;
    if (!f->held_file) {
        return;
    }
    const char *text = parse_name(f->held_file, &number);
    if (text && text[0] != '\0') {
        const char *name = file[0] ? file : text;
        if (number >= UINT32_MAX) {
            (void)arena_fail(f->arena);
        }
        while (f->file_count <= number) {
            (void)ARENA_EXTEND(f->arena, f->files, f->file_count, f->file_capacity);
            f->files[f->file_count++] = NULL;
        }
        f->files[number] = name;
        fprintf(f->out, "%.*s%s\n", (int)(text - f->held_file), f->held_file, name);
    } else {
        fprintf(f->out, "%s\n", f->held_file);
    }
    if (f->held_function) {
        fprintf(f->out, "%s\n", f->held_function);
    }
    if (f->held_file[0] == 'f') {
        f->own = f->current = text && number < f->file_count && f->files[number] ? f->files[number] : "";
    }
    f->held_file = f->held_function = NULL;
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
        release(f, n > 0 ? frames[n - 1].file : "");
        if (n == 0 || frames[0].line == 0 || !frames[0].file[0]) {
            fprintf(f->out, "%s\n", line);
            return PROFD_OK;
        }
        if (strcmp(frames[0].file, f->current) != 0) {
            f->current = frames[0].file;
            fprintf(f->out, "%s=%s\n", strcmp(frames[0].file, f->own) == 0 ? "fe" : "fi", frames[0].file);
        }
        fprintf(f->out, "0x%" PRIx64 " %u%s\n", address, frames[0].line, cost);
        return PROFD_OK;
    }
    if (begins(line, "calls=")) { /* "calls=COUNT 0xADDRESS LINE" */
        const char *target = strchr(line, ' ');
        const uint64_t address = target ? strtoull(target, NULL, 16) : 0;
        TRY(find_frames(f, f->called_object, address, frames, &n, e));
        release(f, n > 0 ? frames[n - 1].file : "");
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
    release(f, "");
    if (begins(line, "fl=") || begins(line, "cfi=")) {
        f->held_file = line;
        return PROFD_OK;
    }
    if (begins(line, "ob=") || begins(line, "cob=")) {
        uint64_t *number = line[0] == 'o' ? &f->object : &f->called_object;
        const char *path = parse_name(line, number);
        struct export_object *x = path && path[0] ? take_object(f, *number) : NULL;
        if (x && !x->path) {
            x->path = path;
        }
    }
    if (begins(line, BUILD_OF)) {
        const uint64_t number = strtoull(line + strlen(BUILD_OF), &end, 10);
        struct export_object *x = strncmp(end, "): ", 3) == 0 ? take_object(f, number) : NULL;
        if (x && !x->build_id) {
            x->build_id = end + 3;
        }
    }
    fprintf(f->out, "%s\n", strcmp(line, LINES_FUNCTION) == 0 ? LINES_DEBUG : line);
    return PROFD_OK;
}

enum profd_status export_lines_fill(struct arena *a, const char *given, char *body, FILE *out, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct costs f = {.arena = a, .given = given, .out = out, .own = "", .current = ""};
    enum profd_status status = PROFD_OK;
    for (char *line = body, *next; status == PROFD_OK && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) {
            *next++ = '\0';
        }
        status = take_line(&f, line, e);
    }
    release(&f, "");
    for (size_t i = 0; i < f.object_count; i++) {
        code_lines_close(f.objects[i].lines);
    }
    return status;
}
