#include "net/lock.h"

#include <pthread.h>
#include <stdlib.h>

struct lock {
    pthread_mutex_t mutex;
};

struct lock *lock_new(void)
{
    struct lock *l = malloc(sizeof *l);

    if (l && pthread_mutex_init(&l->mutex, NULL)) {
        free(l);
        l = NULL;
    }
    return l;
}

void lock_free(struct lock *l)
{
    if (l) {
        pthread_mutex_destroy(&l->mutex);
    }
    free(l);
}

void lock_take(void *lock)
{
    struct lock *l = lock;

    pthread_mutex_lock(&l->mutex);
}

void lock_give(void *lock)
{
    struct lock *l = lock;

    pthread_mutex_unlock(&l->mutex);
}
