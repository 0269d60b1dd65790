#include "core/clone_names.h"

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
