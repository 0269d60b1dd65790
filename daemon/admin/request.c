#include "admin/request.h"

#include <string.h>

enum profd_status request_parse(const char *verb, const char *const *arguments, size_t n, struct request *out,
                                struct profd_error *e)
{
    static const struct {
        const char *name;
        enum request_verb verb;
        size_t arguments;
    } verbs[] = {{"delete", REQUEST_DELETE, 1}, {"verify", REQUEST_VERIFY, 0}, {"backup", REQUEST_BACKUP, 0}};
    size_t i = 0, size;

    while (i < sizeof verbs / sizeof *verbs && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == sizeof verbs / sizeof *verbs)
        return profd_error_set(e, PROFD_METHOD, "there is no verb \"%.100s\": delete, verify and backup are known",
                               verb);
    if (n != verbs[i].arguments)
        return profd_error_set(e, PROFD_USAGE, "%s takes %zu argument%s, not %zu", verb, verbs[i].arguments,
                               verbs[i].arguments == 1 ? "" : "s", n);
    size = n ? strlen(arguments[0]) : 0;
    if (n && (!size || size >= sizeof out->build))
        return profd_error_set(e, PROFD_USAGE, "a build-id of %zu bytes: it has 1 to %zu", size, sizeof out->build - 1);
    *out = (struct request){.verb = verbs[i].verb};
    if (n)
        memcpy(out->build, arguments[0], size + 1);
    return PROFD_OK;
}
