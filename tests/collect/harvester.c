/* The daemon's part, for the collector's tests: takes ATTACH on a Unix socket, reads the memfds with pread through
 * proto/attach, and prints what it sees as one line of JSON for each "dump" on stdin. "want BUILD-ID" asks every client
 * for an executable and prints what comes with the next dump; "page PID PAUSED RATE" writes the daemon's word for the
 * processes of that pid; "sweep" reads all and prints how long that took; "quit" ends. Descriptors stay open when their
 * process is gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/attach_memory.h"
#include "proto/frame.h"
#include "proto/message.h"

#define CLIENTS_MAX 4096
#define BEAT_MS 500

struct client {
    int socket, memory;
    struct attach_page *page;
    bool greeted;
    uint8_t input[65536];
    size_t filled;
    int fds[16];
    unsigned fd_count;
    unsigned objects, declined;
    unsigned long long object_size;
    char failed[512];
};
static struct client *clients[CLIENTS_MAX];
static unsigned client_count;

static void send_message(struct client *c, const struct message *m, uint32_t tag)
{
    uint8_t *bytes;
    size_t n;
    if (message_encode(m, 0, tag, &bytes, &n, NULL) == PROFD_OK) {
        if (send(c->socket, bytes, n, MSG_NOSIGNAL) != (ssize_t)n && errno != EPIPE && errno != ECONNRESET) {
            snprintf(c->failed, sizeof c->failed, "answer not taken: %s", strerror(errno));
        }
        free(bytes);
    }
}

/* The page of a client, and its descriptor; −1 if it could not be made. */
static int page_make(struct client *c)
{
    int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, ATTACH_PAGE) != 0) {
        return -1;
    }
    c->page = mmap(NULL, ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *c->page = (struct attach_page){.magic = ATTACH_PAGE_MAGIC, .layout = ATTACH_LAYOUT, .beat = 1};
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0 ? fd : -1;
}

/* ACK of ATTACH, with the page and one descriptor more than was announced: the client must close that. */
static void page_send(struct client *c, uint32_t tag)
{
    uint8_t header[FRAME_HEADER_SIZE] = {0, 0, 0, 0, FRAME_VERSION, FRAME_ACK, 0, 1, (uint8_t)tag};
    char control[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct iovec part = {header, sizeof header};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    int fds[2] = {page_make(c), 0};
    h->cmsg_len = CMSG_LEN(sizeof fds);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(h), fds, sizeof fds);
    if (fds[0] < 0 ||
        (sendmsg(c->socket, &m, MSG_NOSIGNAL) != (ssize_t)sizeof header && errno != EPIPE && errno != ECONNRESET)) {
        snprintf(c->failed, sizeof c->failed, "no page: %s", strerror(errno));
    }
    close(fds[0]);
}

static void memory_take(struct client *c, int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS), wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;
    if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) != 0) {
        snprintf(c->failed, sizeof c->failed, "seals are %#x", (unsigned)seals);
    }
    c->memory = fd;
}

static void frame_take(struct client *c, const struct frame_header *f, const uint8_t *payload)
{
    if (frame_fds(f) > c->fd_count) {
        snprintf(c->failed, sizeof c->failed, "%u descriptors announced, %u came", frame_fds(f), c->fd_count);
        return;
    }
    if (f->type == FRAME_HELLO) {
        struct message m;
        if (message_decode(f->type, payload, f->length, &m, NULL) != PROFD_OK) {
            snprintf(c->failed, sizeof c->failed, "HELLO cannot be read");
            return;
        }
        message_done(&m);
        c->greeted = true;
        send_message(
            c, &(struct message){.type = FRAME_WELCOME, .as.welcome = {1, 1 << 20, 256, "harvester", 0, 0, false}},
            f->tag);
    } else if (f->type == FRAME_ATTACH && c->greeted && frame_fds(f) == 1 && c->memory < 0) {
        memory_take(c, c->fds[0]);
        page_send(c, f->tag);
    } else if (f->type == FRAME_OBJECT && frame_fds(f) == 1) {
        struct stat st;
        c->objects++;
        c->object_size = fstat(c->fds[0], &st) == 0 ? (unsigned long long)st.st_size : 0;
        close(c->fds[0]);
    } else if (f->type == FRAME_DECLINE) {
        c->declined++;
    } else {
        snprintf(c->failed, sizeof c->failed, "unexpected frame of type %u", f->type);
    }
    memmove(c->fds, c->fds + frame_fds(f), (c->fd_count - frame_fds(f)) * sizeof c->fds[0]);
    c->fd_count -= frame_fds(f);
}

static void frames_take(struct client *c)
{
    size_t at = 0;
    struct frame_header f;
    struct profd_error e;
    while (c->filled - at >= FRAME_HEADER_SIZE) {
        if (frame_decode(c->input + at, &f, &e) != PROFD_OK) {
            snprintf(c->failed, sizeof c->failed, "%s", e.sentence);
            return;
        }
        if (c->filled - at - FRAME_HEADER_SIZE < f.length) {
            break;
        }
        frame_take(c, &f, c->input + at + FRAME_HEADER_SIZE);
        at += FRAME_HEADER_SIZE + f.length;
    }
    memmove(c->input, c->input + at, c->filled - at);
    c->filled -= at;
}

static void client_read(struct client *c)
{
    char control[CMSG_SPACE(8 * sizeof(int))];
    struct iovec part = {c->input + c->filled, sizeof c->input - c->filled};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        close(c->socket);
        c->socket = -1;
        return;
    }
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int) && c->fd_count < 16; i++) {
            memcpy(&c->fds[c->fd_count++], CMSG_DATA(h) + i * sizeof(int), sizeof(int));
        }
    }
    c->filled += (size_t)n;
    frames_take(c);
}

static void client_new(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || client_count == CLIENTS_MAX) {
        return;
    }
    struct client *c = calloc(1, sizeof *c);
    c->socket = fd;
    c->memory = -1;
    clients[client_count++] = c;
}

/* A snapshot, in a page-aligned block. NULL with the sentence in e. */
static uint8_t *snapshot(int fd, size_t *size, struct profd_error *e)
{
    static uint8_t page[ATTACH_PAGE] __attribute__((aligned(4096)));
    struct stat st;
    uint64_t used;
    if (fstat(fd, &st) != 0 || pread(fd, page, sizeof page, 0) != (ssize_t)sizeof page) {
        profd_error_set(e, PROFD_IO, "cannot read");
        return NULL;
    }
    if (attach_measure(page, sizeof page, (uint64_t)st.st_size, &used, e) != PROFD_OK) {
        return NULL;
    }
    uint8_t *bytes = aligned_alloc(4096, used);
    for (uint64_t at = 0; bytes && at < used;) {
        ssize_t n = pread(fd, bytes + at, used - at, (off_t)at);
        if (n <= 0) {
            break;
        }
        at += (uint64_t)n;
    }
    *size = used;
    return bytes;
}

static void print_text(const char *text, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\' || (unsigned char)text[i] < ' ') {
            printf("\\u%04x", (unsigned char)text[i]);
        } else {
            putchar(text[i]);
        }
    }
    putchar('"');
}

static void print_hex(const char *name, const uint8_t *bytes, size_t n)
{
    printf("\"%s\":\"", name);
    for (size_t i = 0; i < n; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\",");
}

static void print_parts(const struct attach_image *image)
{
    bool bad;
    size_t at = 0, size;
    const char *name, *value;
    struct attach_cursor cursor = {0};
    struct attach_count count;
    printf("\"labels\":{");
    for (bool first = true; attach_label_next(image, &at, &name, &size, &value, &bad); first = false) {
        printf("%s", first ? "" : ",");
        print_text(name, size);
        putchar(':');
        print_text(value, strlen(value));
    }
    printf("},\"modules\":{");
    for (uint32_t id = 1, shown = 0; id <= image->module_count; id++) {
        struct attach_module m;
        if (!attach_module_get(image, id, &m, &bad)) {
            continue;
        }
        printf("%s\"%u\":{\"build\":\"%s\",\"low\":%llu,\"high\":%llu,\"bias\":%llu,\"loaded\":%s,\"name\":",
               shown++ ? "," : "", id, m.has_id ? m.id.text : "", (unsigned long long)m.low, (unsigned long long)m.high,
               (unsigned long long)m.bias, m.loaded ? "true" : "false");
        print_text(m.name, m.name_size);
        putchar('}');
    }
    printf("},\"counts\":[");
    for (bool first = true; attach_count_next(image, &cursor, &count); first = false) {
        printf("%s[%d,%u,%llu,%u,%llu,%llu]", first ? "" : ",", (int)count.kind, count.from_module,
               (unsigned long long)count.from, count.self_module, (unsigned long long)count.self,
               (unsigned long long)count.count);
    }
    printf("],\"bad\":%llu,\"not_yet\":%llu,", (unsigned long long)cursor.bad, (unsigned long long)cursor.not_yet);
}

/* Every node: [number, parent, kind, incomplete, module, address, begin or −1, count]. */
static void print_stacks(const struct attach_image *image)
{
    struct attach_cursor cursor = {0};
    struct attach_chunk chunk;
    struct attach_frame f;
    uint64_t size;
    uint32_t slots, number;
    bool first = true;
    printf("\"stacks\":[");
    while (attach_table_next(image, &cursor, &size)) {
        if (attach_table_kind(image, &cursor, &slots) != ATTACH_KIND_STACKS) {
            continue;
        }
        for (uint32_t i = 0; i < slots; i++) {
            struct attach_node n;
            memcpy(&chunk, image->bytes + cursor.at, sizeof chunk);
            memcpy(&n, image->bytes + cursor.at + sizeof chunk + i * sizeof n, sizeof n);
            if (attach_node_get(image, &cursor, i, &number, &f) == ATTACH_THERE) {
                printf("%s[%u,%u,%d,%d,%u,%llu,%lld,%llu]", first ? "" : ",", number, f.parent, (int)f.kind,
                       (int)f.incomplete, f.module, (unsigned long long)f.address,
                       f.has_begin ? (long long)f.begin : -1, (unsigned long long)n.count);
                first = false;
            }
        }
    }
    printf("],");
}

static void client_print(const struct client *c)
{
    struct attach_image image;
    struct profd_error e = {""};
    size_t size = 0;
    uint8_t *bytes = c->memory >= 0 ? snapshot(c->memory, &size, &e) : NULL;
    printf("{\"alive\":%s,\"objects\":%u,\"object_size\":%llu,\"declined\":%u,", c->socket >= 0 ? "true" : "false",
           c->objects, c->object_size, c->declined);
    if (bytes && attach_parse(bytes, size, &image, &e) == PROFD_OK) {
        printf("\"pid\":%u,\"rate\":%u,\"mode\":%u,\"start\":%llu,\"used\":%llu,\"exact\":%s,\"ticks_exact\":%s,",
               image.header.pid, image.header.rate, image.header.mode, (unsigned long long)image.header.start,
               (unsigned long long)image.header.used, attach_calls_exact(&image, NULL) ? "true" : "false",
               attach_ticks_exact(&image, NULL) ? "true" : "false");
        print_hex("instance", image.header.instance, ATTACH_INSTANCE_SIZE);
        print_hex("parent", image.header.parent, ATTACH_INSTANCE_SIZE);
        print_parts(&image);
        print_stacks(&image);
        for (unsigned i = 0; i < ATTACH_COUNTER_COUNT; i++) {
            printf("\"%s\":%llu,", attach_counter_name(i), (unsigned long long)image.header.counters[i]);
        }
    }
    printf("\"failed\":");
    const char *why = c->failed[0] ? c->failed : c->memory < 0 ? "never attached" : e.sentence;
    print_text(why, strlen(why));
    putchar('}');
    free(bytes);
}

/* One sweep over all that attached: [processes, bytes, slots, counts, microseconds]. */
static void sweep_print(void)
{
    struct timespec begin, end;
    unsigned long long processes = 0, bytes = 0, slots = 0, counts = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned i = 0; i < client_count; i++) {
        struct attach_image image;
        struct attach_cursor cursor = {0};
        struct attach_count count;
        size_t size;
        uint8_t *copy = clients[i]->memory >= 0 ? snapshot(clients[i]->memory, &size, NULL) : NULL;
        if (copy && attach_parse(copy, size, &image, NULL) == PROFD_OK) {
            processes++;
            bytes += size;
            slots += image.slots;
            while (attach_count_next(&image, &cursor, &count)) {
                counts++;
            }
        }
        free(copy);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("[%llu,%llu,%llu,%llu,%.1f]\n", processes, bytes, slots, counts,
           (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3);
    fflush(stdout);
}

static void want(const char *id)
{
    for (unsigned i = 0; i < client_count; i++) {
        if (clients[i]->socket >= 0) {
            send_message(clients[i], &(struct message){.type = FRAME_WANT_OBJECT, .as.want_object = {id, "any"}}, 77);
            if (clients[i]->page) {
                __atomic_fetch_add(&clients[i]->page->asked, 1, __ATOMIC_RELEASE);
            }
        }
    }
}

/* "PID PAUSED RATE" */
static void page_write(const char *words)
{
    unsigned pid, paused, rate;
    static uint8_t first[ATTACH_PAGE] __attribute__((aligned(4096)));
    if (sscanf(words, "%u %u %u", &pid, &paused, &rate) != 3) {
        return;
    }
    for (unsigned i = 0; i < client_count; i++) {
        struct attach_header header;
        if (!clients[i]->page || pread(clients[i]->memory, first, sizeof first, 0) != (ssize_t)sizeof first) {
            continue;
        }
        memcpy(&header, first, sizeof header);
        if (header.pid == pid) {
            __atomic_store_n(&clients[i]->page->rate, rate, __ATOMIC_RELAXED);
            __atomic_store_n(&clients[i]->page->paused, paused, __ATOMIC_RELAXED);
        }
    }
}

static bool command_run(void)
{
    char line[256];
    if (!fgets(line, sizeof line, stdin) || strncmp(line, "quit", 4) == 0) {
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "want ", 5) == 0) {
        want(line + 5);
    }
    if (strncmp(line, "page ", 5) == 0) {
        page_write(line + 5);
    }
    if (strcmp(line, "sweep") == 0) {
        sweep_print();
    }
    if (strcmp(line, "dump") != 0) {
        return true;
    }
    putchar('[');
    for (unsigned i = 0; i < client_count; i++) {
        printf("%s", i ? "," : "");
        client_print(clients[i]);
    }
    printf("]\n");
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static struct pollfd wait[CLIENTS_MAX + 2];
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        return 64;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
    setvbuf(stdin, NULL, _IONBF, 0);
    unlink(argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0) {
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        wait[0] = (struct pollfd){0, POLLIN, 0};
        wait[1] = (struct pollfd){listener, POLLIN, 0};
        unsigned n = client_count;
        for (unsigned i = 0; i < n; i++) {
            wait[i + 2] = (struct pollfd){clients[i]->socket, POLLIN, 0};
        }
        if (poll(wait, n + 2, BEAT_MS) < 0) {
            return 1;
        }
        for (unsigned i = 0; i < n; i++) {
            if (clients[i]->page) {
                __atomic_fetch_add(&clients[i]->page->beat, 1, __ATOMIC_RELAXED);
            }
        }
        if (wait[1].revents) {
            client_new(listener);
        }
        bool clients_busy = wait[1].revents != 0;
        for (unsigned i = 0; i < n; i++) {
            if (wait[i + 2].revents) {
                client_read(clients[i]);
                clients_busy = true;
            }
        }
        /* What clients sent before the command was given is taken before it is obeyed. */
        if (!clients_busy && wait[0].revents && !command_run()) {
            return 0;
        }
    }
}
