/* Prints unwind tables, and stacks that are walked by them.
 *   unwinder rows FILE                  the table: address, CFA, frame pointer and return address as readelf names them
 *   unwinder stop PID                   the stack of a process that is stopped, innermost first, as absolute addresses
 *   unwinder sample PID MILLISECONDS HZ samples of the process and its children; how many stacks are complete */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "elf/elf_read.h"
#include "record/record_internal.h"

#define STACK_BYTES (32u << 10)
#define RING_PAGES 256u
#define PAGE 4096u
#define PLACES 4096u
#define CPUS 256u
#define DETAILS 20u /* incomplete stacks that are shown */

#if defined __x86_64__
#define MACHINE UNWIND_X86_64
enum { REGS = 3, MASK = 1 << 6 | 1 << 7 | 1 << 8 }; /* bp, sp, ip */
#else
#define MACHINE UNWIND_AARCH64
#define REGS 4
#define MASK (UINT64_C(15) << 29) /* x29, lr, sp, pc */
#endif

static const char *const end_names[] = {"complete", "no-table", "no-entry", "no-rule", "short", "deep", "broken"};

/* Executable mappings of processes. */
static struct place {
    int pid;
    uint64_t low, high, bias;
    struct unwind_table *table;
    char path[256];
} places[PLACES];
static uint32_t place_count;

static void die(const char *what)
{
    fprintf(stderr, "unwinder: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Returns a sealed memfd with this kernel's vDSO. */
static int open_vdso(void)
{
    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Ehdr *h = (const void *)image;
    int fd = memfd_create("vdso", MFD_ALLOW_SEALING);
    size_t size = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
    if (fd < 0 || write(fd, image, size) != (ssize_t)size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        die("vDSO");
    }
    return fd;
}

/* Reads the table of a mapping, and how far its file was moved. */
static void read_place(struct place *p, uint64_t offset)
{
    char path[512];
    struct profd_error e;
    struct elf_load *loads;
    uint32_t count;
    struct arena *a = arena_new(0);
    snprintf(path, sizeof path, "/proc/%d/root%s", p->pid, p->path);
    int fd = strcmp(p->path, "[vdso]") == 0 ? open_vdso() : p->path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && elf_read_loads(fd, a, &loads, &count, &e) == PROFD_OK) {
        for (uint32_t i = 0; i < count; i++) {
            if (offset + (p->high - p->low) > loads[i].offset && offset < loads[i].offset + loads[i].size) {
                p->bias = p->low - (loads[i].address + (offset - loads[i].offset));
                if (unwind_elf_read(fd, &p->table, &e) != PROFD_OK) {
                    fprintf(stderr, "unwinder: %s: %s\n", p->path, e.sentence);
                }
                break;
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    arena_free(a);
}

static void read_maps(int pid)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f) && place_count < PLACES) {
        uint64_t low, high, offset;
        char mode[8], name[256] = "";
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255[^\n]", &low, &high, mode, &offset,
                   name) < 4 ||
            mode[2] != 'x') {
            continue;
        }
        bool known = false;
        for (uint32_t i = 0; i < place_count; i++) {
            known |= places[i].pid == pid && places[i].low == low && strcmp(places[i].path, name) == 0;
        }
        if (!known) {
            struct place *p = &places[place_count++];
            *p = (struct place){.pid = pid, .low = low, .high = high};
            snprintf(p->path, sizeof p->path, "%s", name);
            read_place(p, offset);
        }
    }
    if (f) {
        fclose(f);
    }
}

static const struct place *place_at(int pid, uint64_t address)
{
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < place_count; i++) {
            if (places[i].pid == pid && address >= places[i].low && address < places[i].high) {
                return &places[i];
            }
        }
        if (round == 0) {
            read_maps(pid);
        }
    }
    return NULL;
}

static bool find(void *context, uint64_t address, struct unwind_object *out)
{
    const struct place *p = place_at(*(const int *)context, address);
    if (p && p->table) {
        *out = (struct unwind_object){p->table, p->bias};
    }
    return p && p->table;
}

static const char *place_text(uint8_t place, int32_t offset, char *out, size_t size)
{
    switch (place) {
    case UNWIND_SAME:
        return "s";
    case UNWIND_AT_CFA:
        snprintf(out, size, "c%+d", offset);
        return out;
    case UNWIND_AT_SP:
    case UNWIND_AT_FP:
        return "exp";
    case UNWIND_OUTERMOST:
        return "u";
    default:
        return "lost";
    }
}

static int print_rows(const char *path)
{
    struct unwind_table *t;
    struct profd_error e;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        die(path);
    }
    if (unwind_elf_read(fd, &t, &e) != PROFD_OK) {
        fprintf(stderr, "unwinder: %s: %s\n", path, e.sentence);
        return 1;
    }
    const char *sp = t->machine == UNWIND_X86_64 ? "rsp" : "sp", *fp = t->machine == UNWIND_X86_64 ? "rbp" : "x29";
    for (uint32_t i = 0; i < t->row_count; i++) {
        const struct table_rule *r = &t->rules[t->rows[i].rule];
        char cfa[32] = "none", a[32], b[32];
        if (r->cfa == UNWIND_CFA_SP || r->cfa == UNWIND_CFA_FP) {
            snprintf(cfa, sizeof cfa, "%s%+d", r->cfa == UNWIND_CFA_SP ? sp : fp, r->cfa_offset);
        } else if (r->cfa != UNWIND_CFA_NONE) {
            snprintf(cfa, sizeof cfa, "exp");
        }
        if (t->rows[i].rule == 0) {
            printf("%016" PRIx64 " gap\n", t->base + t->rows[i].at);
        } else {
            printf("%016" PRIx64 " %s %s %s%s\n", t->base + t->rows[i].at, cfa,
                   place_text(r->fp, r->fp_offset, a, sizeof a), place_text(r->link, r->link_offset, b, sizeof b),
                   r->is_signal ? " signal" : "");
        }
    }
    fprintf(stderr, "%u rows, %u rules\n", t->row_count, t->rule_count);
    unwind_table_free(t);
    close(fd);
    return 0;
}

static int print_stopped(int pid)
{
    static uint8_t stack[256u << 10];
    struct user_regs_struct regs;
    struct iovec io = {&regs, sizeof regs};
    int status;
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid ||
        ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &io) != 0) {
        die("ptrace");
    }
#if defined __x86_64__
    struct unwind_thread t = {.machine = MACHINE, .pc = regs.rip, .sp = regs.rsp, .fp = regs.rbp};
#else
    struct unwind_thread t = {
        .machine = MACHINE, .pc = regs.pc, .sp = regs.sp, .fp = regs.regs[29], .link = regs.regs[30]};
#endif
    t.base = t.sp;
    t.stack = stack;
    for (t.size = sizeof stack; t.size > 0; t.size -= 8) {
        struct iovec mine = {stack, t.size}, its = {(void *)t.sp, t.size};
        if (process_vm_readv(pid, &mine, 1, &its, 1, 0) == (ssize_t)t.size) {
            break;
        }
    }
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    enum unwind_end end = unwind_walk(&t, find, &pid, returns, NULL, &count, NULL);
    printf("%" PRIx64 "\n", t.pc);
    for (uint32_t i = 0; i < count; i++) {
        printf("%" PRIx64 "\n", returns[i]);
    }
    printf("%s\n", end_names[end]);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return 0;
}

static uint64_t ends[UNWIND_BROKEN + 1], frames;

/* {pid, tid}, abi, registers, size of the stack, the stack, bytes of it that were copied */
static void take_sample(const uint8_t *at, const uint8_t *end)
{
    uint32_t ids[2];
    uint64_t abi, regs[REGS], size = 0, copied = 0;
    memcpy(ids, at, 8);
    memcpy(&abi, at + 8, 8);
    at += 16;
    if (abi == PERF_SAMPLE_REGS_ABI_NONE) { /* a thread of the kernel, or one that is not in user space any more */
        return;
    }
    memcpy(regs, at, sizeof regs);
    at += sizeof regs;
    memcpy(&size, at, 8);
    if (size > 0) {
        memcpy(&copied, end - 8, 8);
    }
#if defined __x86_64__
    struct unwind_thread t = {.machine = MACHINE, .fp = regs[0], .sp = regs[1], .pc = regs[2]};
#else
    struct unwind_thread t = {.machine = MACHINE, .fp = regs[0], .link = regs[1], .sp = regs[2], .pc = regs[3]};
#endif
    t.base = t.sp;
    t.stack = at + 8;
    t.size = copied;
    uint64_t returns[UNWIND_RETURNS];
    uint32_t count;
    int pid = (int)ids[0];
    enum unwind_end why = unwind_walk(&t, find, &pid, returns, NULL, &count, NULL);
    ends[why]++;
    frames += count + 1;
    if (why != UNWIND_COMPLETE && ends[why] <= DETAILS) {
        uint64_t last = count > 0 ? returns[count - 1] : t.pc;
        const struct place *p = place_at(pid, last);
        printf("# %s after %u frames at %s+%" PRIx64 "\n", end_names[why], count + 1, p ? p->path : "?",
               p ? last - p->bias : last);
    }
}

static void drain(uint8_t *ring)
{
    static uint8_t record[UINT16_MAX + 1];
    struct perf_event_mmap_page *page = (void *)ring;
    uint64_t size = RING_PAGES * PAGE, head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
             tail = page->data_tail;
    while (tail < head) {
        struct perf_event_header h;
        for (size_t i = 0; i < sizeof h; i++) {
            record[i] = ring[PAGE + (tail + i) % size];
        }
        memcpy(&h, record, sizeof h);
        for (size_t i = 0; i < h.size; i++) {
            record[i] = ring[PAGE + (tail + i) % size];
        }
        if (h.type == PERF_RECORD_SAMPLE) {
            take_sample(record + sizeof h, record + h.size);
        }
        tail += h.size;
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
    }
}

static int sample(int pid, int milliseconds, int rate)
{
    static uint8_t *rings[CPUS];
    static struct pollfd polled[CPUS];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_freq = (uint64_t)rate,
                                   .freq = 1,
                                   .inherit = 1,
                                   .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                   .sample_regs_user = MASK,
                                   .sample_stack_user = STACK_BYTES,
                                   .watermark = 1,
                                   .wakeup_watermark = RING_PAGES * PAGE / 4};
    for (int i = 0; i < cpus && i < (int)CPUS; i++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, pid, i, -1, PERF_FLAG_FD_CLOEXEC);
        rings[i] = fd < 0 ? MAP_FAILED : mmap(NULL, (RING_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (rings[i] == MAP_FAILED) {
            die("perf_event_open");
        }
        polled[i] = (struct pollfd){fd, POLLIN, 0};
    }
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        poll(polled, (nfds_t)cpus, 20);
        for (int i = 0; i < cpus; i++) {
            drain(rings[i]);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
    uint64_t all = 0;
    for (size_t i = 0; i <= UNWIND_BROKEN; i++) {
        all += ends[i];
    }
    printf("samples %" PRIu64 " frames %" PRIu64, all, frames);
    for (size_t i = 0; i <= UNWIND_BROKEN; i++) {
        printf(" %s %" PRIu64, end_names[i], ends[i]);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "rows") == 0) {
        return print_rows(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "stop") == 0) {
        return print_stopped((int)strtol(argv[2], NULL, 10));
    }
    if (argc == 5 && strcmp(argv[1], "sample") == 0) {
        return sample((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
    }
    fprintf(stderr, "usage: unwinder rows FILE | stop PID | sample PID MILLISECONDS HZ\n");
    return 64;
}
