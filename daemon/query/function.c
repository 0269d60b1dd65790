#include "query/function.h"

#include <inttypes.h>
#include <string.h>

#include "proto/http_text.h"

bool function_parse_address(const char *text, uint64_t *out)
{
    const char *at = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t n = strspn(at, "0123456789abcdefABCDEF");
    uint64_t value = 0;
    if (n == 0 || n > 16 || at[n] != '\0') {
        return false;
    }
    for (; *at != '\0'; at++) {
        value = value << 4 | (unsigned)http_hex_value(*at);
    }
    *out = value;
    return true;
}

bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address)
{
    return f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
           (f->address == address || (address > f->address && address - f->address < f->size));
}

enum profd_status function_find(const struct report *r, const char *id, const char *text, uint32_t *out,
                                struct profd_error *e)
{
    uint64_t address = 0;
    const bool is_address = function_parse_address(text, &address);
    uint32_t named = 0;
    for (uint32_t i = 0; is_address && i < r->function_count; i++) {
        if (function_holds(r, &r->functions[i], id, address)) {
            *out = i;
            return PROFD_OK;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (f->kind == REPORT_FUNCTION && f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
            (strcmp(f->name, text) == 0 || strcmp(f->raw, text) == 0)) {
            *out = i;
            named++;
        }
    }
    if (named > 1) {
        return profd_error_set(e, PROFD_AMBIGUOUS,
                               "%u functions of build %s are named %.200s; use the address of one, which "
                               "/functions?name= says",
                               named, id, text);
    }
    if (named == 0 && is_address) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s at 0x%" PRIx64 " is in this report", id,
                               address);
    }
    return named == 1 ? PROFD_OK
                      : profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s named %.200s is in this report",
                                        id, text);
}
