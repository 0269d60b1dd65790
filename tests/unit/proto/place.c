/* Where a process runs, from the text of /proc/PID/cgroup as runtimes and systemd write it, and from the kubelet's
 * links. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/place.h"

#define ID "3e74d3fd9db4c9dd921ae05c2502fb984d0cde1b36e581b13f79c639da4518a1"
#define OTHER "38fac3e99302b3622be089dd41e7ccf38aff368a86cc339972075136ee2710ce"
#define POD "3d274242-8ee0-11e9-a8a6-1e68d864ef1a"
#define POD_ "3d274242_8ee0_11e9_a8a6_1e68d864ef1a"
#define HASH "0123456789abcdef0123456789abcdef"
#define IN_POD "container_id=" ID " k8s_pod_uid=" POD

/* All labels of a place, in one text. */
static const char *text_of(const struct process_place *p)
{
    static char text[4096];
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < PLACE_COUNT; i++) {
        if (*place_get_value(p, i)) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", n ? " " : "", place_get_name(i),
                                  place_get_value(p, i));
        }
    }
    return text;
}

static const char *parsed(const char *cgroup)
{
    static struct process_place p;
    char *text = strdup(cgroup);
    place_parse(place_find_path(text), &p);
    free(text);
    return text_of(&p);
}

Test(place, runtimes)
{
    static const char *const cases[][2] = {
        /* docker: cgroupfs, version 1, hybrid and 2; systemd */
        {"13:name=systemd:/docker/" ID "\n12:pids:/docker/" ID "\n", "container_id=" ID},
        {"3:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n",
         "container_id=" ID},
        {"0::/docker/" ID "\n", "container_id=" ID},
        {"0::/system.slice/docker-" ID ".scope\n", "container_id=" ID},
        {"9:perf_event:/" ID "\n", "container_id=" ID},
        /* containerd in pods */
        {"11:pids:/kubepods/besteffort/pod" POD "/" ID "\n", IN_POD},
        {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope",
         IN_POD},
        {"0::/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope\n", IN_POD},
        {"0::/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID "\n", IN_POD},
        {"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope\n",
         IN_POD},
        {"0::/kubepods/burstable/pod" HASH "/" ID "\n", "container_id=" ID " k8s_pod_uid=" HASH}, /* a static pod */
        /* the daemon has a cgroup namespace of its own */
        {"0::/../../kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope\n", IN_POD},
        {"0::/../cri-containerd-" ID ".scope\n", "container_id=" ID},
        /* CRI-O */
        {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/crio-" ID ".scope\n",
         IN_POD},
        {"0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope/container\n", IN_POD},
        {"10:cpuset:/kubepods/besteffort/pod" POD "/crio-" ID "\n", IN_POD},
        {"0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope\n", ""},
        /* podman, of root and of a user */
        {"0::/machine.slice/libpod-" ID ".scope/container\n", "container_id=" ID},
        {"1:name=systemd:/libpod_parent/libpod-" ID "\n", "container_id=" ID},
        {"0::/machine.slice/libpod-conmon-" ID ".scope\n", ""},
        {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n",
         "container_id=" ID " unit=user@1000.service"},
        {"0::/machine.slice/libpod-" ID ".scope/container/system.slice/nginx.service\n",
         "container_id=" ID " unit=nginx.service"},
        /* without an id */
        {"0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service\n",
         "container_name=web unit=nginx.service"},
        {"0::/machine.slice/machine-web.scope\n", "container_name=web"},
        {"0::/kubepods.slice/kubepods-pod" POD_ ".slice/machine-web.scope\n", "container_name=web"}, /* of no kubelet */
        {"0::/lxc.payload.web/init.scope\n", "container_name=web"},
        /* units of systemd */
        {"9:name=systemd:/system.slice/redis.service\n0::/\n", "unit=redis.service"},
        {"1:name=systemd:/\n0::/system.slice/redis.service/worker\n", "unit=redis.service"},
        {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n",
         "unit=user@1000.service user_unit=x.service"},
        {"0::/user.slice/user-1000.slice/session-3.scope\n", ""},
        {"0::/system.slice/redis.service (deleted)\n", "unit=redis.service"},
        {"9:name=systemd:/\n0::/\n", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_str_eq(parsed(cases[i][0]), cases[i][1], "%s: %s", cases[i][0], parsed(cases[i][0]));
    }
}

/* What a user can make below the own group does not become the container, the pod or the unit of another. */
Test(place, hostile)
{
    static const char *const cases[][2] = {
        {"0::/kubepods/pod" POD "/" ID "/kubepods/pod" HASH "/" OTHER "\n", IN_POD},
        {"0::/user.slice/user-1.slice/user@1.service/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope\n",
         "container_id=" ID " unit=user@1.service"},
        {"0::/system.slice/a.service/kubepods/pod" POD "/" ID "\n", "container_id=" ID " unit=a.service"},
        {"0::/user.slice/user-1.slice/user@1.service/sshd.service\n", "unit=user@1.service user_unit=sshd.service"},
        {"0::/system.slice/a.service/b.service\n", "unit=a.service"},
        {"0::/user/alice/0/kubepods-pod" POD_ ".slice/crio-" ID ".scope\n", "container_id=" ID},
        {"0::/user.slice/user-1.slice/session-3.scope/kubepods/pod" POD "/" ID "\n", "container_id=" ID},
        {"0::/../user-1.slice/session-3.scope/kubepods/pod" POD "/" ID "\n", "container_id=" ID},
        {"0::/userland/kubepods/pod" POD "/" ID "\n", IN_POD}, /* no group of a user */
        {"0::/docker/" ID "0\n0::/docker/X" ID "\n", ""},      /* 65 digits; no runtime's form */
        {"0::/docker/3E74D3FD9DB4C9DD921AE05C2502FB984D0CDE1B36E581B13F79C639DA4518A1\n", ""},
        {"0::/a\tb.service\n", ""},
        {"0::/\xff\xfe.service\n", ""},
        {"0::/.service/.scope/-/pod/pod-\n", ""},
        {"no path\n::\n0:\n0::relative.service\n:::/\n", ""},
        {"0::/x:name=systemd:/docker/" ID "\n", "container_id=" ID}, /* a group of the name "x:name=systemd:" */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_str_eq(parsed(cases[i][0]), cases[i][1], "%s: %s", cases[i][0], parsed(cases[i][0]));
    }
    char text[8192] = "0::/";
    memset(text + 4, 'a', 300);
    memcpy(text + 304, ".service\n", sizeof ".service\n"); /* too long for a label */
    cr_assert_str_eq(parsed(text), "");
}

Test(place, links)
{
    static const char *const cases[][2] = {
        {"web-0_shop_nginx-" ID ".log", "nginx shop web-0"},
        {"a.b-c_kube-system_side-car-" ID ".log", "side-car kube-system a.b-c"},
        {"web-0_shop_nginx-" OTHER ".log", NULL},
        {"web-0_shop_nginx-" ID, NULL},
        {"web-0_shop_-" ID ".log", NULL},
        {"_shop_nginx-" ID ".log", NULL},
        {"web-0__nginx-" ID ".log", NULL},
        {"shop_nginx-" ID ".log", NULL},
        {"web_0_shop_nginx-" ID ".log", NULL}, /* no name in Kubernetes has '_' */
        {"web-0_shop_nginx" ID ".log", NULL},
        {"web-0_shop-" ID ".log", NULL},
        {"-" ID ".log", NULL},
        {ID ".log", NULL},
        {".log", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct process_place p = {.container_id = ID};
        char all[512];
        cr_assert_eq(place_parse_link(cases[i][0], &p), cases[i][1] != NULL, "%s", cases[i][0]);
        (void)snprintf(all, sizeof all, "%s %s %s", p.k8s_container_name, p.k8s_namespace_name, p.k8s_pod_name);
        cr_assert_str_eq(all, cases[i][1] ? cases[i][1] : "  ", "%s", cases[i][0]);
    }
}

Test(place, finds_the_pod_in_a_directory)
{
    char folder[] = "/tmp/place.XXXXXX", link[1024];
    struct process_place p;
    cr_assert_not_null(mkdtemp(folder));
    place_parse("/kubepods/pod" POD "/" ID, &p);
    place_find_pod(&p, folder);
    cr_assert(p.waits, "the link may come");
    (void)snprintf(link, sizeof link, "%s/web-0_shop_nginx-" ID ".log", folder);
    cr_assert_eq(symlink("/var/log/pods/shop_web-0_" POD "/nginx/0.log", link), 0); /* to nothing here */
    place_find_pod(&p, folder);
    cr_assert_not(p.waits);
    cr_assert_str_eq(text_of(&p), "container_id=" ID " k8s_container_name=nginx k8s_namespace_name=shop "
                                  "k8s_pod_name=web-0 k8s_pod_uid=" POD);
    /* A user's own group with the same name has nothing of the pod. */
    place_parse("/user.slice/user-1.slice/user@1.service/kubepods/pod" POD "/" ID, &p);
    place_find_pod(&p, folder);
    cr_assert_str_eq(text_of(&p), "container_id=" ID " unit=user@1.service");
    cr_assert_eq(unlink(link), 0);
    cr_assert_eq(rmdir(folder), 0);
    place_parse("/kubepods/pod" POD "/" ID, &p);
    place_find_pod(&p, folder); /* is not there: nothing is waited for */
    cr_assert_not(p.waits);
}

Test(place, what_a_process_may_state)
{
    struct process_place p;
    place_parse("/kubepods/pod" POD "/" ID, &p);
    cr_assert(place_allows(&p, PLACE_COUNT, "any other label"));
    cr_assert(place_allows(&p, PLACE_container_id, ID), "what was found");
    cr_assert_not(place_allows(&p, PLACE_container_id, OTHER));
    cr_assert(place_allows(&p, PLACE_k8s_pod_name, "web-0"), "by the downward API, without a link");
    cr_assert_not(place_allows(&p, PLACE_k8s_pod_uid, HASH));
    cr_assert_not(place_allows(&p, PLACE_unit, "sshd.service"));
    cr_assert(place_parse_link("web-0_shop_nginx-" ID ".log", &p));
    cr_assert_not(place_allows(&p, PLACE_k8s_pod_name, "web-1"));
    place_parse("/system.slice/redis.service", &p);
    cr_assert_not(place_allows(&p, PLACE_k8s_pod_name, "web-0"), "it is in no pod");
    cr_assert_not(place_allows(&p, PLACE_container_name, "web"));
    place_parse("/../cri-containerd-" ID ".scope", &p);
    cr_assert(place_allows(&p, PLACE_k8s_pod_name, "web-0"), "its pod is that of the daemon, and is hidden");
    cr_assert(place_allows(&p, PLACE_k8s_pod_uid, POD));
    cr_assert_not(place_allows(&p, PLACE_container_id, OTHER));
    static const char *const not_hidden[] = {("/cri-containerd-" ID ".scope"), ("/../x/cri-containerd-" ID ".scope"),
                                             "/../a.service", ("/../a.service/" ID), ""};
    for (size_t i = 0; i < sizeof not_hidden / sizeof not_hidden[0]; i++) {
        place_parse(not_hidden[i], &p);
        cr_assert_not(place_allows(&p, PLACE_k8s_pod_name, "web-0"), "%s", not_hidden[i]);
        cr_assert_not(place_allows(&p, PLACE_k8s_pod_uid, POD), "%s", not_hidden[i]);
    }
    for (unsigned i = 0; i < PLACE_COUNT; i++) { /* the last one is that of a process that could not be examined */
        cr_assert_not(place_allows(&p, i, "web"), "%s", place_get_name(i));
    }
    cr_assert_eq(place_find_label("k8s_pod_name!", 12), (unsigned)PLACE_k8s_pod_name);
    cr_assert_eq(place_find_label("k8s_pod", 7), (unsigned)PLACE_COUNT);
}

Test(place, of_this_process)
{
    struct process_place p;
    cr_assert(place_read((uint32_t)getpid(), PLACE_LINKS, &p));
    cr_assert_not(place_read(0, PLACE_LINKS, &p));
    cr_assert_not(place_read(INT32_MAX, PLACE_LINKS, &p));
    cr_assert_gt(place_read_start((uint32_t)getpid()), 0);
    cr_assert_eq(place_read_start(INT32_MAX), 0);
}
