#include "core/names.h"

#include <stddef.h>
#include <string.h>

size_t clone_base(const char *raw)
{
    static const char *const SUFFIXES[] = {".isra", ".part", ".constprop", ".cold", ".lto_priv", ".llvm"};
    for (const char *dot = strchr(raw, '.'); dot != NULL && dot > raw; dot = strchr(dot + 1, '.')) {
        for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
            size_t n = strlen(SUFFIXES[i]);
            if (strncmp(dot, SUFFIXES[i], n) == 0 && (dot[n] == '.' || dot[n] == '\0')) {
                return (size_t)(dot - raw);
            }
        }
    }
    return strlen(raw);
}

static bool runtime_has(const char *const *names, size_t n, const char *name)
{
    size_t length = strcspn(name, "@");
    for (size_t i = 0; i < n; i++) {
        if (strncmp(names[i], name, length) == 0 && names[i][length] == '\0') {
            return true;
        }
    }
    return false;
}

bool runtime_is_counter(const char *name)
{
    static const char *const names[] = {
        "mcount",
        "_mcount",
        "__mcount",
        "__fentry__",
        "__gnu_mcount_nc",
        "__cyg_profile_func_enter",
        "__cyg_profile_func_exit",
    };
    return (name[0] == '_' || name[0] == 'm') && runtime_has(names, sizeof names / sizeof names[0], name);
}

bool runtime_is_startup(const char *name)
{
    static const char *const names[] = {
        "_start",
        "_init",
        "_fini",
        "frame_dummy",
        "register_tm_clones",
        "deregister_tm_clones",
        "__do_global_dtors_aux",
        "__do_global_ctors_aux",
        "__libc_start_main",
        "__libc_csu_init",
        "__libc_csu_fini",
        "__gmon_start__",
        "__monstartup",
        "_mcleanup",
        "__cxa_finalize",
        "_dl_relocate_static_pie",
        "call_weak_fn",
        "_ITM_registerTMCloneTable",
        "_ITM_deregisterTMCloneTable",
    };
    return strchr("_frdc", name[0]) != NULL && runtime_has(names, sizeof names / sizeof names[0], name);
}

/* How many bytes of a suffix stand in front of its digits. p is a dot. */
static unsigned suffix_start(const char *p)
{
    static const char *const marks[] = {".clone.", ".constprop."};
    for (unsigned i = 0; i < 2; i++) {
        size_t n = strlen(marks[i]);
        /* The bare mark at the end of a name does not count as one. */
        if (strncmp(p, marks[i], n) == 0 && p[n] != '\0') {
            return (unsigned)n;
        }
    }
    return 1;
}

void local_names_judge(const char *strings, size_t size, uint8_t *bits)
{
    bool listed = true; /* the answer for what begins at p + 1, if that is not in a suffix */
    /* Bit k: the answer for what begins at p + 1 + k, if the digits of a suffix are to begin there. */
    uint32_t digits = 1;
    memset(bits, 0, LOCAL_NAMES_BYTES(size));
    for (size_t i = size; i-- > 0;) {
        const char *p = &strings[i];
        bool digit = false;
        if (*p == '\0') {
            digit = listed;
            listed = true;
        } else if (*p >= '0' && *p <= '9') {
            digit = p[1] == '.' ? listed : (digits & 1) != 0;
        } else if (*p == '.') {
            listed = (digits >> (suffix_start(p) - 1) & 1) != 0;
        } else if (*p == '$') {
            listed = false;
        }
        digits = digits << 1 | digit;
        bits[i / 8] = (uint8_t)(bits[i / 8] | (unsigned)listed << i % 8);
    }
}

bool local_names_listed(const char *strings, size_t offset, const uint8_t *bits)
{
    const char *name = strings + offset;
    if (name[0] == '\0' || strncmp(name, "__gnu_compiled", 14) == 0 || strncmp(name, "___gnu_compiled", 15) == 0) {
        return false;
    }
    return (bits[offset / 8] >> offset % 8 & 1) != 0;
}
