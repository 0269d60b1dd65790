/* The unit and the container of a cgroup path. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "record/record_internal.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(origin, units)
{
    static const char *const cases[][2] = {
        {"/system.slice/redis.service", "redis.service"},
        {"/user.slice/user-1000.slice/session-3.scope", "session-3.scope"},
        {"/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "x.service"},
        {"/system.slice/docker-" ID ".scope", "docker-" ID ".scope"},
        {"/system.slice/redis.service/worker", "redis.service"},
        {"/system.slice", ""},
        {"/", ""},
        {"", ""},
        {"/.service", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char unit[ORIGIN_NAME_SIZE];
        origin_find_unit(cases[i][0], unit);
        cr_assert_str_eq(unit, cases[i][1], "%s", cases[i][0]);
    }
}

Test(origin, containers)
{
    static const char *const cases[][2] = {
        {"/system.slice/docker-" ID ".scope", "0123456789ab"},
        {"/docker/" ID, "0123456789ab"},
        {"/kubepods.slice/kubepods-pod7.slice/cri-containerd-" ID ".scope", "0123456789ab"},
        {"/machine.slice/libpod-" ID ".scope/container", "0123456789ab"},
        {"/machine.slice/systemd-nspawn@web.service/payload", "web"},
        {"/machine.slice/machine-web.scope", "web"},
        {"/lxc.payload.web/init.scope", "web"},
        {"/system.slice/redis.service", ""},
        {"/0123456789abcdef", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char container[ORIGIN_NAME_SIZE];
        origin_find_container(cases[i][0], container);
        cr_assert_str_eq(container, cases[i][1], "%s", cases[i][0]);
    }
}

Test(origin, of_this_process)
{
    struct sum_origin o = {.uid = UINT32_MAX};
    cr_assert(origin_read((uint32_t)getpid(), &o));
    cr_assert_eq(o.uid, geteuid());
    cr_assert(origin_read_comm((uint32_t)getpid(), o.comm));
    cr_assert_gt(strlen(o.comm), 0);
    cr_assert_not(origin_read(INT32_MAX, &o));
}
