/* The verbs of enrolments.h, as in sqlite_enrol.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/hex.h"
#include "store/memory.h"

enum profd_status memory_find_tenant(struct memory_centre *c, const char *name, size_t *index, struct profd_error *e)
{
    enum profd_status status =
        memory_reserve(&c->tenants, c->tenant_count, &c->tenant_capacity, 2, sizeof *c->tenants, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (c->tenant_count == 0) {
        snprintf(c->tenants[c->tenant_count++].name, STORE_NAME_SIZE, "default");
    }
    for (*index = 0; *index < c->tenant_count && strcmp(c->tenants[*index].name, name) != 0; ++*index) {
    }
    if (*index == c->tenant_count) {
        snprintf(c->tenants[c->tenant_count++].name, STORE_NAME_SIZE, "%s", name);
    }
    return PROFD_OK;
}

enum profd_status memory_put_token(struct store *base, const struct store_token *token, struct profd_error *e)
{
    struct memory_centre *c = &memory_self(base)->centre;
    size_t tenant;
    enum profd_status status = memory_find_tenant(c, token->tenant, &tenant, e);
    if (status == PROFD_OK) {
        status = memory_reserve(&c->tokens, c->token_count, &c->token_capacity, 1, sizeof *c->tokens, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct memory_token *t = &c->tokens[c->token_count++];
    memcpy(t->hash, token->hash, sizeof t->hash);
    t->tenant = tenant;
    t->uses = token->uses;
    t->expires = token->expires;
    return PROFD_OK;
}

/* host, key: NULL: any. */
static struct memory_enrolment *find_enrolment(const struct memory_centre *c, const uint8_t *host, const uint8_t *key)
{
    for (size_t i = 0; i < c->enrolment_count; i++) {
        struct store_enrolment *x = &c->enrolments[i].row;
        if ((!host || !memcmp(x->host, host, sizeof x->host)) && (!key || !memcmp(x->key, key, sizeof x->key))) {
            return &c->enrolments[i];
        }
    }
    return NULL;
}

enum profd_status memory_find_enrolments(struct store *base, const uint8_t *hosts, size_t n,
                                         struct store_enrolment *out, bool *found, struct profd_error *e)
{
    (void)e;
    for (size_t i = 0; i < n; i++) {
        const struct memory_enrolment *x =
            find_enrolment(&memory_self(base)->centre, hosts + i * STORE_HOST_SIZE, NULL);
        found[i] = x != NULL;
        if (x) {
            out[i] = x->row;
        }
    }
    return PROFD_OK;
}

static void describe(struct store_enrolment *row, const struct store_enrolling *x)
{
    snprintf(row->machine, sizeof row->machine, "%s", x->machine);
    snprintf(row->version, sizeof row->version, "%s", x->version);
    row->not_after = x->not_after;
}

enum profd_status memory_enrol(struct store *base, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, bool *spent, struct profd_error *e)
{
    struct memory_centre *c = &memory_self(base)->centre;
    size_t token = 0;
    *spent = false;
    while (token < c->token_count && memcmp(c->tokens[token].hash, x->token, sizeof x->token) != 0) {
        token++;
    }
    if (token == c->token_count) {
        *verdict = STORE_ENROL_UNKNOWN;
        return PROFD_OK;
    }
    struct memory_token *t = &c->tokens[token];
    const struct memory_enrolment *known = find_enrolment(c, NULL, x->key);
    *verdict = known && known->row.revoked != 0 ? STORE_ENROL_REVOKED
               : known                          ? (known->token == token ? STORE_ENROLLED : STORE_ENROL_OTHER)
               : t->uses == 0 || x->spent       ? STORE_ENROL_USED_UP
               : t->expires <= x->now           ? STORE_ENROL_EXPIRED
                                                : STORE_ENROLLED;
    *spent = known && *verdict == STORE_ENROLLED && t->uses == 0 && !x->spent;
    if (known || *verdict != STORE_ENROLLED) {
        *out = known ? known->row : *out;
        return PROFD_OK;
    }
    enum profd_status status =
        memory_reserve(&c->enrolments, c->enrolment_count, &c->enrolment_capacity, 1, sizeof *c->enrolments, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct memory_enrolment *made = &c->enrolments[c->enrolment_count++];
    *made = (struct memory_enrolment){.token = token};
    memcpy(made->row.host, x->host, sizeof made->row.host);
    memcpy(made->row.key, x->key, sizeof made->row.key);
    snprintf(made->row.tenant, sizeof made->row.tenant, "%s", c->tenants[t->tenant].name);
    snprintf(made->row.name, sizeof made->row.name, "%s", x->name);
    made->row.uid = STORE_TENANT - (uint32_t)t->tenant;
    made->row.enrolled = x->now;
    describe(&made->row, x);
    *spent = --t->uses == 0;
    *out = made->row;
    return PROFD_OK;
}

enum profd_status memory_renew(struct store *base, const struct store_enrolling *x, struct store_enrolment *out,
                               enum store_enrol_verdict *verdict, struct profd_error *e)
{
    struct memory_enrolment *known = find_enrolment(&memory_self(base)->centre, NULL, x->key);
    (void)e;
    *verdict = !known ? STORE_ENROL_UNKNOWN : known->row.revoked != 0 ? STORE_ENROL_REVOKED : STORE_ENROLLED;
    if (*verdict == STORE_ENROLLED) {
        describe(&known->row, x);
        *out = known->row;
    }
    return PROFD_OK;
}

/* The digits of an identity, with or without hyphens. */
static bool is_identity(const uint8_t *host, const char *text)
{
    char digits[2 * STORE_HOST_SIZE + 1], own[2 * STORE_HOST_SIZE + 1];
    size_t n = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-') {
            continue;
        }
        if (n == sizeof digits - 1) {
            return false;
        }
        digits[n++] = *text;
    }
    digits[n] = '\0';
    hex_put(own, host, STORE_HOST_SIZE);
    return strcasecmp(digits, own) == 0;
}

/* Does the text name this host? by_name: no identity is meant. */
static bool is_named(const struct store_enrolment *x, const char *which, bool by_name)
{
    return by_name ? strcmp(x->name, which) == 0 : is_identity(x->host, which);
}

enum profd_status memory_revoke(struct store *base, const char *which, int64_t now,
                                bool (*each)(void *context, const struct store_enrolment *host), void *context,
                                struct profd_error *e)
{
    struct memory_centre *c = &memory_self(base)->centre;
    bool by_name = true;
    size_t open = 0;
    for (size_t i = 0; i < c->enrolment_count; i++) {
        by_name = by_name && !is_identity(c->enrolments[i].row.host, which);
    }
    for (size_t i = 0; i < c->enrolment_count; i++) {
        open += is_named(&c->enrolments[i].row, which, by_name) && c->enrolments[i].row.revoked == 0;
    }
    if (open > 1) {
        return profd_error_set(e, PROFD_AMBIGUOUS, "%zu enrolled hosts have the name \"%.100s\"", open, which);
    }
    for (size_t i = 0; i < c->enrolment_count; i++) {
        struct store_enrolment *x = &c->enrolments[i].row;
        if (!is_named(x, which, by_name) || (open == 1 && x->revoked != 0)) {
            continue;
        }
        x->revoked = x->revoked != 0 ? x->revoked : now;
        if (!each(context, x)) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the hosts named %.100s", which);
        }
    }
    return PROFD_OK;
}

enum profd_status memory_revoke_keys(struct store *base, const uint8_t *keys, const int64_t *times, size_t n,
                                     struct profd_error *e)
{
    (void)e;
    for (size_t i = 0; i < n; i++) {
        struct memory_enrolment *x = find_enrolment(&memory_self(base)->centre, NULL, keys + i * STORE_HASH_SIZE);
        if (x && x->row.revoked == 0) {
            x->row.revoked = times[i];
        }
    }
    return PROFD_OK;
}

enum profd_status memory_each_host(struct store *base, bool (*each)(void *context, const struct store_fleet_host *host),
                                   void *context, struct profd_error *e)
{
    const struct memory_centre *c = &memory_self(base)->centre;
    bool goes_on = true;
    (void)e;
    for (size_t i = 0; i < c->host_count && goes_on; i++) {
        const struct memory_host *h = &c->hosts[i];
        const struct memory_enrolment *x = find_enrolment(c, h->identity, NULL);
        struct store_fleet_host host = {.name = h->name,
                                        .tenant = x ? x->row.tenant : "default",
                                        .uid = x ? x->row.uid : STORE_TENANT,
                                        .machine = x ? x->row.machine : "",
                                        .version = x ? x->row.version : "",
                                        .other = "",
                                        .has_enrolment = x != NULL,
                                        .not_after = x ? x->row.not_after : 0,
                                        .revoked = x ? x->row.revoked : 0};
        memcpy(host.host, h->identity, sizeof host.host);
        goes_on = each(context, &host);
    }
    for (size_t i = 0; i < c->enrolment_count && goes_on; i++) {
        const struct store_enrolment *x = &c->enrolments[i].row;
        struct store_fleet_host host = {.name = x->name,
                                        .tenant = x->tenant,
                                        .uid = x->uid,
                                        .machine = x->machine,
                                        .version = x->version,
                                        .other = "",
                                        .has_enrolment = true,
                                        .not_after = x->not_after,
                                        .revoked = x->revoked};
        bool arrived = false;
        for (size_t k = 0; k < c->host_count; k++) {
            arrived |= memcmp(c->hosts[k].identity, x->host, sizeof x->host) == 0;
        }
        memcpy(host.host, x->host, sizeof host.host);
        goes_on = arrived || each(context, &host);
    }
    return PROFD_OK;
}
