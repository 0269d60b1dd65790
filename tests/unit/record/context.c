/* The process context that a process publishes in its memory: what is read of one, and that a hostile one does no harm.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/otlp.pb-c.h"
#include "record/record_internal.h"

/* The header as OTEP 4719 has it. */
struct published {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t monotonic_published_at_ns;
    const void *payload;
};

#define ATTRIBUTES_MOST 40

static uint8_t payload[70000];

/* Encodes attributes: names and values, ended by NULL. */
static size_t encode(const char *const *pairs)
{
    Profd__Otlp__ProcessContext context = PROFD__OTLP__PROCESS_CONTEXT__INIT;
    Profd__Otlp__Resource resource = PROFD__OTLP__RESOURCE__INIT;
    static Profd__Otlp__Attribute attributes[ATTRIBUTES_MOST], *list[ATTRIBUTES_MOST];
    static Profd__Otlp__Value values[ATTRIBUTES_MOST];
    for (size_t i = 0; pairs[2 * i]; i++) {
        profd__otlp__attribute__init(&attributes[i]);
        profd__otlp__value__init(&values[i]);
        attributes[i].key = (char *)(uintptr_t)pairs[2 * i];
        attributes[i].value = &values[i];
        values[i].value_case = PROFD__OTLP__VALUE__VALUE_STRING_VALUE;
        values[i].string_value = (char *)(uintptr_t)pairs[2 * i + 1];
        list[resource.n_attributes++] = &attributes[i];
    }
    resource.attributes = list;
    context.resource = &resource;
    return profd__otlp__process_context__pack(&context, payload);
}

static uint32_t user; /* whose process it is said to be */

/* The labels, as "name=value name=value ". */
static const char *labels_of(const struct published *p)
{
    static char text[4096];
    struct sum_origin o = {.uid = user};
    size_t n = 0;
    context_read((uint32_t)getpid(), (uintptr_t)p, &o);
    text[0] = '\0';
    for (const char *name = o.context; *name;) {
        const char *value = name + strlen(name) + 1;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s=%s ", name, value);
        name = value + strlen(value) + 1;
    }
    if (o.context_cut) {
        (void)snprintf(text + n, sizeof text - n, "cut");
    }
    return text;
}

static const char *const web[] = {"service.name",
                                  "web",
                                  "service.version",
                                  "1.2",
                                  "deployment.environment.name",
                                  "test",
                                  "container.id",
                                  "another's",
                                  "k8s.pod.name",
                                  "another's",
                                  "telemetry.sdk.name",
                                  "x",
                                  "k8s.deployment.name",
                                  "front",
                                  "service.namespace",
                                  "",
                                  NULL};
#define WEB "service=web service_name=web deployment_environment=test service_version=1.2 k8s_deployment_name=front "

static struct published publish(const char *const *pairs)
{
    return (struct published){"OTEL_CTX", 2, (uint32_t)encode(pairs), 1, payload};
}

Test(context, becomes_labels)
{
    struct published p = publish(web);
    cr_assert_str_eq(labels_of(&p), WEB, "%s", labels_of(&p));
    cr_assert_str_eq(labels_of(NULL), "");
}

Test(context, names_of_mappings)
{
    cr_assert(context_is_mapping("7f00-7f01 rw-p 00000000 00:01 7 /memfd:OTEL_CTX (deleted)\n"));
    cr_assert(context_is_mapping("7f00-7f01 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n"));
    cr_assert(context_is_mapping("7f00-7f01 rw-s 00000000 00:01 7 [anon_shmem:OTEL_CTX]\n"));
    cr_assert_not(context_is_mapping("7f00-7f01 rw-p 00000000 00:01 7 /memfd:OTHER (deleted)\n"));
}

Test(context, hostile)
{
    const struct published good = publish(web);
    struct published p = good;
    p.signature[0] = 'o';
    cr_assert_str_eq(labels_of(&p), "", "another signature");
    p = good;
    p.version = 1;
    cr_assert_str_eq(labels_of(&p), "", "another version");
    p = good;
    p.monotonic_published_at_ns = 0;
    cr_assert_str_eq(labels_of(&p), "", "it is being changed");
    p = good;
    p.payload_size = sizeof payload;
    cr_assert_str_eq(labels_of(&p), "", "too large");
    p = good;
    p.payload = (void *)1;
    cr_assert_str_eq(labels_of(&p), "", "no memory there");
    p = good;
    p.payload_size--;
    cr_assert_str_eq(labels_of(&p), "", "cut");
    p.payload_size = 0;
    cr_assert_str_eq(labels_of(&p), "", "empty");
    memset(payload, 0xff, sizeof payload);
    cr_assert_str_eq(labels_of(&good), "", "no protobuf");
    cr_assert_str_eq(labels_of((const struct published *)16), "", "no header");
}

Test(context, long_values_are_left_out)
{
    static char value[1500];
    memset(value, 'v', sizeof value - 1);
    const char *const pairs[] = {"service.version", value, "service.namespace", value, "k8s.job.name", "j", NULL};
    struct published p = publish(pairs);
    const char *text = labels_of(&p);
    cr_assert(strstr(text, "service_namespace=vvv") && strstr(text, "k8s_job_name=j cut"), "%s", text);
}

/* Memory that never answers, as of a process with userfaultfd(2) or a file system of its own. */
Test(context, one_user_that_does_not_answer_stops_no_other)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct published *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)p, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0) {
        cr_skip_test("userfaultfd is not allowed here");
    }
    cr_assert_eq(ioctl(fd, UFFDIO_API, &api), 0);
    cr_assert_eq(ioctl(fd, UFFDIO_REGISTER, &range), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_str_eq(labels_of(p), "cut");
    }
    const struct published good = publish(web);
    cr_assert_str_eq(labels_of(&good), "cut", "this user's processes are not asked any more");
    user = 1;
    cr_assert_str_eq(labels_of(&good), WEB, "another user's are");
}
