#include "store/opener.h"

static enum profd_status open_reader(const struct store_opener *o, struct store **out, struct profd_error *e)
{
    return store_sqlite_open_reader(((const struct store_sqlite_opener *)o)->path, out, e);
}

struct store_sqlite_opener store_sqlite_opener(const char *path)
{
    return (struct store_sqlite_opener){.base = {.open = open_reader}, .path = path};
}
