#include "client/collect/handover.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/memfd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "client/collect/collect.h"
#include "client/collect/handover_page.h"
#include "client/collect/module.h"
#include "client/collect/option.h"
#include "client/collect/raw.h"
#include "client/collect/region.h"
#include "proto/attach_memory.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "proto/runtime.h"
#include "proto/status.h"
#include "proto/uidmap.h"

/* --- the frames of profd-protocol(7) that the collector needs, without any library --- */

/* Descriptors of the process's objects, for the daemon. */

#define IMAGE_MOST 65536u

/* The image is ended by its section headers. The kernel reads it: an image that ends early is then an error and not a
 * fault. */
static int image_open(uintptr_t low)
{
    static const char label[] = "profd-vdso";
    /* A filter that allows the other system calls may kill the program because of memfd_create(). */
    const ElfW(Ehdr) *h = (const void *)low;
    uint64_t size = low && collect.header->filters == 0 ? h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize : 0;
    size = size < IMAGE_MOST ? size : 0;
    long fd = size ? raw_call(SYS_memfd_create, label, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0) : -1;
    if (fd >= 0 &&
        (raw_call(SYS_write, fd, low, size, 0) != (long)size ||
         raw_call(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, 0) < 0)) {
        raw_call(SYS_close, fd, 0, 0, 0);
        fd = -1;
    }
    return (int)fd;
}

/* Opens the file of a module, by its number and name. For the vDSO, which has no file, it is a sealed memory file with
 * its image. −1 if it is not available. Raw system calls only. */
static int handover_object_open(uint32_t number, const char *name)
{
    static const char self[] = "/proc/self/exe";
    long fd = -1;
    if (raw_after(name, "linux-vdso") || raw_after(name, "linux-gate")) {
        return image_open(module_get_low(number));
    }
    if (number == 1) { /* the program by the kernel's link: its path may be in another root, or removed */
        fd = raw_call(SYS_openat, AT_FDCWD, self, O_RDONLY | O_CLOEXEC, 0);
    }
    if (fd < 0) {
        fd = raw_call(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    }
    return fd < 0 ? -1 : (int)fd;
}

#define ATTACH_TAG 1u
#define OBJECT_TAG 2u    /* tag of executables that were not requested */
#define OBJECTS_MOST 32u /* number of executables that are sent without a request */

static uint8_t input[8192]; /* beginning of a frame; a longer frame ends the connection */
static uint32_t filled;
static bool taken;                     /* ATTACH was acknowledged */
static bool stopping;                  /* the daemon closed the connection, but did not refuse the process */
static char name[ATTACH_NAME_MAX + 1]; /* name of an object; only one thread uses it at a time */

static void u32_put(uint8_t *to, uint32_t n)
{
    for (unsigned i = 0; i < 4; i++) {
        to[i] = (uint8_t)(n >> (8 * i));
    }
}

static uint32_t u32_get(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void header_put(uint8_t out[FRAME_HEADER_SIZE], uint32_t length, uint8_t type, unsigned fds, uint32_t tag)
{
    u32_put(out, length);
    out[4] = FRAME_VERSION;
    out[5] = type;
    out[6] = 0;
    out[7] = (uint8_t)fds; /* bits 8–11 of the flags */
    u32_put(out + 8, tag);
}

/* Control data for one descriptor beside the bytes of a message. */
union fd_control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void message_init(struct msghdr *m, struct iovec *part, union fd_control *control)
{
    raw_zero(m, sizeof *m);
    raw_zero(control, sizeof *control);
    m->msg_iov = part;
    m->msg_iovlen = 1;
    m->msg_control = control->bytes;
    m->msg_controllen = sizeof control->bytes;
}

/* Sends bytes, with a descriptor if fd ≥ 0. False if not all were sent. */
static bool bytes_send(int socket, const uint8_t *bytes, size_t n, int fd)
{
    struct iovec part = {(void *)(uintptr_t)bytes, n};
    union fd_control control;
    struct msghdr m;
    message_init(&m, &part, &control);
    if (fd < 0) {
        m.msg_control = NULL;
        m.msg_controllen = 0;
    } else {
        control.head.cmsg_len = CMSG_LEN(sizeof fd);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        raw_copy(CMSG_DATA(&control.head), &fd, sizeof fd);
    }
    return raw_call(SYS_sendmsg, socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT, 0) == (long)n;
}

/* Sends OBJECT with fd, or DECLINE if fd is −1. The build-id goes into field 1; the name is the daemon's. */
static bool object_send(int socket, const uint8_t *id, unsigned size, uint32_t tag, int fd)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t out[FRAME_HEADER_SIZE + 2 + 2 * BUILDID_BYTES_MAX];
    header_put(out, 2 + 2 * size, fd >= 0 ? FRAME_OBJECT : FRAME_DECLINE, fd >= 0, tag);
    out[FRAME_HEADER_SIZE] = 0x0a;
    out[FRAME_HEADER_SIZE + 1] = (uint8_t)(2 * size);
    for (unsigned i = 0; i < size; i++) {
        out[FRAME_HEADER_SIZE + 2 + 2 * i] = (uint8_t)digits[id[i] >> 4];
        out[FRAME_HEADER_SIZE + 3 + 2 * i] = (uint8_t)digits[id[i] & 15];
    }
    bool sent = bytes_send(socket, out, FRAME_HEADER_SIZE + 2 + 2 * size, fd);
    if (fd >= 0) {
        raw_call(SYS_close, fd, 0, 0, 0);
    }
    return sent;
}

/* Sends the executables of the program and of the objects loaded so far, as long as the socket accepts them, so that a
 * process that is idle afterwards has function names. */
static void objects_offer(int socket)
{
    uint8_t id[BUILDID_BYTES_MAX];
    const uint32_t ours =
        module_find((uintptr_t)objects_offer).module; /* ticks in this function are attributed to no function */
    uint32_t n = module_count();
    bool more = true;
    n = n < OBJECTS_MOST ? n : OBJECTS_MOST;
    for (uint32_t i = 1; i <= n && more; i++) {
        unsigned size = i == ours && i > 1 ? 0 : module_get(i, id, name, sizeof name);
        int fd = size && name[0] == '/' ? handover_object_open(i, name) : -1;
        more = fd < 0 || object_send(socket, id, size, OBJECT_TAG, fd);
    }
}

/* Field 1 of WANT_OBJECT: the build-id in hexadecimal. Returns its length, 0 if no object here can have it. */
static unsigned build_id_get(const uint8_t *payload, uint32_t n, uint8_t id[BUILDID_BYTES_MAX])
{
    if (n < 2 || payload[0] != 0x0a || payload[1] > 2 * BUILDID_BYTES_MAX || payload[1] % 2 || payload[1] > n - 2) {
        return 0;
    }
    for (unsigned i = 0; i < payload[1]; i++) {
        uint8_t c = payload[2 + i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) {
            return 0;
        }
        id[i / 2] = (uint8_t)(i % 2 ? id[i / 2] | digit : digit << 4);
    }
    return payload[1] / 2u;
}

static bool lost; /* the daemon closed while it was being answered, which is no refusal */

static bool frame_take(int socket, const uint8_t *frame, uint32_t length)
{
    const uint8_t *payload = frame + FRAME_HEADER_SIZE;
    const uint32_t tag = u32_get(frame + 8);
    switch (frame[5]) {
    case FRAME_WANT_OBJECT: {
        uint8_t id[BUILDID_BYTES_MAX];
        unsigned size = build_id_get(payload, length, id);
        unsigned number = size ? module_name_by_id(id, size, name, sizeof name) : 0;
        lost = !object_send(socket, id, size, tag, number ? handover_object_open(number, name) : -1);
        return !lost;
    }
    case FRAME_NACK: /* of ATTACH or of the connection; the refusal of an executable has no effect */
        stopping = length >= 2 && payload[0] == 0x08 && payload[1] == PROFD_STOPPING; /* field 1: the status */
        return tag > ATTACH_TAG;
    case FRAME_ACK:
        taken = taken || tag == ATTACH_TAG;
        return true;
    default:
        return true; /* WELCOME, and messages of later daemons */
    }
}

static bool frames_take(int socket)
{
    uint32_t at = 0;
    bool good = true;
    while (good && filled - at >= FRAME_HEADER_SIZE) {
        uint32_t length = u32_get(input + at);
        if (length > sizeof input - FRAME_HEADER_SIZE) {
            return false;
        }
        if (filled - at - FRAME_HEADER_SIZE < length) {
            break;
        }
        good = frame_take(socket, input + at, length);
        at += FRAME_HEADER_SIZE + length;
    }
    for (uint32_t i = at; i < filled; i++) {
        input[i - at] = input[i];
    }
    filled -= at;
    return good;
}

/* Received descriptors: the daemon sends only its page. It is mapped immediately, whichever frame it belongs to, and
 * every descriptor is closed. */
static void pages_take(struct msghdr *m)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m); /* there is space for one */
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
        return;
    }
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
        int fd;
        raw_copy(&fd, CMSG_DATA(c) + at, sizeof fd);
        handover_page_take(fd);
    }
}

enum peer_state { PEER_OPEN, PEER_OVER, PEER_REFUSED };

/* Handles received messages without waiting: answers WANT_OBJECT, maps the daemon's page. OVER: the connection is
 * closed or closing. REFUSED: the daemon refuses the process, or is stopping. */
static enum peer_state frames_listen(int socket)
{
    lost = false;
    for (;;) {
        struct iovec part = {input + filled, sizeof input - filled};
        union fd_control control;
        struct msghdr m;
        message_init(&m, &part, &control); /* the kernel closes descriptors that do not fit */
        long got = raw_call(SYS_recvmsg, socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0);
        if (got == -EAGAIN || got == -EINTR) {
            return PEER_OPEN;
        }
        if (got >= 0) {
            pages_take(&m);
        }
        if (got <= 0) {
            return PEER_OVER;
        }
        filled += (uint32_t)got;
        if (!frames_take(socket)) {
            return lost ? PEER_OVER : PEER_REFUSED;
        }
    }
}

/* --- the connection --- */

/* The uid of "profd:x:UID:…" in one line of /etc/passwd. */
static bool line_is_profd(const char *line, uint32_t uid)
{
    const char *at = raw_after(line, "profd:");
    uint64_t n = 0;
    if (!at) {
        return false;
    }
    while (*at && *at != ':') {
        at++;
    }
    for (at += *at == ':'; *at >= '0' && *at <= '9' && n < UINT32_MAX; at++) {
        n = n * 10 + (uint64_t)(*at - '0');
    }
    return *at == ':' && n == uid;
}

/* getpwnam of libc loads libraries and takes locks. */
static bool is_profd(uint32_t uid)
{
    static const char path[] = "/etc/passwd";
    char line[256], block[1024];
    size_t n = 0;
    bool found = false;
    long got, fd = raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
    if (fd < 0) {
        return false;
    }
    while (!found && (got = raw_call(SYS_read, fd, block, sizeof block, 0)) > 0) {
        for (long i = 0; i < got && !found; i++) {
            if (block[i] == '\n') {
                line[n] = '\0';
                found = line_is_profd(line, uid);
                n = 0;
            } else if (n + 1 < sizeof line) {
                line[n++] = block[i];
            }
        }
    }
    raw_call(SYS_close, fd, 0, 0, 0);
    return found;
}

/* Reads the beginning of a file; 0 bytes if it cannot be read. */
static size_t read_beginning(const char *path, char *out, size_t size)
{
    long got = 0, fd = raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
    if (fd < 0) {
        return 0;
    }
    got = raw_call(SYS_read, fd, out, size, 0);
    raw_call(SYS_close, fd, 0, 0, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool is_trusted(int fd)
{
    struct ucred peer = {0, 0, 0};
    socklen_t size = sizeof peer;
    char overflow[16], map[256]; /* on the stack of a signal handler; a map of all users has fewer lines */
    if (raw_call6(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, (long)&peer, (long)&size, 0) != 0) {
        return false;
    }
    if (peer.uid == 0) {
        return true;
    }
    if (peer.uid == uidmap_unproven(overflow, read_beginning(UIDMAP_OVERFLOW_PATH, overflow, sizeof overflow), map,
                                    read_beginning(UIDMAP_PATH, map, sizeof map))) {
        return false;
    }
    return peer.uid == (uint32_t)raw_call(SYS_geteuid, 0, 0, 0, 0) || peer.uid == option.daemon_uid ||
           is_profd(peer.uid);
}

static bool shared_is_private(void)
{
    const uint32_t uid = (uint32_t)raw_call(SYS_geteuid, 0, 0, 0, 0);
    char path[RUNTIME_SIZE];
    struct stat st;
    runtime_directory(RUNTIME_SHARED, uid, path);
    raw_zero(&st, sizeof st);
    return raw_call(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           runtime_is_private(st.st_mode, st.st_uid, uid);
}

/* Returns a connected, nonblocking socket to the first daemon of the options that answers and runs as root, as the user
 * profd, as the current user, or as that of PROFD_DAEMON_UID, with a uid that identifies this user (proto/uidmap.h).
 * Negative, as −errno: there is none; EAGAIN: its backlog is full. */
static int handover_peer_dial(void)
{
    long why = -ENOENT;
    for (unsigned i = 0; i < OPTION_SOCKETS; i++) {
        const struct sockaddr_un *a = &option.sockets[i];
        if (a->sun_family != AF_UNIX || (i == OPTION_SOCKET_SHARED && !shared_is_private())) {
            continue;
        }
        long fd = raw_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
        if (fd < 0) {
            return (int)fd;
        }
        long size = (long)(offsetof(struct sockaddr_un, sun_path) + raw_length(a->sun_path) + 1);
        long failed = raw_call(SYS_connect, fd, a, size, 0);
        if (failed == 0 && is_trusted((int)fd)) {
            return (int)fd;
        }
        raw_call(SYS_close, fd, 0, 0, 0);
        why = failed == -EAGAIN ? failed : why;
    }
    return (int)why;
}

#define WAIT_MOST 64000u /* ms between two attempts */
#define WAIT_MORE 1000u

/* A descriptor's number, and the file for which it was opened. */
struct held {
    int fd; /* −1: none */
    uint64_t device, inode;
};

static struct held memory = {-1, 0, 0}, peer = {-1, 0, 0};
static uint32_t looking; /* a thread is executing this */
static bool offers; /* the next daemon also gets the executables; those of a fork's child were sent by its parent */
static uint64_t wait, wait_end; /* ms between two attempts, and time of the next one */

static void hold(struct held *h, int fd)
{
    struct stat st;
    raw_zero(&st, sizeof st);
    h->fd = fd >= 0 && raw_call(SYS_fstat, fd, &st, 0, 0) == 0 ? fd : -1;
    h->device = st.st_dev;
    h->inode = st.st_ino;
}

/* Returns the descriptor if the number still refers to the collector's file. */
static int held_check(struct held *h)
{
    struct stat st;
    raw_zero(&st, sizeof st);
    if (h->fd >= 0 && (raw_call(SYS_fstat, h->fd, &st, 0, 0) != 0 || st.st_dev != h->device || st.st_ino != h->inode)) {
        h->fd = -1;
    }
    return h->fd;
}

static void drop(struct held *h)
{
    if (held_check(h) >= 0) {
        raw_call(SYS_close, h->fd, 0, 0, 0);
    }
    h->fd = -1;
}

static uint64_t handover_now_ms(void)
{
    struct timespec t = {0, 0};
    raw_call(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, &t, 0, 0);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A daemon that is stopping accepts connections until it ends, and another follows soon. */
static void back_off(void)
{
    wait = stopping ? WAIT_MORE : wait * 2 + WAIT_MORE > WAIT_MOST ? WAIT_MOST : wait * 2 + WAIT_MORE;
    wait_end = handover_now_ms() + wait;
}

/* Connects, and sends HELLO, and ATTACH with the memory, without waiting for WELCOME. 0, or −errno: EAGAIN means that
 * the daemon is busy. */
static int attach(void)
{
    /* Hello: version_oldest 1, version_newest 1, client "collect". */
    static const uint8_t words[] = {0x08, 1, 0x10, 1, 0x1a, 7, 'c', 'o', 'l', 'l', 'e', 'c', 't'};
    uint8_t hello[FRAME_HEADER_SIZE + sizeof words], request[FRAME_HEADER_SIZE];
    int fd = memory.fd >= 0 ? handover_peer_dial() : -ENOENT;
    if (fd < 0) {
        return fd;
    }
    fd = region_descriptor_lift(fd);
    header_put(hello, sizeof words, FRAME_HELLO, 0, 0);
    raw_copy(hello + FRAME_HEADER_SIZE, words, sizeof words);
    header_put(request, 0, FRAME_ATTACH, 1, ATTACH_TAG);
    if (!bytes_send(fd, hello, sizeof hello, -1) || !bytes_send(fd, request, sizeof request, memory.fd)) {
        raw_call(SYS_close, fd, 0, 0, 0);
        back_off(); /* it did not even listen */
        return -EPIPE;
    }
    if (offers) {
        objects_offer(fd);
    }
    offers = true;
    hold(&peer, fd);
    filled = 0;
    taken = false;
    stopping = false;
    return peer.fd >= 0 ? 0 : -EPIPE;
}

static void attach_again(void)
{
    if ((wait > 0 && handover_now_ms() < wait_end) || held_check(&memory) < 0) {
        return;
    }
    wait_end = handover_now_ms() + wait;
    attach();
}

/* A restarted daemon is found at the next attempt; after a refusal the attempts become rarer. */
static void peer_listen(void)
{
    enum peer_state state = frames_listen(peer.fd);
    if (taken) {
        wait = 0;
    }
    if (state == PEER_OPEN) {
        return;
    }
    drop(&peer);
    if (state == PEER_REFUSED) {
        back_off();
    } else {
        wait = 0;
    }
}

static uint64_t cpu_now(void)
{
    struct timespec t = {0, 0};
    raw_call(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Records the CPU time that the process has used since handover_begin. */
static void handover_note_cpu(void)
{
    uint64_t *counter = &collect.header->counters[ATTACH_COUNTER_CPU_NS],
             before = __atomic_load_n(counter, __ATOMIC_RELAXED);
    uint64_t now = cpu_now() - collect.header->cpu_before;
    while (now > before &&
           !__atomic_compare_exchange_n(counter, &before, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

bool handover_look(void)
{
    if (raw_denied || __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
    handover_note_cpu();
    if (held_check(&peer) >= 0) {
        peer_listen();
    }
    if (peer.fd < 0) {
        attach_again();
    }
    bool soon = peer.fd >= 0 && !taken;
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
    return soon;
}

void handover_look_last(void)
{
    const struct timespec nap = {0, 2000000};
    if (raw_denied || __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE)) {
        return;
    }
    handover_note_cpu();
    if (held_check(&peer) >= 0) {
        peer_listen();
    }
    if (peer.fd < 0 && (wait == 0 || stopping) && held_check(&memory) >= 0) {
        for (uint64_t end = handover_now_ms() + LIMIT_EXIT_MS; attach() == -EAGAIN && handover_now_ms() < end;) {
            raw_call(SYS_nanosleep, &nap, 0, 0, 0);
        }
    }
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

void handover_begin(int memfd, bool child)
{
    offers = !child;
    hold(&memory, memfd);
    wait = wait_end = 0;
    looking = 0;
    collect.header->cpu_before = cpu_now();
    attach_again();
}

void handover_reset(void)
{
    drop(&memory);
    drop(&peer);
    handover_page_reset();
}
