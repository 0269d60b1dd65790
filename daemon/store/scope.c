#include "store/store.h"

bool store_scope_has(const struct store_scope *scope, uint32_t uid)
{
    return scope->all || scope->uid == uid;
}

bool store_scope_has_tenants(const struct store_scope *scope)
{
    return scope->all || store_is_tenant(scope->uid);
}

enum store_origin store_origin_of(uint32_t uid)
{
    return store_is_tenant(uid) ? STORE_OF_HOSTS : STORE_OF_LOCAL_USERS;
}

bool store_scope_equal(const struct store_scope *a, const struct store_scope *b)
{
    return a->all == b->all && (a->all || a->uid == b->uid);
}
