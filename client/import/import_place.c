#include "import/import_place_internal.h"

#include <string.h>

#include "proto/limits.h"

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to place a profile");
}

static bool called_like(const char *path, const char *program)
{
    const char *base = import_shelf_base(path);
    return program[0] != '\0' && strcmp(base, import_shelf_base(program)) == 0;
}

uint32_t import_place_program(const struct import_profile *p)
{
    static const char *const first[] = {"main", "_start", "(below main)"};
    uint32_t best = IMPORT_NONE;
    int score = 0;
    if (p->program_object != IMPORT_NONE) {
        return p->program_object;
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        const struct import_object *o = &p->objects[i];
        bool library = strstr(import_shelf_base(o->path), ".so") != NULL;
        int points = o->outside ? 0 : called_like(o->path, p->program) ? 100 : library ? 1 : 50;
        if (points > score) {
            best = i;
            score = points;
        }
    }
    for (uint32_t i = 0; i < p->frame_count && score <= 50; i++) { /* of several programs (plug-ins) the first one */
        const struct import_frame *f = &p->frames[i];
        if (f->object == IMPORT_NONE || !f->name || p->objects[f->object].outside ||
            strstr(import_shelf_base(p->objects[f->object].path), ".so")) {
            continue;
        }
        for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) {
            if (strcmp(f->name, first[k]) == 0) {
                return f->object;
            }
        }
    }
    return best;
}

static void complain(const struct import_notes *notes, const char *sentence)
{
    if (notes->say) {
        notes->say(notes->context, sentence);
    }
}

/* Finds or adds a build: several objects of a profile may be parts of one build. */
static enum profd_status add_build(struct place *w, const char *id, const char *name, const struct place_span *span,
                                   uint32_t *build, struct profd_error *e)
{
    for (uint32_t i = 0; i < w->build_count; i++) {
        if (strcmp(profd_upload_build_id(w->upload, i), id) == 0) {
            w->spans[i].low = span->low < w->spans[i].low ? span->low : w->spans[i].low;
            w->spans[i].high = span->high > w->spans[i].high ? span->high : w->spans[i].high;
            *build = i;
            return PROFD_OK;
        }
    }
    enum profd_status status = profd_upload_add_build(w->upload, id, name, build, e);
    if (status == PROFD_OK) {
        w->spans[*build] = *span;
        w->build_count++;
    }
    return status;
}

/* Assigns a build to an object; outside if there is none. */
static enum profd_status place_object(struct place *w, struct import_shelf *shelf, uint32_t index, bool is_program,
                                      bool strict, struct profd_error *e)
{
    const struct import_object *o = &w->profile->objects[index];
    struct import_object sought = *o;
    struct place_object *k = &w->objects[index];
    struct profd_error why = {""};
    if (is_program && !sought.build_id) {
        sought.build_id = w->profile->program_id;
    }
    k->build = PROFD_NOWHERE;
    if (o->outside) {
        return PROFD_OK;
    }
    enum profd_status status = import_shelf_find(shelf, w->profile, &sought, is_program, &k->binary, &why);
    if (status == PROFD_NO_MEMORY) {
        return profd_error_set(e, status, "%s", why.sentence);
    }
    if (status == PROFD_OK) {
        const struct profd_executable *x = import_binary_executable(k->binary);
        struct place_span span;
        import_binary_span(k->binary, &span.low, &span.high);
        return add_build(w, profd_executable_build_id(x), o->path[0] == '/' ? o->path : profd_executable_path(x), &span,
                         &k->build, e);
    }
    if (sought.build_id && o->addressing != IMPORT_MOVED) { /* names may come later */
        const struct place_span span = {o->low, o->high > o->low ? o->high : o->low + 1};
        return add_build(w, sought.build_id, o->path, &span, &k->build, e);
    }
    if (is_program || strict) {
        return profd_error_set(
            e, status, "%s: %s",
            is_program ? "the file of the program is required; name it with -e EXE or --root DIR"
                       : "mapping without a build-id: its file is required; name its directory with --root DIR",
            why.sentence);
    }
    struct profd_error said;
    (void)profd_error_set(&said, status, "%s: its counts are stored as outside", why.sentence);
    complain(w->notes, said.sentence);
    return PROFD_OK;
}

/* A file that has only names which every program has is not the file that ran. */
static enum profd_status program_judge(const struct place *w, uint32_t program, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    const struct place_object *k = &w->objects[program];
    bool certain = p->objects[program].build_id || p->program_id; /* the file has it, or there is none */
    if (k->frames == 0 || (certain ? k->placed > 0 : k->placed >= k->frames - k->frames / 2)) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_WRONG_BUILD,
                           "only %u of the %u functions and locations of %s are in %s, so it is not the file that ran",
                           k->placed, k->frames, import_shelf_base(p->objects[program].path),
                           k->binary ? profd_executable_path(import_binary_executable(k->binary)) : "that file");
}

static enum profd_status place_objects(struct place *w, struct import_shelf *shelf, bool strict, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    uint32_t program = import_place_program(p);
    if (program == IMPORT_NONE) {
        return profd_error_set(e, PROFD_REFUSED,
                               "no tick or call is in a known build: all are in the kernel or in generated code");
    }
    for (uint32_t i = 0; i < p->frame_count; i++) {
        if (p->frames[i].object != IMPORT_NONE) {
            w->objects[p->frames[i].object].used = true;
        }
    }
    enum profd_status status = place_object(w, shelf, program, true, strict, e);
    for (uint32_t i = 0; i < p->object_count && status == PROFD_OK; i++) {
        if (i != program && w->objects[i].used) {
            status = place_object(w, shelf, i, false, strict, e);
        }
    }
    if (status == PROFD_OK) {
        status = place_frames_find(w, e);
    }
    return status == PROFD_OK ? program_judge(w, program, e) : status;
}

static enum profd_status place_run(struct place *w, struct import_shelf *shelf, bool strict, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    w->objects = ARENA_ARRAY(w->arena, (size_t)p->object_count + 1, struct place_object);
    w->frames = ARENA_ARRAY(w->arena, (size_t)p->frame_count + 1, struct place_frame);
    w->spans = ARENA_ARRAY(w->arena, LIMIT_BUILDS, struct place_span);
    if (!w->objects || !w->frames || !w->spans) {
        return no_memory(e);
    }
    enum profd_status status = profd_upload_new(&w->upload, e);
    if (status == PROFD_OK) {
        status = place_objects(w, shelf, strict, e);
    }
    if (status == PROFD_OK) {
        status = place_counts_add(w, e);
    }
    return status;
}

enum profd_status import_place_profile(struct import_shelf *shelf, const struct import_profile *p, bool strict,
                                       struct import_notes *notes, struct profd_upload **out, struct profd_error *e)
{
    struct place w = {.profile = p, .notes = notes, .arena = arena_new(0)};
    if (!w.arena) {
        return no_memory(e);
    }
    enum profd_status status = place_run(&w, shelf, strict, e);
    if (status == PROFD_OK) {
        profd_upload_set_inexact(w.upload, (p->sampled ? (uint32_t)PROFD_INEXACT_SAMPLED : 0) |
                                               (w.saturated ? (uint32_t)PROFD_INEXACT_SATURATED : 0) |
                                               (w.outside ? (uint32_t)PROFD_INEXACT_TICKS_OUTSIDE : 0) | p->reasons |
                                               (w.lost || (p->lossy && !p->own) ? (uint32_t)PROFD_INEXACT_LOST : 0));
        profd_upload_set_window(w.upload, p->start, p->end);
        profd_upload_set_processes_started(w.upload, p->processes);
        *out = w.upload;
    } else {
        profd_upload_free(w.upload);
        if (p->process[0] != '\0') {
            (void)profd_error_wrap(e, status, "%s", p->process);
        }
    }
    arena_free(w.arena);
    return status;
}
