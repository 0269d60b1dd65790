/* Waits in all ways that a signal would end early, each several times, and names those that ended early. */
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS 30L

static int pipes[2], sockets[2], events;
static sem_t semaphore;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void wait_usleep(void)
{
    usleep(MS * 1000);
}

static void wait_nanosleep(void)
{
    struct timespec t = {0, MS * 1000000};
    nanosleep(&t, NULL);
}

static void wait_poll(void)
{
    struct pollfd p = {pipes[0], POLLIN, 0};
    poll(&p, 1, MS);
}

static void wait_epoll(void)
{
    struct epoll_event e;
    epoll_wait(events, &e, 1, MS);
}

static void wait_select(void)
{
    struct timeval t = {0, MS * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    select(pipes[0] + 1, &set, NULL, NULL, &t);
}

static void wait_recv(void)
{
    char byte;
    if (recv(sockets[0], &byte, 1, 0) >= 0) {
        puts("received");
    }
}

static void wait_semaphore(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += MS * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    sem_timedwait(&semaphore, &t);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*wait)(void);
    } ways[] = {{"usleep", wait_usleep},          {"nanosleep", wait_nanosleep}, {"poll", wait_poll},
                {"epoll_wait", wait_epoll},       {"select", wait_select},       {"recv", wait_recv},
                {"sem_timedwait", wait_semaphore}};
    struct timeval t = {0, MS * 1000};
    struct epoll_event e = {.events = EPOLLIN};
    bool good = pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0;
    events = epoll_create1(0);
    good = good && setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0 &&
           epoll_ctl(events, EPOLL_CTL_ADD, pipes[0], &e) == 0 && sem_init(&semaphore, 0, 0) == 0;
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        for (unsigned k = 0; k < 5; k++) {
            double begin = now();
            ways[i].wait();
            if (now() - begin < (double)MS - 2) {
                puts(ways[i].name);
            }
        }
    }
    return good ? 0 : 1;
}
