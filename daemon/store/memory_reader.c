/* Readers and tenants, as in sqlite_reader.c. */
#include <stdio.h>
#include <string.h>

#include "store/memory.h"

static size_t find_reader(const struct memory_store *s, const char *name)
{
    size_t i = 0;
    while (i < s->reader_count && strcmp(s->readers[i].name, name) != 0) {
        i++;
    }
    return i;
}

enum profd_status memory_add_reader(struct store *base, const struct store_reader *reader, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    if (find_reader(s, reader->name) < s->reader_count) {
        return profd_error_set(e, PROFD_REFUSED, "there is a reader \"%s\"", reader->name);
    }
    enum profd_status status = memory_reserve(&s->readers, s->reader_count, &s->reader_capacity, 1, sizeof *reader, e);
    struct store_reader made = *reader, *r = &made;
    r->tenant_count = 0;
    for (size_t i = 0; status == PROFD_OK && i < reader->tenant_count; i++) {
        struct store_reader_tenant t = reader->tenants[i];
        size_t at = r->tenant_count++, tenant = 0;
        status = memory_find_tenant(&s->centre, t.name, &tenant, e);
        t.uid = store_tenant_uid((int64_t)tenant + 1);
        for (; at > 0 && r->tenants[at - 1].uid > t.uid; at--) {
            r->tenants[at] = r->tenants[at - 1];
        }
        r->tenants[at] = t;
    }
    if (status == PROFD_OK) {
        made.id = ++s->reader_number;
        s->readers[s->reader_count++] = made;
    }
    return status;
}

enum profd_status memory_remove_reader(struct store *base, const char *name, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    const size_t at = find_reader(s, name);
    if (at == s->reader_count) {
        return profd_error_set(e, PROFD_NOT_FOUND, "there is no reader \"%s\"", name);
    }
    s->reader_count--;
    memmove(&s->readers[at], &s->readers[at + 1], (s->reader_count - at) * sizeof *s->readers);
    return PROFD_OK;
}

enum profd_status memory_each_reader(struct store *base, bool (*each)(void *context, const struct store_reader *r),
                                     void *context, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    (void)e;
    for (size_t i = 0; i < s->reader_count && each(context, &s->readers[i]); i++) {
    }
    return PROFD_OK;
}
