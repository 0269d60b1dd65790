#include "import/import_shelf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct import_shelved {
    char *path;
    struct import_binary *binary;
};

void import_shelf_done(struct import_shelf *s)
{
    for (size_t i = 0; i < s->count; i++) {
        import_binary_free(s->list[i].binary);
        free(s->list[i].path);
    }
    free(s->list);
    s->list = NULL;
    s->count = s->capacity = 0;
}

const char *import_shelf_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Opens a file, or returns it if it was opened before. */
static enum profd_status shelf_open(struct import_shelf *s, const char *path, const struct import_binary **out,
                                    struct profd_error *e)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->list[i].path, path) == 0) {
            *out = s->list[i].binary;
            return PROFD_OK;
        }
    }
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 16;
        struct import_shelved *list = realloc(s->list, capacity * sizeof *list);
        if (!list) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu executables", capacity);
        }
        s->list = list;
        s->capacity = capacity;
    }
    struct import_binary *binary;
    enum profd_status status = import_binary_open(path, &binary, e);
    if (status != PROFD_OK) {
        return status;
    }
    char *copy = strdup(path);
    if (!copy) {
        import_binary_free(binary);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s", path);
    }
    s->list[s->count++] = (struct import_shelved){copy, binary};
    if (s->found) {
        s->found(s->context, import_binary_executable(binary));
    }
    *out = binary;
    return PROFD_OK;
}

static bool names_another(const struct import_profile *p, const char *executable)
{
    const char *base = import_shelf_base(executable);
    for (uint32_t i = 0; i < p->object_count; i++) {
        if (strcmp(import_shelf_base(p->objects[i].path), base) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_id(const struct import_binary *b, const char *id)
{
    return strcmp(profd_executable_build_id(import_binary_executable(b)), id) == 0;
}

/* Searches the given executables. *out is unchanged if none matches. */
static enum profd_status find_given(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e)
{
    const struct import_binary *found = NULL;
    for (size_t i = 0; i < s->executable_count; i++) {
        const char *path = s->executables[i];
        bool same = strcmp(import_shelf_base(path), import_shelf_base(o->path)) == 0;
        if (!o->build_id && !same && (!is_program || p->process[0] != '\0' || names_another(p, path))) {
            continue;
        }
        const struct import_binary *b;
        enum profd_status status = shelf_open(s, path, &b, e);
        if (status != PROFD_OK) {
            return status;
        }
        if (!o->build_id || has_id(b, o->build_id)) {
            found = !found || same || o->build_id ? b : found;
        } else if (same) {
            return profd_error_set(e, PROFD_WRONG_BUILD, "%s is build %.12s; the profile is of build %.12s", path,
                                   profd_executable_build_id(import_binary_executable(b)), o->build_id);
        }
    }
    *out = found ? found : *out;
    return PROFD_OK;
}

static enum profd_status find_at_path(struct import_shelf *s, const struct import_profile *p,
                                      const struct import_object *o, const struct import_binary **out,
                                      struct profd_error *e)
{
    char path[PATH_MAX];
    const struct import_binary *b;
    int n = snprintf(path, sizeof path, "%s%s%s", s->root ? s->root : "",
                     s->root && s->root[0] && o->path[0] != '/' ? "/" : "", o->path);
    if (n < 0 || (size_t)n >= sizeof path) {
        return profd_error_set(e, PROFD_NO_INPUT, "the path of an object has %d bytes; the limit is %d", n,
                               PATH_MAX - 1);
    }
    enum profd_status status = shelf_open(s, path, &b, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (o->build_id && !has_id(b, o->build_id)) {
        return profd_error_set(e, PROFD_WRONG_BUILD, "%s is now build %.12s; the profile is of build %.12s", path,
                               profd_executable_build_id(import_binary_executable(b)), o->build_id);
    }
    if (!o->build_id && p->end > 0 && executable_time(import_binary_executable(b)) > p->end) {
        return profd_error_set(e, PROFD_WRONG_BUILD,
                               "%s is newer than the profile, so it is not the file that ran; name that file with -e",
                               path);
    }
    *out = b;
    return PROFD_OK;
}

enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e)
{
    const struct import_binary *found = NULL;
    enum profd_status status = find_given(s, p, o, is_program, &found, e);
    if (status == PROFD_OK && !found) {
        status = find_at_path(s, p, o, &found, e);
    }
    if (status == PROFD_OK) {
        *out = found;
    }
    return status;
}
