#include "net/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)
#define IDLE_SECONDS 5
#define FREE_SECONDS 1 /* how long the end waits for closes under way */

struct closer_job {
    TAILQ_ENTRY(closer_job) next;
    uint32_t uid;
    int fd;
};

/* Open descriptors of one sender: waiting and in close(). */
struct closer_sender {
    struct closer_sender *next;
    uint32_t uid;
    size_t count;
    unsigned running; /* in close() */
};

struct closer {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t filled, ended;
    TAILQ_HEAD(closer_jobs, closer_job) jobs;
    struct closer_sender *senders;
    size_t waiting; /* jobs in the list; those of a sender with CLOSER_RUNNING_PER_UID in close() stay there */
    unsigned threads, idle, threads_max;
    bool stopping;
};

static struct closer_sender **closer_find(struct closer *c, uint32_t uid)
{
    struct closer_sender **at = &c->senders;

    while (*at && (*at)->uid != uid) {
        at = &(*at)->next;
    }
    return at;
}

static void closer_remove_sender(struct closer *c, uint32_t uid)
{
    struct closer_sender **at = closer_find(c, uid), *sender = *at;

    sender->running -= sender->running > 0;
    if (--sender->count) {
        return;
    }
    *at = sender->next;
    free(sender);
}

/* Takes the first job of a sender that has not used up its share of the threads. Returns NULL if there is none. */
static struct closer_job *closer_pick(struct closer *c)
{
    struct closer_job *job;

    TAILQ_FOREACH(job, &c->jobs, next)
    {
        struct closer_sender *sender = *closer_find(c, job->uid);

        if (sender->running < CLOSER_RUNNING_PER_UID) {
            TAILQ_REMOVE(&c->jobs, job, next);
            sender->running++;
            c->waiting--;
            return job;
        }
    }
    return NULL;
}

/* Closes descriptors until none has come for IDLE_SECONDS. */
static void *closer_run(void *context)
{
    struct closer *c = context;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        struct closer_job *job;
        struct timespec until;
        int result = 0;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += IDLE_SECONDS;
        c->idle++;
        while (!(job = closer_pick(c)) && !c->stopping && result != ETIMEDOUT) {
            result = pthread_cond_timedwait(&c->filled, &c->lock, &until);
        }
        c->idle--;
        if (!job) {
            break;
        }
        pthread_mutex_unlock(&c->lock);
        close(job->fd); /* may never return */
        pthread_mutex_lock(&c->lock);
        closer_remove_sender(c, job->uid);
        free(job);
        pthread_cond_signal(&c->filled); /* the sender may have another, which was left in the list */
    }
    c->threads--;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

enum profd_status closer_new(unsigned threads_max, struct closer **out, struct profd_error *e)
{
    struct closer *c = calloc(1, sizeof *c);

    TRY(c ? PROFD_OK : profd_no_memory(e));
    c->threads_max = threads_max;
    TAILQ_INIT(&c->jobs);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->filled, NULL);
    pthread_cond_init(&c->ended, NULL);
    *out = c;
    return PROFD_OK;
}

void closer_close(struct closer *c, uint32_t uid, int fd)
{
    struct closer_job *job = c ? calloc(1, sizeof *job) : NULL;

    if (!job) {
        close(fd);
        return;
    }
    job->uid = uid;
    job->fd = fd;
    pthread_mutex_lock(&c->lock);
    struct closer_sender **sender = closer_find(c, uid);
    if (!*sender) {
        *sender = calloc(1, sizeof **sender);
    }
    if (!*sender) {
        pthread_mutex_unlock(&c->lock);
        free(job);
        close(fd);
        return;
    }
    (*sender)->uid = uid;
    (*sender)->count++;
    TAILQ_INSERT_TAIL(&c->jobs, job, next);
    c->waiting++;

    /* One more thread if none is free. Signals belong to the loop's thread. */
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t id;

    if (c->waiting > c->idle && c->threads < c->threads_max && !pthread_attr_init(&attributes)) {
        sigfillset(&all);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (!pthread_create(&id, &attributes, closer_run, c)) {
            c->threads++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    pthread_cond_signal(&c->filled);
    pthread_mutex_unlock(&c->lock);
}

ssize_t closer_receive(struct closer *closer, uint32_t uid, int fd, void *into, size_t n)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(CLOSER_FDS_MAX * sizeof(int))];
    } control;
    struct iovec io = {.iov_base = into, .iov_len = n};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    const ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    for (struct cmsghdr *h = got >= 0 ? CMSG_FIRSTHDR(&m) : NULL; h; h = CMSG_NXTHDR(&m, h)) {
        for (size_t i = 0; h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
                           CMSG_LEN((i + 1) * sizeof(int)) <= h->cmsg_len;
             i++) {
            int one;

            memcpy(&one, CMSG_DATA(h) + i * sizeof one, sizeof one);
            closer_close(closer, uid, one);
        }
    }
    return got;
}

void closer_close_connection(struct closer *closer, uint32_t uid, int fd)
{
    int domain = 0, unread = 0;
    socklen_t size = sizeof domain;

    /* After shutdown() nothing more is queued. */
    if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX && !shutdown(fd, SHUT_RD) &&
        !ioctl(fd, SIOCINQ, &unread) && unread > 0) {
        closer_close(closer, uid, fd);
    } else {
        close(fd);
    }
}

size_t closer_count(struct closer *c, uint32_t uid)
{
    const struct closer_sender *sender;
    size_t count;

    if (!c) {
        return 0;
    }
    pthread_mutex_lock(&c->lock);
    sender = *closer_find(c, uid);
    count = sender ? sender->count : 0;
    pthread_mutex_unlock(&c->lock);
    return count;
}

static struct closer *volatile closer_left; /* reachable, so that a search for leaks does not report it */

void closer_free(struct closer *c)
{
    struct timespec until;
    int result = 0;

    if (!c) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FREE_SECONDS;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->filled);
    while (c->threads && !result) {
        result = pthread_cond_timedwait(&c->ended, &c->lock, &until);
    }
    bool gone = !c->threads;
    pthread_mutex_unlock(&c->lock);
    if (!gone) {
        closer_left = c; /* a hanging thread still needs it */
        return;
    }
    for (struct closer_job *job; (job = TAILQ_FIRST(&c->jobs)) != NULL;) {
        TAILQ_REMOVE(&c->jobs, job, next);
        free(job); /* no thread could be made: the kernel closes it with the process */
    }
    while (c->senders) {
        c->senders->count = 1;
        closer_remove_sender(c, c->senders->uid);
    }
    pthread_cond_destroy(&c->filled);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
