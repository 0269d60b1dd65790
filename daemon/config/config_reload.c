/* Reads the configuration of a running program again. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_internal.h"
#include "log/log.h"

/* What profd cannot change while it runs. */
static const enum config_option fixed[] = {
    CONFIG_state_dir,          CONFIG_socket,  CONFIG_http_socket, CONFIG_http,      CONFIG_relay, CONFIG_tier,
    CONFIG_tier_password_file, CONFIG_tier_ca, CONFIG_tier_name,   CONFIG_seal_after};

#define FIXED_COUNT (sizeof fixed / sizeof *fixed)

static bool config_is_fixed(enum config_program program, enum config_option option)
{
    for (size_t i = 0; i < FIXED_COUNT; i++) {
        if (fixed[i] == option) {
            return program == OF_PROFD;
        }
    }
    return false;
}

static bool config_same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static void config_compare(enum config_program program, const struct config *old, const struct config *fresh,
                           struct config_change *out)
{
    struct config_change change = {0};

    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const char *name = config_get_name((enum config_option)i);

        if (config_same(old->values[i], fresh->values[i]) || !config_is_of(program, (enum config_option)i)) {
            continue;
        }
        if (config_is_fixed(program, (enum config_option)i)) {
            change.restart[change.restart_count++] = name;
        } else {
            change.applied[change.applied_count++] = name;
        }
    }
    *out = change;
}

/* Exchanges the values that need a restart. */
static void config_exchange_fixed(enum config_program program, struct config *a, struct config *b)
{
    for (size_t i = 0; i < FIXED_COUNT && program == OF_PROFD; i++) {
        char *value = a->values[fixed[i]];

        a->values[fixed[i]] = b->values[fixed[i]];
        b->values[fixed[i]] = value;
    }
}

enum profd_status config_reload(enum config_program program, int argc, char *const argv[], struct config *config,
                                struct config *old, struct config_change *change, struct profd_error *e)
{
    struct config whole = {.file = NULL}, fresh = {.file = NULL};
    /* First as it would be after a restart, then with what does not change: both must be valid. */
    enum profd_status status = config_load(program, argc, argv, &whole, e);

    if (status) {
        return status;
    }
    config_compare(program, config, &whole, change);
    config_done(&whole);
    status = config_read(program, argc, argv, &fresh, e);
    config_exchange_fixed(program, config, &fresh);
    if (!status) {
        status = config_check_all(program, &fresh, e);
    }
    if (status) {
        config_exchange_fixed(program, config, &fresh);
        config_done(&fresh);
        return status;
    }
    *old = *config;
    *config = fresh;
    return PROFD_OK;
}

static void config_log_names(const char *what, const char *const *names, size_t n)
{
    char list[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < n && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    log_write(LOG_LEVEL_NOTICE, NULL, "the configuration and its files were read again; %s%s", what, list);
}

void config_log_change(const struct config_change *change)
{
    if (change->applied_count) {
        config_log_names("changed: ", change->applied, change->applied_count);
    }
    if (change->restart_count) {
        config_log_names("these changes need a restart: ", change->restart, change->restart_count);
    }
    if (!change->applied_count && !change->restart_count) {
        config_log_names("no key has changed", NULL, 0);
    }
}
