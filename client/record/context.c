/* The process context of OpenTelemetry (OTEP 4719): attributes of a resource that a process publishes in its memory. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proto/label.h"
#include "proto/otlp.pb-c.h"
#include "proto/place.h"
#include "record/record_internal.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION 2u
#define PAYLOAD_BYTES 65536u
#define USERS 64u /* whose silence is counted; further ones share the last counter */

struct context_header {
    char signature[8];
    uint32_t version, size;
    uint64_t published; /* 0: it is being changed */
    uint64_t payload;   /* address */
};

/* What the child process reads. */
struct context_reading {
    uint32_t pid;
    uint64_t address;
    struct context_header header;
    uint8_t payload[PAYLOAD_BYTES];
};

bool context_is_mapping(const char *line)
{
    static const char *const names[] = {"[anon:OTEL_CTX]", "[anon_shmem:OTEL_CTX]", "/memfd:OTEL_CTX"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found |= strstr(line, names[i]) != NULL;
    }
    return found;
}

static bool memory_read(uint32_t pid, uint64_t address, void *out, size_t n)
{
    const struct iovec here = {out, n}, there = {(void *)(uintptr_t)address, n};
    return process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* In a child process: memory of a hostile process may never answer. */
static bool reading_take(void *context)
{
    struct context_reading *r = context;
    struct context_header again;
    return memory_read(r->pid, r->address, &r->header, sizeof r->header) &&
           memcmp(r->header.signature, SIGNATURE, sizeof r->header.signature) == 0 && r->header.version == VERSION &&
           r->header.published != 0 && r->header.size <= PAYLOAD_BYTES &&
           memory_read(r->pid, r->header.payload, r->payload, r->header.size) &&
           memory_read(r->pid, r->address, &again, sizeof again) && memcmp(&again, &r->header, sizeof again) == 0;
}

/* Adds the value of an attribute as a label. */
static void label_put(struct sum_origin *o, size_t *used, const Profd__Otlp__Resource *resource, const char *attribute,
                      const char *label)
{
    char name[LIMIT_LABEL_NAME + 1];
    const size_t n = strlen(label);
    for (size_t i = 0; i <= n; i++) {
        name[i] = (char)(label[i] == '.' ? '_' : label[i]);
    }
    for (size_t i = 0; i < resource->n_attributes; i++) {
        const Profd__Otlp__Attribute *a = resource->attributes[i];
        if (!a->value || a->value->value_case != PROFD__OTLP__VALUE__VALUE_STRING_VALUE ||
            strcmp(a->key, attribute) != 0 || !*a->value->string_value || place_find_label(name, n) < PLACE_COUNT) {
            continue;
        }
        const size_t value = strlen(a->value->string_value) + 1;
        if (n + 1 + value >= sizeof o->context - *used) {
            o->context_cut = true;
            return;
        }
        memcpy(o->context + *used, name, n + 1);
        memcpy(o->context + *used + n + 1, a->value->string_value, value);
        *used += n + 1 + value;
        return;
    }
}

/* The counter of how often processes of a user did not answer: one user cannot stop the reading of others. */
static unsigned *silence_of(uint32_t uid)
{
    static struct {
        uint32_t uid;
        unsigned times;
    } users[USERS];
    unsigned i = 0;
    while (i < USERS - 1 && users[i].times > 0 && users[i].uid != uid) {
        i++;
    }
    users[i].uid = uid;
    return &users[i].times;
}

void context_read(uint32_t pid, uint64_t address, struct sum_origin *o)
{
    static const char *const attributes[] = {LABEL_ATTRIBUTES};
    unsigned *silent = silence_of(o->uid);
    size_t used = 0;
    memset(o->context, 0, sizeof o->context);
    o->context_cut = false;
    struct context_reading *r =
        address ? mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (r == MAP_FAILED) {
        return;
    }
    r->pid = pid;
    r->address = address;
    const bool answered = image_ask(reading_take, r, silent);
    Profd__Otlp__ProcessContext *c =
        answered ? profd__otlp__process_context__unpack(NULL, r->header.size, r->payload) : NULL;
    o->context_cut = !answered && *silent > 0;
    if (c && c->resource) {
        label_put(o, &used, c->resource, "service.name", "service");
        label_put(o, &used, c->resource, "service.name", "service_name");
        label_put(o, &used, c->resource, "deployment.environment.name", "deployment_environment");
        for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
            label_put(o, &used, c->resource, attributes[i], attributes[i]);
        }
    }
    profd__otlp__process_context__free_unpacked(c, NULL);
    (void)munmap(r, sizeof *r);
}
