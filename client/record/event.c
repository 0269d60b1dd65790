#include "record/event.h"

#include <string.h>

/* What is left of a record. */
struct rest {
    const uint8_t *at, *end;
};

static bool take(struct rest *r, void *out, size_t n)
{
    if ((size_t)(r->end - r->at) < n) {
        return false;
    }
    memcpy(out, r->at, n);
    r->at += n;
    return true;
}

/* A text that is padded with NUL up to the end of the rest. */
static bool take_text(struct rest *r, const char **out)
{
    *out = (const char *)r->at;
    return r->at < r->end && memchr(r->at, 0, (size_t)(r->end - r->at)) != NULL;
}

static bool decode_mmap(struct rest *r, struct event *e)
{
    uint8_t identity[24];
    uint32_t protection[2];
    bool good = take(r, &e->pid, 4) && take(r, &e->tid, 4) && take(r, &e->start, 8) && take(r, &e->size, 8) &&
                take(r, &e->offset, 8) && take(r, identity, sizeof identity) &&
                take(r, protection, sizeof protection) && take_text(r, &e->path);
    if (good && (e->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
        e->id_size = identity[0] <= EVENT_ID_MAX ? identity[0] : EVENT_ID_MAX;
        memcpy(e->id, identity + 4, e->id_size);
    } else if (good) {
        memcpy(&e->major, identity, 4);
        memcpy(&e->minor, identity + 4, 4);
        memcpy(&e->inode, identity + 8, 8);
        memcpy(&e->generation, identity + 16, 8);
    }
    return good;
}

static bool decode_task(struct rest *r, struct event *e)
{
    return take(r, &e->pid, 4) && take(r, &e->parent, 4) && take(r, &e->tid, 4) && take(r, &e->parent_tid, 4);
}

/* The registers and the copied stack of a sample. */
static bool decode_stack(struct rest *r, unsigned registers, struct event *e)
{
    uint64_t abi, size;
    if (!take(r, &abi, 8)) {
        return false;
    }
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        if ((size_t)(r->end - r->at) < registers * sizeof(uint64_t)) {
            return false;
        }
        e->registers = abi == PERF_SAMPLE_REGS_ABI_64 ? (const void *)r->at : NULL;
        r->at += registers * sizeof(uint64_t);
    }
    if (!take(r, &size, 8) || size > (size_t)(r->end - r->at)) {
        return false;
    }
    e->stack = r->at;
    r->at += size;
    if (size == 0) {
        return true;
    }
    return take(r, &e->stack_size, 8) && e->stack_size <= size;
}

bool event_decode(const struct perf_event_header *h, unsigned registers, struct event *out)
{
    struct rest r = {(const uint8_t *)(h + 1), (const uint8_t *)h + h->size};
    *out = (struct event){.type = h->type, .misc = h->misc};
    if (h->size < sizeof *h) {
        return false;
    }
    if (h->type == PERF_RECORD_SAMPLE) {
        uint64_t address;
        if (!take(&r, &address, 8) || !take(&r, &out->pid, 4) || !take(&r, &out->tid, 4) || !take(&r, &out->time, 8) ||
            !take(&r, &out->chain_count, 8) || out->chain_count > (size_t)(r.end - r.at) / 8) {
            return false;
        }
        out->chain = (const void *)r.at;
        r.at += out->chain_count * 8;
        return registers == 0 || decode_stack(&r, registers, out);
    }
    if (h->size < sizeof *h + 16) {
        return false;
    }
    r.end -= 16;
    memcpy(&out->time, r.end + 8, 8);
    switch (h->type) {
    case PERF_RECORD_MMAP2:
        return decode_mmap(&r, out);
    case PERF_RECORD_COMM:
        return take(&r, &out->pid, 4) && take(&r, &out->tid, 4) && take_text(&r, &out->comm);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return decode_task(&r, out);
    case PERF_RECORD_LOST: {
        uint64_t id;
        return take(&r, &id, 8) && take(&r, &out->lost, 8);
    }
    default:
        return true;
    }
}
