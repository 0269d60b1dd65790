// Protects suites under the address sanitizer from a deadlock. Criterion's runner forks while a thread of its own may
// be in malloc; the sanitizer of gcc 12 leaves its allocator locked in the child, and the test never starts. Here the
// allocator is locked around each fork(), as the sanitizers of later compilers do. Only the static library of the
// sanitizer has these two functions.
#include <pthread.h>

void lock_allocator(void) __asm__("_ZN6__lsan13LockAllocatorEv");
void unlock_allocator(void) __asm__("_ZN6__lsan15UnlockAllocatorEv");

__attribute__((constructor)) static void lock_around_fork(void)
{
    pthread_atfork(lock_allocator, unlock_allocator, unlock_allocator);
}
