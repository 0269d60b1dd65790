#include "client/collect/handover_frame.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/memfd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "client/collect/collect.h"
#include "client/collect/handover_page.h"
#include "client/collect/module.h"
#include "client/collect/raw.h"
#include "proto/attach_memory.h"
#include "proto/frame.h"
#include "proto/status.h"

/* Descriptors of the process's objects, for the daemon. */

#define IMAGE_MOST 65536u

/* Size of the image, from its section headers, which end it. */
static uint64_t image_size(const ElfW(Ehdr) * h)
{
    uint64_t size = h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize;
    return size < IMAGE_MOST ? size : 0;
}

/* The kernel reads the image: an image that ends early is then an error and not a fault. */
static int image_open(uintptr_t low)
{
    static const char label[] = "profd-vdso";
    /* A filter that allows the other system calls may kill the program because of memfd_create(). */
    uint64_t size = low && collect.header->filters == 0 ? image_size((const ElfW(Ehdr) *)low) : 0;
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

void handover_frame_offer(int socket)
{
    uint8_t id[BUILDID_BYTES_MAX];
    const uint32_t ours =
        module_find((uintptr_t)handover_frame_offer).module; /* ticks in this function are attributed to no function */
    uint32_t n = module_count();
    bool more = true;
    n = n < OBJECTS_MOST ? n : OBJECTS_MOST;
    for (uint32_t i = 1; i <= n && more; i++) {
        unsigned size = i == ours && i > 1 ? 0 : module_get(i, id, name, sizeof name);
        int fd = size && name[0] == '/' ? handover_object_open(i, name) : -1;
        more = fd < 0 || object_send(socket, id, size, OBJECT_TAG, fd);
    }
}

bool handover_frame_greet(int socket, int memfd)
{
    /* Hello: version_oldest 1, version_newest 1, client "collect". */
    static const uint8_t words[] = {0x08, 1, 0x10, 1, 0x1a, 7, 'c', 'o', 'l', 'l', 'e', 'c', 't'};
    uint8_t hello[FRAME_HEADER_SIZE + sizeof words], attach[FRAME_HEADER_SIZE];
    header_put(hello, sizeof words, FRAME_HELLO, 0, 0);
    raw_copy(hello + FRAME_HEADER_SIZE, words, sizeof words);
    header_put(attach, 0, FRAME_ATTACH, 1, ATTACH_TAG);
    return bytes_send(socket, hello, sizeof hello, -1) && bytes_send(socket, attach, sizeof attach, memfd);
}

void handover_frame_begin(void)
{
    filled = 0;
    taken = false;
    stopping = false;
}

bool handover_frame_is_taken(void)
{
    return taken;
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

static bool object_answer(int socket, const uint8_t *payload, uint32_t n, uint32_t tag)
{
    uint8_t id[BUILDID_BYTES_MAX];
    unsigned size = build_id_get(payload, n, id);
    unsigned number = size ? module_name_by_id(id, size, name, sizeof name) : 0;
    return object_send(socket, id, size, tag, number ? handover_object_open(number, name) : -1);
}

static bool lost; /* the daemon closed while it was being answered, which is no refusal */

/* Field 1 of NACK: the status. */
static bool is_stopping(const uint8_t *payload, uint32_t n)
{
    return n >= 2 && payload[0] == 0x08 && payload[1] == PROFD_STOPPING;
}

static bool frame_take(int socket, const uint8_t *frame, uint32_t length)
{
    switch (frame[5]) {
    case FRAME_WANT_OBJECT:
        lost = !object_answer(socket, frame + FRAME_HEADER_SIZE, length, u32_get(frame + 8));
        return !lost;
    case FRAME_NACK: /* of ATTACH or of the connection; the refusal of an executable has no effect */
        stopping = is_stopping(frame + FRAME_HEADER_SIZE, length);
        return u32_get(frame + 8) > ATTACH_TAG;
    case FRAME_ACK:
        taken = taken || u32_get(frame + 8) == ATTACH_TAG;
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

/* Like recv(): appends bytes to those received before. */
static long bytes_take(int socket)
{
    struct iovec part = {input + filled, sizeof input - filled};
    union fd_control control;
    struct msghdr m;
    message_init(&m, &part, &control); /* the kernel closes descriptors that do not fit */
    long got = raw_call(SYS_recvmsg, socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0);
    if (got >= 0) {
        pages_take(&m);
    }
    return got;
}

enum handover_frame_state handover_frame_listen(int socket)
{
    lost = false;
    for (;;) {
        long got = bytes_take(socket);
        if (got == -EAGAIN || got == -EINTR) {
            return HANDOVER_OPEN;
        }
        if (got <= 0) {
            return HANDOVER_OVER;
        }
        filled += (uint32_t)got;
        if (!frames_take(socket)) {
            return lost ? HANDOVER_OVER : HANDOVER_REFUSED;
        }
    }
}
