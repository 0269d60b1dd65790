/* The real broker and worker; and workers that misbehave behind the walls. */
#include "elf/broker.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/elf_read.h"
#include "elf/sandbox.h"
#include "elf/worker.h"
#include "tests/unit/elf/tools.h"

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

static void build(void)
{
    tools_write("a.cc", "static int __attribute__((noipa)) h(int x) { return x + 1; }\nint f(int x) { return h(x) * "
                        "h(x + 1); }\nint main(int c, char **) { return f(c); }\n");
    tools_run("g++ -g -O2 -Wl,--build-id=sha1 a.cc -o a && objcopy --only-keep-debug a a.debug && strip -o b a");
}

/* What the broker answers is what elf_read says in process, byte for byte. */
static void compare(struct broker *b, const char *file, const char *debug)
{
    int fd = tools_open(file), separate = debug == NULL ? -1 : tools_open(debug);
    uint8_t *answer, *own;
    size_t size, own_size;
    struct profd_error e = {""};
    cr_assert_eq(broker_read_object(b, &(struct broker_file){fd, separate, UINT64_MAX, false}, &answer, &size, &e),
                 PROFD_OK, "%s", e.sentence);
    cr_assert_eq(object_encode(tools_read(file, debug), &own, &own_size, NULL), PROFD_OK);
    cr_expect_eq(size, own_size);
    cr_expect(size == own_size && memcmp(answer, own, size) == 0);
    struct arena *a = arena_new(0);
    struct object *o;
    cr_expect_eq(object_decode(a, answer, size, &o, &e), PROFD_OK, "%s", e.sentence);
    arena_free(a);
    free(answer);
    free(own);
    close(fd);
    if (separate >= 0) {
        close(separate);
    }
}

static enum profd_status ask(struct broker *b, int fd, struct profd_error *e)
{
    uint8_t *answer = NULL;
    size_t size = 0;
    enum profd_status status =
        broker_read_object(b, &(struct broker_file){fd, -1, UINT64_MAX, false}, &answer, &size, e);
    if (status == PROFD_OK) {
        free(answer);
    } else {
        cr_expect(answer == NULL && size == 0, "results are untouched on failure");
    }
    return status;
}

Test(elf_broker, answers_as_in_process)
{
    build();
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    unsigned before = open_descriptors();
    compare(b, "a", NULL);
    compare(b, "b", NULL);
    compare(b, "b", "a.debug");
    compare(b, "/bin/bash", NULL);
    cr_expect_eq(open_descriptors(), before);
    broker_stop(b);
    broker_stop(NULL);
}

Test(elf_broker, refuses_in_words_and_goes_on)
{
    build();
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    struct profd_error e;
    int two[2], zero = open("/dev/zero", O_RDONLY), text = tools_open("a.cc"), path = open("/bin/sh", O_PATH);
    cr_assert_eq(pipe(two), 0);
    unsigned before = open_descriptors();
    for (unsigned round = 0; round < 3; round++) {
        cr_expect_eq(ask(b, two[0], &e), PROFD_REFUSED);
        cr_expect(strstr(e.sentence, "pipe") != NULL, "%s", e.sentence);
        cr_expect_eq(ask(b, zero, &e), PROFD_REFUSED);
        cr_expect_eq(ask(b, path, &e), PROFD_REFUSED);
        cr_expect_eq(ask(b, text, &e), PROFD_REFUSED);
        cr_expect_eq(ask(b, 9999, &e), PROFD_REFUSED);
        cr_expect(strstr(e.sentence, "9999") != NULL, "%s", e.sentence);
    }
    cr_expect_eq(open_descriptors(), before);
    compare(b, "a", NULL);
    broker_stop(b);
}

static void lie(uint32_t status, uint64_t size)
{
    struct worker_answer a = {.magic = WORKER_MAGIC, .status = status, .done = 1, .size = size};
    memset(a.sentence, 'x', sizeof a.sentence);
    cr_assert_eq(pwrite(WORKER_ANSWER, &a, sizeof a, 0), (ssize_t)sizeof a);
}

static void raise_fault(const struct worker_job *job)
{
    /* An address that the compiler can't see through and nobody maps. */
    volatile uintptr_t address = job == NULL ? 4096 : 8;
    *(volatile char *)address = 1;
}

/* What reaches for files, memory and limits. */
static long reach_for_things(char letter)
{
    struct rlimit limit;
    switch (letter) {
    case 'o':
        return open("/etc/passwd", O_RDONLY);
    case 't':
        return syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &limit, 0);
    case 'm':
        return (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    case 'M':
        return (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, WORKER_EXECUTABLE, 0);
    case 'e':
        return mprotect(&letter, 1, PROT_EXEC);
    case 'w':
        return write(WORKER_EXECUTABLE, "x", 1);
    case 'd':
        return dup(WORKER_EXECUTABLE);
    case 'l':
        return syscall(SYS_prlimit64, getppid(), RLIMIT_AS, NULL, &limit);
    default:
        return -2;
    }
}

/* What reaches for other processes and hosts. */
static long reach_for_others(char letter)
{
    char name[] = "sh", *argv[] = {name, NULL};
    int two[2];
    switch (letter) {
    case 's':
        return socket(AF_INET, SOCK_STREAM, 0);
    case 'u':
        return socketpair(AF_UNIX, SOCK_STREAM, 0, two);
    case 'f':
        return fork();
    case 'x':
        return execv("/bin/sh", argv);
    case 'p':
        return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
    case 'k':
        return kill(getppid(), SIGKILL);
    case 'g':
        return syscall(SYS_tgkill, getppid(), getppid(), SIGKILL);
    default:
        return -2;
    }
}

static void explode(void)
{
    /* Volatile, because a compiler may leave out what nobody looks at. */
    void *volatile block;
    for (size_t n = 0; (block = malloc(1 << 20)) != NULL; n++) {
        cr_assert_lt(n, 100000);
    }
    worker_refuse(PROFD_LIMIT, "the bomb found no more memory");
}

/* A stunt is chosen by the first letter of the file that the worker was given. */
static void stunt(const struct worker_job *job)
{
    char letter = 0;
    cr_assert_eq(pread(WORKER_EXECUTABLE, &letter, 1, 0), 1);
    switch (letter) {
    case 'S':
        raise_fault(job);
        break;
    case 'A':
        abort();
    case 'L':
        for (volatile unsigned i = 0;; i++) {
        }
    case 'Q':
        _exit(0);
    case 'E':
        _exit(7);
    case 'B':
        explode();
        return;
    case 'F':
        for (off_t at = 0; pwrite(WORKER_ANSWER, &letter, 1, at) == 1; at += 1 << 20) {
        }
        return;
    case 'P': /* paths are refused, not punished */
        errno = 0;
        if (reach_for_things('o') == -1 && errno == EPERM && reach_for_things('t') == -1 && errno == EPERM &&
            readlink("/proc/self/exe", &letter, 1) == -1 && errno == EPERM) {
            worker_refuse(PROFD_REFUSED, "no path can be opened");
        }
        return;
    case 'H': /* claims more than there is */
        lie(PROFD_OK, 1u << 30);
        return;
    case 'N': /* a status that isn't one, a sentence without an end */
        lie(4711, 0);
        return;
    default:
        if (reach_for_things(letter) != -2 || reach_for_others(letter) != -2) {
            worker_refuse(PROFD_INTERNAL, "the stunt went through");
        } else {
            worker_read(job);
        }
    }
}

static const struct worker_limits small = {
    .memory = 512u << 20, .cpu_seconds = 1, .answer_bytes = 64u << 20, .headers_ms = 600000};

static void expect_end(struct broker *b, char letter, enum profd_status want, const char *word)
{
    char text[2] = {letter, 0};
    tools_write("stunt", text);
    struct profd_error e = {""};
    int fd = tools_open("stunt");
    enum profd_status status = ask(b, fd, &e);
    close(fd);
    cr_expect_eq(status, want, "%c: %s: %s", letter, profd_status_name(status), e.sentence);
    cr_expect(strstr(e.sentence, word) != NULL, "%c: '%s' does not say '%s'", letter, e.sentence, word);
}

#ifndef __SANITIZE_ADDRESS__ /* with sanitizers there is no sandbox: SANDBOX_POSSIBLE */
Test(elf_broker, walls_hold)
{
    build();
    struct broker *b;
    cr_assert_eq(broker_start_with(&b, stunt, &small, NULL), PROFD_OK);
    for (const char *letter = "sufxpkgmMwdle"; *letter != '\0'; letter++) {
        expect_end(b, *letter, PROFD_INTERNAL, "signal 31");
    }
    expect_end(b, 'P', PROFD_REFUSED, "no path can be opened");
    expect_end(b, 'S', PROFD_INTERNAL, "signal 11");
    expect_end(b, 'A', PROFD_INTERNAL, "signal 6");
    expect_end(b, 'L', PROFD_LIMIT, "CPU time");
    expect_end(b, 'B', PROFD_REFUSED, "the bomb found no more memory");
    expect_end(b, 'F', PROFD_LIMIT, "bytes");
    compare(b, "a", NULL); /* after all that, it still reads */
    broker_stop(b);
}
#endif

Test(elf_broker, lies_are_refused)
{
    build();
    struct broker *b;
    cr_assert_eq(broker_start_with(&b, stunt, &small, NULL), PROFD_OK);
    expect_end(b, 'Q', PROFD_INTERNAL, "without an answer");
    expect_end(b, 'E', PROFD_INTERNAL, "status 7");
    expect_end(b, 'H', PROFD_LIMIT, "1073741824");
    expect_end(b, 'N', PROFD_INTERNAL, "without an answer");
    compare(b, "a", NULL);
    broker_stop(b);
}

/* Answers with the status that its file names. */
static void lie_as_told(const struct worker_job *job)
{
    char text[8] = "";
    (void)job;
    cr_assert_gt(pread(WORKER_EXECUTABLE, text, sizeof text - 1, 0), 0);
    lie((uint32_t)strtoul(text, NULL, 10), 0);
}

/* A worker may be owned by its file: whatever status it sends, the file was refused or the worker failed. */
Test(elf_broker, no_status_of_a_worker_passes)
{
    struct broker *b;
    unsigned refused = 0;
    cr_assert_eq(broker_start_with(&b, lie_as_told, &small, NULL), PROFD_OK);
    for (uint32_t status = 1; status <= 40; status++) {
        char text[8];
        struct profd_error e = {""};
        snprintf(text, sizeof text, "%u", status);
        tools_write("lie", text);
        int fd = tools_open("lie");
        enum profd_status got = ask(b, fd, &e);
        close(fd);
        cr_expect(got == PROFD_REFUSED || got == PROFD_INTERNAL, "%u became %s", status, profd_status_name(got));
        refused += got == PROFD_REFUSED;
    }
    cr_expect_eq(refused, 6, "what a file can be at fault for");
    broker_stop(b);
}

/* Waits for what never comes, without using the processor. */
static void wait_for_ever(const struct worker_job *job)
{
    char letter = 0;
    uint32_t word = 0;
    if (pread(WORKER_EXECUTABLE, &letter, 1, 0) == 1 && letter == 'W') {
        syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
    }
    worker_read(job);
}

Test(elf_broker, deadline_by_the_clock)
{
    build();
    struct broker *b;
    struct worker_limits hurried = small;
    hurried.headers_ms = 300;
    cr_assert_eq(broker_start_with(&b, wait_for_ever, &hurried, NULL), PROFD_OK);
    expect_end(b, 'W', PROFD_LIMIT, "too long");
    broker_stop(b);
}

/* Landlock by itself, where the kernel has it: nothing can be opened any more. */
Test(elf_broker, landlock_denies_files)
{
    if (sandbox_landlock_version() == 0) {
        cr_skip_test("this kernel has no Landlock");
    }
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (sandbox_deny_files(NULL) != PROFD_OK) {
            _exit(1);
        }
        _exit(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES && open("/tmp/x", O_CREAT | O_WRONLY, 0600) < 0 ? 0
                                                                                                                   : 2);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}

/* Reads an object through the broker, into an arena that lives as long as the test. */
static struct object *read_by(struct broker *b, const char *name, uint64_t memory)
{
    static struct {
        struct arena *arena;
        uint8_t *answer;
    } kept[8];
    static unsigned count;
    uint8_t *answer;
    size_t size;
    struct profd_error e = {""};
    struct object *o = NULL;
    int fd = tools_open(name);
    cr_assert_eq(broker_read_object(b, &(struct broker_file){fd, -1, memory, false}, &answer, &size, &e), PROFD_OK,
                 "%s: %s", name, e.sentence);
    close(fd);
    kept[count].answer = answer;
    kept[count].arena = arena_new(0);
    cr_assert_eq(object_decode(kept[count++].arena, answer, size, &o, &e), PROFD_OK, "%s", e.sentence);
    return o;
}

/* Dies as long as it is asked for lines and names, as libdw might of damaged debug information: the second attempt goes
 * without and says so. */
static void fragile(const struct worker_job *job)
{
    char last = 0; /* byte of the padding of e_ident */
    cr_assert_eq(pread(WORKER_EXECUTABLE, &last, 1, 15), 1);
    if (job->options.lines || job->options.demangle) {
        if (last == 'S') {
            raise_fault(job);
        }
        _exit(9);
    }
    worker_read(job);
}

Test(elf_broker, second_attempt_without_lines)
{
    build();
    tools_run("cp a faulty && printf S | dd of=faulty bs=1 seek=15 conv=notrunc status=none");
    struct broker *b;
    cr_assert_eq(broker_start_with(&b, fragile, &small, NULL), PROFD_OK);
    struct object *o = read_by(b, "a", UINT64_MAX);
    cr_expect(strstr(o->note, "left out") != NULL && strstr(o->note, "status 9") != NULL, "%s", o->note);
    const struct object_symbol *s = tools_symbol(o, "_ZL1hi");
    cr_expect(s->line == 0 && s->demangled == s->name);
    cr_expect_eq(tools_arcs(o, "_Z1fi", "_ZL1hi", OBJECT_ARC_CALL), 2);
#ifndef __SANITIZE_ADDRESS__
    o = read_by(b, "faulty", UINT64_MAX);
    cr_expect(strstr(o->note, "left out") != NULL && strstr(o->note, "a memory fault") != NULL, "%s", o->note);
#endif
    broker_stop(b);
}

#ifndef __SANITIZE_ADDRESS__
/* libdw looks for the file of dwz by its path, which the sandbox refuses. */
Test(elf_broker, names_in_a_file_of_dwz_are_a_note)
{
    tools_write("a.cc", "#include <map>\n#include <string>\nint main(int c, char **v) { std::map<std::string, int> m; "
                        "m[v[0]] = c; return m.size() == 3; }\n");
    tools_run("g++ -g -O2 a.cc -o a && cp a b && dwz -m alt a b");
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    struct object *o = read_by(b, "a", UINT64_MAX);
    cr_expect(strstr(o->note, "dwz") != NULL && !o->knows_inlined, "%s", o->note);
    cr_expect_gt(o->line_count, 10);
    broker_stop(b);
}

/* Debug information for which there is no memory: a sentence, and the symbols. */
Test(elf_broker, debug_information_without_memory_is_a_note)
{
    tools_run("head -c 100000000 /dev/zero > zeros && objcopy --add-section .debug_macro=zeros /proc/%d/exe large",
              (int)getpid());
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    unsigned without = 0;
    for (uint64_t memory = UINT64_C(40) << 20;; memory += UINT64_C(40) << 20) {
        uint8_t *answer = NULL;
        size_t size;
        struct profd_error e = {""};
        struct object *o;
        int fd = tools_open("large");
        enum profd_status status =
            broker_read_object(b, &(struct broker_file){fd, -1, memory, false}, &answer, &size, &e);
        close(fd);
        cr_assert_lt(memory, UINT64_C(800) << 20);
        if (status != PROFD_OK) {
            cr_expect(without == 0, "%s", e.sentence);
            continue;
        }
        struct arena *a = arena_new(0);
        cr_assert_eq(object_decode(a, answer, size, &o, &e), PROFD_OK, "%s", e.sentence);
        free(answer);
        cr_expect_gt(o->symbol_count, 100);
        if (o->note[0] == '\0') {
            cr_expect_gt(o->line_count, 1000);
            arena_free(a);
            break;
        }
        cr_expect(strstr(o->note, "memory") != NULL, "%s", o->note);
        without++;
        arena_free(a);
    }
    cr_expect_gt(without, 1);
    broker_stop(b);
}
#endif

#ifndef __SANITIZE_ADDRESS__
/* The worker keeps nothing of the daemon: no descriptors but its three, no environment. */
static void look_around(const struct worker_job *job)
{
    (void)job;
    char text[256];
    unsigned open_fds = 0;
    for (int fd = 0; fd < 256; fd++) {
        open_fds += fcntl(fd, F_GETFD) >= 0;
    }
    snprintf(text, sizeof text, "%u descriptors, secret %s", open_fds, getenv("SECRET") == NULL ? "forgotten" : "seen");
    worker_refuse(PROFD_CONFLICT, text);
}

Test(elf_broker, inherits_nothing)
{
    setenv("SECRET", "word", 1);
    for (int i = 0; i < 20; i++) {
        cr_assert_geq(open("/dev/null", O_RDONLY), 0);
    }
    struct broker *b;
    cr_assert_eq(broker_start_with(&b, look_around, &small, NULL), PROFD_OK);
    struct profd_error e = {""};
    cr_expect_eq(ask(b, open("/bin/sh", O_RDONLY), &e), PROFD_INTERNAL);
    cr_expect_str_eq(e.sentence, "2 descriptors, secret forgotten");
    cr_expect_str_eq(getenv("SECRET"), "word", "the daemon keeps its own");
    broker_stop(b);
}
#endif

/* A broker that was killed is told as such, and stopping it does not hang. An executable that it did not take has no
 * part in its end, and may be sent again. */
Test(elf_broker, death_of_the_broker)
{
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    pid_t child = *(pid_t *)(void *)b; /* struct broker begins with its process */
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(poll(&(struct pollfd){.fd = broker_get_handle(b), .events = POLLIN}, 1, 60000), 1);
    struct profd_error e = {""};
    int fd = open("/bin/sh", O_RDONLY);
    cr_expect(broker_is_ready(b), "it is not known yet");
    cr_expect_eq(ask(b, fd, &e), PROFD_BUSY);
    cr_expect(strstr(e.sentence, "has ended and is being") != NULL, "%s", e.sentence);
    cr_expect_not(broker_is_ready(b));
    cr_expect_eq(ask(b, fd, &e), PROFD_BUSY, "until it is started again");
    cr_expect(broker_has_ended(b, &e));
    cr_expect(strstr(e.sentence, "killed by signal 9") != NULL, "%s", e.sentence);
    broker_stop(b);
}

/* Stopped before it can take the request, and killed: the kernel says that the request was not read. */
Test(elf_broker, death_before_the_request_is_read)
{
    struct broker *b;
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    pid_t child = *(pid_t *)(void *)b;
    int how, fd = open("/bin/sh", O_RDONLY);
    cr_assert_eq(kill(child, SIGSTOP), 0);
    cr_assert_eq(waitpid(child, &how, WUNTRACED), child);
    pid_t killer = fork();
    if (killer == 0) {
        usleep(100000); /* it may come before the request: then sending fails, with the same answer */
        kill(child, SIGKILL);
        _exit(0);
    }
    struct profd_error e = {""};
    cr_expect_eq(ask(b, fd, &e), PROFD_BUSY, "%s", e.sentence);
    cr_expect_eq(waitpid(killer, &how, 0), killer);
    broker_stop(b);
}

/* Killed when its worker runs: the executable may be the cause, which the sentence says. */
Test(elf_broker, death_while_it_reads)
{
    struct broker *b;
    cr_assert_eq(broker_start_with(&b, wait_for_ever, &small, NULL), PROFD_OK);
    pid_t child = *(pid_t *)(void *)b;
    tools_write("w", "W");
    int how, fd = tools_open("w");
    char path[64], text[16];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", child, child);
    pid_t killer = fork();
    if (killer == 0) {
        ssize_t n = 0;
        while (n == 0) {
            int children = open(path, O_RDONLY);
            n = read(children, text, sizeof text);
            close(children);
        }
        kill(child, SIGKILL);
        _exit(n < 0);
    }
    struct profd_error e = {""};
    cr_expect_eq(ask(b, fd, &e), PROFD_INTERNAL);
    cr_expect(strstr(e.sentence, "while it read this one") != NULL, "%s", e.sentence);
    cr_expect_eq(waitpid(killer, &how, 0), killer);
    cr_expect_eq(how, 0);
    broker_stop(b);
}

Test(elf_broker, an_end_between_two_requests_is_noticed)
{
    struct broker *b;
    struct profd_error e = {""};
    cr_assert_eq(broker_start(&b, NULL), PROFD_OK);
    cr_expect_not(broker_has_ended(b, &e));
    cr_assert_eq(kill(*(pid_t *)(void *)b, SIGKILL), 0);
    cr_assert_eq(poll(&(struct pollfd){.fd = broker_get_handle(b), .events = POLLIN}, 1, 60000), 1);
    cr_expect(broker_has_ended(b, &e));
    cr_expect(broker_has_ended(b, &e), "still");
    broker_stop(b);
}
