#include "elf/elf_demangle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

/* libstdc++'s, from <cxxabi.h>, which is C++. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* The demangler's buffer, which it reallocates, and the work copy without prefix and suffix. */
struct demangler {
    char *buffer;
    size_t length;
    char core[LIMIT_SYMBOL_NAME + 1];
    char whole[2 * LIMIT_SYMBOL_NAME + 1];
};

static bool is_mangled(const char *n)
{
    if (n[0] == '_' && n[1] == 'Z')
        return true;
    return strncmp(n, "_GLOBAL_", 8) == 0 && n[8] != '\0' && strchr("._$", n[8]) != NULL &&
           (n[9] == 'D' || n[9] == 'I') && n[10] == '_';
}

/* Length of d->whole, or 0 if the name stays as it is. */
static size_t demangle_one(struct demangler *d, const char *name)
{
    size_t prefix = strspn(name, ".$");
    const char *mangled = name + prefix;
    if (!is_mangled(mangled))
        return 0;
    size_t core = strcspn(mangled, "@"), suffix = strlen(mangled + core);
    if (prefix + core + suffix >= LIMIT_SYMBOL_NAME)
        return 0;
    memcpy(d->core, mangled, core);
    d->core[core] = '\0';
    int status = 0;
    char *text = __cxa_demangle(d->core, d->buffer, &d->length, &status);
    if (text == NULL || status != 0)
        return 0;
    d->buffer = text;
    size_t n = strlen(text);
    if (prefix + n + suffix > LIMIT_SYMBOL_NAME)
        return 0;
    memcpy(d->whole, name, prefix);
    memcpy(d->whole + prefix, text, n);
    memcpy(d->whole + prefix + n, mangled + core, suffix);
    return prefix + n + suffix;
}

void elf_demangle_all(struct elf_build *b)
{
    struct demangler *d = calloc(1, sizeof *d);
    if (d == NULL) {
        elf_build_note(b, "Names are not demangled: out of memory.");
        return;
    }
    struct object *o = b->object;
    for (uint32_t i = 0; i < o->symbol_count && !b->names.failed; i++) {
        struct object_symbol *s = &o->symbols[i];
        size_t n = demangle_one(d, b->names.data + s->name);
        if (n == 0)
            continue;
        uint32_t demangled = elf_build_name(b, d->whole, n);
        if (demangled != 0)
            s->demangled = demangled;
    }
    free(d->buffer);
    free(d);
}
