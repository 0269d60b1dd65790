/* libelf asks fstat for the size of a file. glibc's fstat is newfstatat, a call with a path, which the sandbox of the
 * worker forbids. This definition serves the whole program, libelf included, by the call without a path. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}
