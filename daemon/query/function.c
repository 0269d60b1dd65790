#include "query/function.h"

#include <inttypes.h>
#include <string.h>

#include "proto/http_text.h"

enum profd_status function_parse_address(const char *text, uint64_t *out, struct profd_error *e)
{
    const char *at = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t n = strspn(at, "0123456789abcdefABCDEF");
    uint64_t value = 0;
    if (n == 0 || n > 16 || at[n] != '\0') {
        return profd_error_set(e, PROFD_BAD_QUERY, "'%s' is not a link-time address in hexadecimal", text);
    }
    for (; *at != '\0'; at++) {
        value = value << 4 | (unsigned)http_hex_value(*at);
    }
    *out = value;
    return PROFD_OK;
}

bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address)
{
    return f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
           (f->address == address || (address > f->address && address - f->address < f->size));
}

enum profd_status function_find(const struct report *r, const char *id, uint64_t address, uint32_t *out,
                                struct profd_error *e)
{
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (function_holds(r, &r->functions[i], id, address)) {
            *out = i;
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s at 0x%" PRIx64 " is in this report", id,
                           address);
}
