#include "elf/elf_demangle.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elf_rust.h"

/* of libstdc++, from <cxxabi.h>, which is C++ */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* The demangler's buffer, which it reallocates; the copy without prefix and suffix; and the result. */
struct demangler {
    char *buffer;
    size_t length;
    struct buffer core, whole;
    bool cxx, rust;
};

static bool is_mangled(const char *n)
{
    if (n[0] == '_' && n[1] == 'Z') {
        return true;
    }
    return strncmp(n, "_GLOBAL_", 8) == 0 && n[8] != '\0' && strchr("._$", n[8]) != NULL &&
           (n[9] == 'D' || n[9] == 'I') && n[10] == '_';
}

/* Appends the demangled form of the bare name; false if there is none. */
static bool demangle_core(struct demangler *d)
{
    const char *core = d->core.data;
    if (d->rust && elf_rust_demangle(core, &d->whole)) {
        return true;
    }
    if (!d->cxx || !is_mangled(core)) {
        return false;
    }
    int status = 0;
    char *text = __cxa_demangle(core, d->buffer, &d->length, &status);
    if (text == NULL || status != 0) {
        return false;
    }
    d->buffer = text;
    buffer_add_text(&d->whole, text);
    return true;
}

/* Demangles a name. False if the name is unchanged. */
static bool demangle_one(struct demangler *d, const char *name)
{
    size_t prefix = strspn(name, ".$");
    const char *mangled = name + prefix;
    if (mangled[0] != '_') {
        return false;
    }
    size_t core = strcspn(mangled, "@");
    d->core.size = d->whole.size = 0;
    buffer_add(&d->core, mangled, core);
    buffer_add_char(&d->core, '\0');
    buffer_add(&d->whole, name, prefix);
    if (d->core.failed || !demangle_core(d)) {
        return false;
    }
    buffer_add_text(&d->whole, mangled + core);
    return !d->whole.failed;
}

/* Returns the offset of the demangled form of the name at an offset; that offset if there is none. */
static uint32_t demangle_name(struct demangler *d, struct elf_build *b, uint32_t name)
{
    d->core.failed = d->whole.failed = false; /* a name that is too long does not affect the next one */
    if (!demangle_one(d, b->names.data + name)) {
        return name;
    }
    uint32_t demangled = elf_build_name(b, d->whole.data, d->whole.size);
    return demangled != 0 ? demangled : name;
}

void elf_demangle_all(struct elf_build *b, bool cxx, bool rust)
{
    struct demangler d = {.cxx = cxx, .rust = rust};
    buffer_init(&d.core, b->name_limit);
    buffer_init(&d.whole, b->name_limit);
    struct object *o = b->object;
    for (uint32_t i = 0; i < o->symbol_count && !b->names.failed; i++) {
        struct object_symbol *s = &o->symbols[i];
        s->demangled = demangle_name(&d, b, s->name);
    }
    for (uint32_t i = 0; i < o->line_function_count && !b->names.failed; i++) {
        struct object_line_function *f = &o->line_functions[i];
        f->demangled = demangle_name(&d, b, f->name);
    }
    free(d.buffer);
    buffer_done(&d.core);
    buffer_done(&d.whole);
}
