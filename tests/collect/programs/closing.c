/* Stacks on which an unwinder meets addresses of objects that are being closed. stale() has unwind information that is
 * wrong, as hand-written assembly has: by it, the return address is a word that was left there, and points into an
 * object that another thread closes with dlclose(), or that libc closes by itself. */
#define _GNU_SOURCE
#ifdef PLUGIN
int plugin_a(int n)
{
    return n * n + 1;
}
#else
#include <dlfcn.h>
#include <iconv.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void stale(const volatile uintptr_t *word, const volatile int *stop);
#ifdef __x86_64__
__asm__(
    ".globl stale\n.type stale, @function\nstale:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset 16, -16\n"
    "sub $24, %rsp\n.cfi_adjust_cfa_offset 8\n" /* says: the return address is the word at the new stack pointer + 8 */
    "1: mov (%rdi), %rax\nmov %rax, 8(%rsp)\nmov $2000, %ecx\n2: dec %ecx\njnz 2b\ncmpl $0, (%rsi)\nje 1b\n"
    "add $24, %rsp\nret\n.cfi_endproc\n.size stale, .-stale");
#endif

static volatile uintptr_t word;
static volatile int stop;

static void *work(void *unused)
{
    stale(&word, &stop);
    return unused;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* libc's own modules: nobody calls dlclose() for them. */
static int find_module(struct dl_phdr_info *i, size_t size, void *out)
{
    (void)size;
    if (strstr(i->dlpi_name, "/gconv/") == NULL) {
        return 0;
    }
    for (int k = 0; k < i->dlpi_phnum; k++) {
        if (i->dlpi_phdr[k].p_type == PT_LOAD && i->dlpi_phdr[k].p_flags & PF_X) {
            *(uintptr_t *)out = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr + i->dlpi_phdr[k].p_memsz / 2;
        }
    }
    return 1;
}

static void pause_for(double seconds)
{
    for (double end = now() + seconds; now() < end;) {
    }
}

static int by_libc(void)
{
    uintptr_t found = 0, left = 0;
    iconv_t c = iconv_open("UTF-8", "EBCDIC-US");
    if (c == (iconv_t)-1 || dl_iterate_phdr(find_module, &found) == 0 || found == 0) {
        puts("no module");
        return 0;
    }
    word = found;
    pause_for(0.3); /* ticks meet it */
    word = 0;
    iconv_close(c);
    for (int i = 0; i < 20; i++) { /* it is unloaded after others were */
        c = iconv_open("UTF-8", "IBM037");
        iconv_close(c);
    }
    dl_iterate_phdr(find_module, &left);
    word = found;
    pause_for(0.3);
    puts(left == found ? "still there" : "good");
    return 0;
}

static int by_dlclose(const char *path, double seconds)
{
    for (double end = now() + seconds; now() < end;) {
        void *handle = dlopen(path, RTLD_NOW);
        if (handle == NULL) {
            return 1;
        }
        word = (uintptr_t)dlsym(handle, "plugin_a") + 8;
        for (volatile int i = 0; i < 3000; i++) {
        }
        dlclose(handle);
    }
    puts("good");
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    int failed = argc > 2 ? by_dlclose(argv[1], atof(argv[2])) : by_libc();
    stop = 1;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return failed;
}
#endif
