/* Lines of a callgrind.out that profd wrote. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/export_formats.h"

#define BUILD_OF "desc: Build of ("
#define LINES_FUNCTION "desc: Lines: the first of each function"
#define LINES_DEBUG                                                                                                    \
    "desc: Lines: of each address, from debug information where there is any, else the first of each function"

struct filling {
    struct export_objects *objects;
    FILE *out;
    uint64_t object, called_object;
    char **files; /* by number, as written; NULL: not defined */
    size_t file_count;
    char *held_file, *held_function; /* "fl=" and "fn=" that wait for the function's address */
    const char *own;                 /* file of the function, and the one that holds for cost lines */
    char *current;
};

static enum profd_status find_frames(struct filling *f, uint64_t object, uint64_t address,
                                     struct code_frame frames[CODE_LINES_DEPTH], size_t *n, struct profd_error *e)
{
    struct code_lines *lines;
    enum profd_status status = export_objects_find(f->objects, object, &lines, e);
    *n = status == PROFD_OK && lines ? code_lines_find(lines, address, frames) : 0;
    return status;
}

/* "KEY=(NUMBER)" or "KEY=(NUMBER) TEXT". NULL: other text. */
static char *parse_name(char *line, uint64_t *number)
{
    char *at = strchr(line, '='), *end;
    if (!at || at[1] != '(') {
        return NULL;
    }
    *number = strtoull(at + 2, &end, 10);
    return *end == ')' ? end + 1 + (end[1] == ' ') : NULL;
}

static bool define_file(struct filling *f, uint64_t number, const char *text)
{
    if (number >= UINT32_MAX) {
        return false;
    }
    if (number >= f->file_count) {
        size_t more = number + number / 2 + 64;
        char **files = reallocarray(f->files, more, sizeof *files);
        if (!files) {
            return false;
        }
        memset(files + f->file_count, 0, (more - f->file_count) * sizeof *files);
        f->files = files;
        f->file_count = more;
    }
    free(f->files[number]);
    f->files[number] = strdup(text);
    return f->files[number] != NULL;
}

/* Writes the held lines. file: that of the function, as debug information has it; "" if unknown. */
static bool release(struct filling *f, const char *file)
{
    uint64_t number = 0;
    bool done = true;
    if (!f->held_file) {
        return true;
    }
    char *text = parse_name(f->held_file, &number);
    const bool own = f->held_file[0] == 'f';
    if (text && text[0] != '\0') {
        const char *name = file[0] ? file : text;
        done = define_file(f, number, name);
        fprintf(f->out, "%.*s%s\n", (int)(text - f->held_file), f->held_file, name);
    } else {
        fprintf(f->out, "%s\n", f->held_file);
    }
    if (f->held_function) {
        fprintf(f->out, "%s\n", f->held_function);
    }
    if (own) {
        free(f->current);
        f->own = text && number < f->file_count && f->files[number] ? f->files[number] : "";
        f->current = strdup(f->own);
        done = done && f->current;
    }
    f->held_file = f->held_function = NULL;
    return done;
}

/* "0xADDRESS LINE COST" */
static enum profd_status take_cost(struct filling *f, char *line, struct profd_error *e)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    size_t n = 0;
    char *end;
    const uint64_t address = strtoull(line, &end, 16);
    char *cost = *end == ' ' ? strchr(end + 1, ' ') : NULL;
    TRY(cost ? find_frames(f, f->object, address, frames, &n, e)
             : profd_error_set(e, PROFD_MALFORMED, "\"%.60s\" is no cost line", line));
    if (!release(f, n > 0 ? frames[n - 1].file : "")) {
        return profd_no_memory(e);
    }
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

/* "calls=COUNT 0xADDRESS LINE" */
static enum profd_status take_calls(struct filling *f, char *line, struct profd_error *e)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    size_t n = 0;
    char *target = strchr(line, ' ');
    const uint64_t address = target ? strtoull(target, NULL, 16) : 0;
    TRY(find_frames(f, f->called_object, address, frames, &n, e));
    if (!release(f, n > 0 ? frames[n - 1].file : "")) {
        return profd_no_memory(e);
    }
    if (n > 0 && frames[n - 1].line > 0) {
        fprintf(f->out, "%.*s 0x%" PRIx64 " %u\n", (int)(target - line), line, address, frames[n - 1].line);
    } else {
        fprintf(f->out, "%s\n", line);
    }
    return PROFD_OK;
}

static enum profd_status take_object(struct filling *f, char *line, uint64_t *number, struct profd_error *e)
{
    char *path = parse_name(line, number);
    struct export_object *x = path && path[0] ? export_objects_take(f->objects, *number) : NULL;
    if (!release(f, "")) {
        return profd_no_memory(e);
    }
    if (x && !x->path) {
        x->path = strdup(path);
    }
    fprintf(f->out, "%s\n", line);
    return PROFD_OK;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static enum profd_status take_line(struct filling *f, char *line, struct profd_error *e)
{
    if (begins(line, "0x")) {
        return take_cost(f, line, e);
    }
    if (begins(line, "calls=")) {
        return take_calls(f, line, e);
    }
    if (begins(line, "ob=") || begins(line, "cob=")) {
        return take_object(f, line, line[0] == 'o' ? &f->object : &f->called_object, e);
    }
    if ((begins(line, "fn=") || begins(line, "cfn=")) && f->held_file) {
        f->held_function = line;
        return PROFD_OK;
    }
    if (!release(f, "")) {
        return profd_no_memory(e);
    }
    if (begins(line, "fl=") || begins(line, "cfi=")) {
        f->held_file = line;
        return PROFD_OK;
    }
    if (begins(line, BUILD_OF)) {
        char *end;
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
    struct filling f = {.objects = o, .out = out, .own = "", .current = strdup("")};
    enum profd_status status = f.current ? PROFD_OK : profd_no_memory(e);
    for (char *line = body, *next; status == PROFD_OK && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) {
            *next++ = '\0';
        }
        status = take_line(&f, line, e);
    }
    if (status == PROFD_OK && !release(&f, "")) {
        status = profd_no_memory(e);
    }
    for (size_t i = 0; i < f.file_count; i++) {
        free(f.files[i]);
    }
    free(f.files);
    free(f.current);
    return status;
}
