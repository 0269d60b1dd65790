#include "client/collect/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "client/collect/collect.h"
#include "client/collect/handover_frame.h"
#include "client/collect/handover_page.h"
#include "client/collect/option.h"
#include "client/collect/raw.h"
#include "client/collect/region.h"
#include "proto/limits.h"
#include "proto/runtime.h"
#include "proto/uidmap.h"

/* Connects to a daemon that is accepted. */

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
    return peer.uid == (uint32_t)raw_call(SYS_geteuid, 0, 0, 0, 0) || is_profd(peer.uid);
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
 * profd, or as the current user, with a uid that identifies this user (proto/uidmap.h). Negative, as −errno: there is
 * none; EAGAIN: its backlog is full. */
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

static void back_off(void)
{
    wait = wait * 2 + WAIT_MORE > WAIT_MOST ? WAIT_MOST : wait * 2 + WAIT_MORE;
    wait_end = handover_now_ms() + wait;
}

/* 0, or −errno: EAGAIN means that the daemon is busy. */
static int attach(void)
{
    int fd = memory.fd >= 0 ? handover_peer_dial() : -ENOENT;
    if (fd < 0) {
        return fd;
    }
    fd = region_descriptor_lift(fd);
    if (!handover_frame_greet(fd, memory.fd)) {
        raw_call(SYS_close, fd, 0, 0, 0);
        back_off(); /* it did not even listen */
        return -EPIPE;
    }
    if (offers) {
        handover_frame_offer(fd);
    }
    offers = true;
    hold(&peer, fd);
    handover_frame_begin();
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
    enum handover_frame_state state = handover_frame_listen(peer.fd);
    if (handover_frame_is_taken()) {
        wait = 0;
    }
    if (state == HANDOVER_OPEN) {
        return;
    }
    drop(&peer);
    if (state == HANDOVER_REFUSED) {
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
    bool soon = peer.fd >= 0 && !handover_frame_is_taken();
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
    if (peer.fd < 0 && wait == 0 && held_check(&memory) >= 0) {
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
