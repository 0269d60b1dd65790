#include "profctl/export_lines.h"

#include <string.h>

#include "profctl/export_formats.h"

bool export_lines_has(const char *format)
{
    return format && (strcmp(format, "pprof") == 0 || strcmp(format, "callgrind") == 0);
}

enum profd_status export_lines_fill(const char *format, const char *given, char *body, size_t size, FILE *out,
                                    struct profd_error *e)
{
    struct export_objects o = {.given = given};
    enum profd_status status = strcmp(format, "pprof") == 0 ? export_pprof_fill(&o, (const uint8_t *)body, size, out, e)
                                                            : export_callgrind_fill(&o, body, out, e);
    export_objects_done(&o);
    return status;
}
