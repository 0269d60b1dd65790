#include "import/import_any_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sort.h"
#include "proto/limits.h"

/* Symbols and their names, demangled and with lines. */
#define BINARY_MEMORY ((size_t)LIMIT_WORKER_MEMORY_MAX)

/* One name of a function: raw or demangled. */
struct binary_name {
    const char *text;
    uint32_t symbol;
};

struct binary_names {
    const struct object *object;
    struct binary_name *list; /* in order of the names */
    const uint32_t *order;    /* of list, ascending by text */
    uint32_t count;
};

struct import_binary {
    struct profd_executable *executable;
    struct arena *arena;
    struct object *object;
    struct symtab *symtab;
    struct elf_load *loads;
    uint32_t load_count;
    struct binary_names names;
};

static int names_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct binary_name *list = context;
    return strcmp(list[a].text, list[b].text);
}

/* Sorts the names of the functions. NO_MEMORY. O(n log n). */
static enum profd_status names_make(struct arena *a, const struct object *o, struct binary_names *out,
                                    struct profd_error *e)
{
    size_t most = 2 * (size_t)o->symbol_count + 1;
    struct binary_name *list = ARENA_ARRAY(a, most, struct binary_name);
    uint32_t *order = ARENA_ARRAY(a, most * 2, uint32_t), n = 0;
    FAIL_IF(!list || !order, e, PROFD_NO_MEMORY, "no memory for the names of %u symbols", o->symbol_count);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (!symtab_is_function(o, s)) {
            continue;
        }
        list[n++] = (struct binary_name){object_name(o, s->name), i};
        if (s->demangled != s->name) {
            list[n++] = (struct binary_name){object_name(o, s->demangled), i};
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    sort_merge(order, order + most, n, names_compare, list);
    *out = (struct binary_names){o, list, order, n};
    return PROFD_OK;
}

/* Number of equal bytes at the end of two paths, if at least the file names are equal; 0 if they are different files.
 */
static size_t same_source(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), common = 0;
    if (strcmp(basename(a), basename(b)) != 0) {
        return 0;
    }
    while (common < n && common < m && a[n - common - 1] == b[m - common - 1]) {
        common++;
    }
    return common;
}

/* First place in the order with a name that is not below the n bytes of name. */
static uint32_t names_begin(const struct binary_names *names, const char *name, size_t n)
{
    uint32_t low;
    SORT_SEARCH(low, 0, names->count, strncmp(names->list[names->order[low]].text, name, n) < 0);
    return low;
}

/* Considers one more symbol of the same name. */
static void choose(struct import_function *best, bool *found, const struct object_symbol *s)
{
    if (*found && s->address != best->address) {
        best->ambiguous = true;
    }
    if (!*found || s->address < best->address || (s->address == best->address && s->size > best->size)) {
        best->address = s->address;
        best->size = s->size > 0 ? s->size : 1;
    }
    *found = true;
}

/* Finds a name of n bytes without any change. If several addresses have it, those of the source file are considered; if
 * several remain, the lowest address is used, and it is ambiguous. */
static bool names_find(const struct binary_names *names, const char *name, size_t n, const char *file,
                       struct import_function *out)
{
    struct import_function all = {.address = 0}, of_file = {.address = 0};
    bool found = false, found_file = false;
    size_t nearest = 0;
    for (uint32_t i = names_begin(names, name, n); i < names->count; i++) {
        const struct binary_name *known = &names->list[names->order[i]];
        if (strncmp(known->text, name, n) != 0 || known->text[n] != '\0') {
            break;
        }
        const struct object_symbol *s = &names->object->symbols[known->symbol];
        choose(&all, &found, s);
        size_t common = file && s->file != 0 ? same_source(object_name(names->object, s->file), file) : 0;
        if (common > nearest) { /* the symbols found before are of another directory */
            nearest = common;
            of_file = (struct import_function){.address = 0};
            found_file = false;
        }
        if (common > 0 && common == nearest) {
            choose(&of_file, &found_file, s);
        }
    }
    if (found) {
        *out = all.ambiguous && found_file ? of_file : all;
    }
    return found;
}

enum profd_status import_binary_open(const char *path, struct import_binary **out, struct profd_error *e)
{
    const struct elf_read_options options = {.demangle = true, .lines = true};
    struct import_binary *b = calloc(1, sizeof *b);
    if (!b || !(b->arena = arena_new(BINARY_MEMORY))) {
        free(b);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to read %s", path);
    }
    enum profd_status status = profd_executable_open(path, &b->executable, e);
    status = status ? status : executable_read_object(b->executable, &options, b->arena, &b->object, e);
    status = status ? status : executable_read_loads(b->executable, b->arena, &b->loads, &b->load_count, e);
    if (status == PROFD_OK) {
        const struct symtab_request request = {.object = b->object, .build_id = b->object->id.text};
        status = symtab_build(b->arena, &request, &b->symtab, e);
    }
    status = status ? status : names_make(b->arena, b->object, &b->names, e);
    if (status != PROFD_OK) {
        import_binary_free(b);
        return status;
    }
    *out = b;
    return PROFD_OK;
}

void import_binary_free(struct import_binary *b)
{
    if (b) {
        profd_executable_free(b->executable);
        arena_free(b->arena);
        free(b);
    }
}

const struct profd_executable *import_binary_executable(const struct import_binary *b)
{
    return b->executable;
}

void import_binary_span(const struct import_binary *b, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (uint32_t i = 0; i < b->object->range_count; i++) {
        const struct object_range *r = &b->object->ranges[i];
        *low = r->low < *low ? r->low : *low;
        *high = r->high > *high ? r->high : *high;
    }
}

bool import_binary_holds(const struct import_binary *b, uint64_t address)
{
    return object_holds(b->object, address);
}

uint64_t import_binary_entry(const struct import_binary *b, uint64_t address)
{
    const struct symtab_owner *owner = &b->symtab->owners[symtab_find(b->symtab, address)];
    return owner->kind == SYMTAB_FUNCTION ? owner->address : address;
}

bool import_binary_load(const struct import_binary *b, uint64_t offset, uint64_t *address)
{
    for (uint32_t i = 0; i < b->load_count; i++) {
        const struct elf_load *l = &b->loads[i];
        if (offset >= l->offset && offset - l->offset < l->size) {
            *address = l->address + (offset - l->offset);
            return true;
        }
    }
    return false;
}

static bool find_address(const struct import_binary *b, const char *text, struct import_function *out)
{
    char *end;
    unsigned long long address = strtoull(text + 2, &end, 16);
    if (end == text + 2 || *end != '\0' || !object_holds(b->object, address)) {
        return false;
    }
    *out = (struct import_function){.address = address, .size = 1};
    return true;
}

/* Exports of profd append the object or the source file, and the address, to names that are not unique: "f (libx.so)",
 * "f (a.c) [0x1234]". */
static bool find_own(const struct import_binary *b, const char *name, size_t n, const char *file,
                     struct import_function *out)
{
    const char *base = basename(profd_executable_path(b->executable));
    char text[32];
    const char *bracket = n > 4 && name[n - 1] == ']' ? strrchr(name, '[') : NULL;
    if (bracket && strncmp(bracket, "[0x", 3) == 0 && (size_t)(name + n - bracket) < sizeof text) {
        memcpy(text, bracket + 1, (size_t)(name + n - bracket) - 2);
        text[(size_t)(name + n - bracket) - 2] = '\0';
        return find_address(b, text, out);
    }
    const char *const behind[] = {base, file ? basename(file) : base};
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(behind[i]);
        if (n > size + 3 && name[n - 1] == ')' && strncmp(name + n - 1 - size, behind[i], size) == 0 &&
            strncmp(name + n - 3 - size, " (", 2) == 0) {
            return names_find(&b->names, name, n - 3 - size, file, out);
        }
    }
    return false;
}

bool import_binary_find(const struct import_binary *b, const char *name, const char *file, struct import_function *out)
{
    static const char *const below[] = {"_start", "__libc_start_main", "__libc_start_call_main"};
    if (name[0] == '[') {
        /* Code of this kind: "[plt]", or code that no symbol owns. */
        for (uint32_t i = 0; i < b->symtab->span_count; i++) {
            const struct symtab_owner *owner = &b->symtab->owners[b->symtab->span_owner[i]];
            const char *called = owner->kind == SYMTAB_PLT ? "[plt]" : owner->kind == SYMTAB_GAP ? "[gap]" : "";
            if (strcmp(called, name) == 0 && object_holds(b->object, b->symtab->span_low[i])) {
                *out = (struct import_function){.address = b->symtab->span_low[i], .size = 1};
                return true;
            }
        }
        return false;
    }
    if (strncmp(name, "0x", 2) == 0) {
        return find_address(b, name, out);
    }
    if (strcmp(name, "(below main)") == 0) {
        for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
            if (names_find(&b->names, below[i], strlen(below[i]), NULL, out)) {
                return true;
            }
        }
        return false;
    }
    size_t n = strlen(name), cut;
    if (names_find(&b->names, name, n, file, out) || find_own(b, name, n, file, out)) {
        return true;
    }
    if (n > 4 && strcmp(name + n - 4, "@plt") == 0) { /* address of the slot, not of the function that it calls */
        return false;
    }
    cut = strcspn(name, "@");
    if (cut < n && names_find(&b->names, name, cut, file, out)) {
        return true;
    }
    cut = strcspn(name, "'");
    return cut < n && names_find(&b->names, name, cut, file, out);
}

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
    FAIL_IF(!LIST_GROW(s->list, s->count, s->capacity), e, PROFD_NO_MEMORY, "no memory for %zu executables",
            s->count + 1);
    struct import_binary *binary;
    TRY(import_binary_open(path, &binary, e));
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
    const char *base = basename(executable);
    for (uint32_t i = 0; i < p->object_count; i++) {
        if (strcmp(basename(p->objects[i].path), base) == 0) {
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
        bool same = strcmp(basename(path), basename(o->path)) == 0;
        if (!o->build_id && !same && (!is_program || p->process[0] != '\0' || names_another(p, path))) {
            continue;
        }
        const struct import_binary *b;
        TRY(shelf_open(s, path, &b, e));
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

enum profd_status import_shelf_find(struct import_shelf *s, const struct import_profile *p,
                                    const struct import_object *o, bool is_program, const struct import_binary **out,
                                    struct profd_error *e)
{
    char path[PATH_MAX];
    const struct import_binary *b = NULL;
    TRY(find_given(s, p, o, is_program, &b, e));
    if (b) {
        *out = b;
        return PROFD_OK;
    }
    const int n = snprintf(path, sizeof path, "%s%s%s", s->root ? s->root : "",
                           s->root && s->root[0] && o->path[0] != '/' ? "/" : "", o->path);
    FAIL_IF(n < 0 || (size_t)n >= sizeof path, e, PROFD_NO_INPUT, "the path of an object has %d bytes; the limit is %d",
            n, PATH_MAX - 1);
    TRY(shelf_open(s, path, &b, e));
    FAIL_IF(o->build_id && !has_id(b, o->build_id), e, PROFD_WRONG_BUILD,
            "%s is now build %.12s; the profile is of build %.12s", path,
            profd_executable_build_id(import_binary_executable(b)), o->build_id);
    FAIL_IF(!o->build_id && p->end > 0 && executable_time(import_binary_executable(b)) > p->end, e, PROFD_WRONG_BUILD,
            "%s is newer than the profile, so it is not the file that ran; name that file with -e", path);
    *out = b;
    return PROFD_OK;
}
