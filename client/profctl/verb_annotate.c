/* profctl annotate: ticks and calls by line or instruction of one function. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <math.h>
#include <nettle/md5.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/noun.h"

/* ---- Programs of which profctl reads the output ---- */

static enum profd_status start(const char *const *words, const char *package, pid_t *pid, int *from,
                               struct profd_error *e)
{
    posix_spawn_file_actions_t actions;
    int ends[2], error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0 && (error = posix_spawn_file_actions_init(&actions)) == 0) {
        char *copies[16] = {NULL}; /* posix_spawn promises not to write to them, its prototype does not */
        size_t i = 0;
        do {
            memcpy(&copies[i], &words[i], sizeof copies[i]);
        } while (words[++i] && i + 1 < COUNT(copies));
        (void)setenv("LC_ALL", "C", 1);
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        error = error ? error : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        error = error ? error : posix_spawnp(pid, words[0], &actions, NULL, copies, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (error != 0) {
            close(ends[0]);
        }
    }
    if (error == ENOENT || error == EACCES) {
        return profd_error_set(e, PROFD_NOT_FOUND, "%s is not in PATH; the package %s has it", words[0], package);
    }
    *from = ends[0];
    return error == 0 ? PROFD_OK : profd_error_set(e, PROFD_INTERNAL, "cannot start %s: %s", words[0], strerror(error));
}

/* Starts the program words[0] of PATH with these words, ended by NULL, without a shell, with an empty standard input,
 * no standard error and LC_ALL=C. Calls each with every line of its output, without the line feed; false stops the
 * program. NOT_FOUND if it is not in PATH; INTERNAL if it fails. package: of the program, for the sentence. */
static enum profd_status pipe_read_lines(const char *const *words, const char *package,
                                         bool (*each)(void *context, char *line), void *context, struct profd_error *e)
{
    pid_t pid = 0;
    int from = -1, how = 0;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool goes_on = true;
    if (getauxval(AT_SECURE)) {
        return profd_error_set(e, PROFD_FORBIDDEN, "%s is not started when profctl runs set-user-ID", words[0]);
    }
    enum profd_status status = start(words, package, &pid, &from, e);
    if (status != PROFD_OK) {
        return status;
    }
    FILE *in = fdopen(from, "r");
    while (in && goes_on && (n = getline(&line, &size, in)) >= 0) {
        if (n > 0 && line[n - 1] == '\n') {
            line[n - 1] = '\0';
        }
        goes_on = each(context, line);
    }
    free(line);
    if (in) {
        (void)fclose(in);
    } else {
        close(from);
    }
    if (pid > 0 && (!goes_on || !in)) {
        kill(pid, SIGTERM);
    }
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (goes_on && (!in || !WIFEXITED(how) || WEXITSTATUS(how) != 0)) {
        status = profd_error_set(e, PROFD_INTERNAL, "%s failed", words[0]);
    }
    return status;
}

/* ---- The instructions of a function, the line of each, and the calls that inlining removed above it ---- */

/* A source line, with where its function was inlined: "" or "inner, inlined at t.c:7 (middle)". */
struct code_place {
    char *file; /* "": unknown */
    char *chain;
    unsigned line;
};

struct code_instruction {
    uint64_t address, bytes;
    char *text;
    size_t place;
};

struct code {
    struct code_instruction *instructions; /* ascending */
    size_t count;
    struct code_place *places; /* none twice, in the order of their first instructions */
    size_t place_count;
};

#define SHOWN_MOST 1024 /* bytes of a name or line that are printed */
#define CHAIN_MOST 2000

struct reading {
    struct code *code;
    struct code_lines *lines; /* NULL: the file has none */
    size_t capacity, place_capacity;
    char *file, *function; /* of the next instruction */
    unsigned line;
    char chain[CHAIN_MOST];
    bool failed;
};

/* The list with space for one more: it may have moved. NULL: no memory, and it is as it was. */
static void *grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return list;
    }
    size_t more = *capacity ? *capacity * 2 : 64;
    void *grown = reallocarray(list, more, size);
    *capacity = grown ? more : *capacity;
    return grown;
}

/* "PATH:LINE" or "PATH:LINE (discriminator N)". */
static bool parse_place(const char *text, size_t *path, unsigned *line)
{
    const char *end = strstr(text, " (discriminator ");
    size_t n = end ? (size_t)(end - text) : strlen(text), digits = 0;
    while (digits < n && text[n - digits - 1] >= '0' && text[n - digits - 1] <= '9') {
        digits++;
    }
    if (digits == 0 || digits > 9 || n < digits + 2 || text[n - digits - 1] != ':') {
        return false;
    }
    *path = n - digits - 1;
    *line = (unsigned)strtoul(text + n - digits, NULL, 10);
    return true;
}

/* "inlined by PATH:LINE (FUNCTION)" */
static void add_inlined(struct reading *r, const char *text)
{
    const char *open = strrchr(text, '(');
    const size_t used = strlen(r->chain);
    char place[1024];
    if (open && open > text) {
        (void)snprintf(place, sizeof place, "%.*s", (int)(open - text - 1), text);
        (void)snprintf(r->chain + used, sizeof r->chain - used, "%s at %s %s", used ? "," : "", basename(place), open);
    }
}

static bool same_place(const struct code_place *p, const char *file, unsigned line, const char *chain)
{
    return p->line == line && strcmp(p->file, file) == 0 && strcmp(p->chain, chain) == 0;
}

/* objdump 2.40 confuses the files of clang's DWARF 5, so files and lines are those of libdw. */
static bool find_place(struct reading *r, uint64_t address, size_t *out)
{
    struct code *c = r->code;
    struct code_frame frames[CODE_LINES_DEPTH];
    char chain[CHAIN_MOST + 256] = "";
    const bool known = r->lines && code_lines_find(r->lines, address, frames) > 0 && frames[0].line > 0;
    const char *file = known ? frames[0].file : r->file ? r->file : "";
    const unsigned line = known ? frames[0].line : r->line;
    if (r->chain[0]) {
        (void)snprintf(chain, sizeof chain, "%.200s, inlined%s", r->function ? r->function : "?", r->chain);
    }
    for (size_t i = c->place_count; i-- > 0;) {
        if (same_place(&c->places[i], file, line, chain)) {
            *out = i;
            return true;
        }
    }
    struct code_place *places = grow(c->places, c->place_count, &r->place_capacity, sizeof *c->places);
    if (!places) {
        return false;
    }
    c->places = places;
    *out = c->place_count;
    c->places[c->place_count++] = (struct code_place){.file = strdup(file), .chain = strdup(chain), .line = line};
    return c->places[*out].file && c->places[*out].chain;
}

/* "    11c9:\tpush   %rbp" */
static bool add_instruction(struct reading *r, uint64_t address, const char *text)
{
    struct code *c = r->code;
    size_t place;
    struct code_instruction *instructions = grow(c->instructions, c->count, &r->capacity, sizeof *c->instructions);
    if (!instructions) {
        return false;
    }
    c->instructions = instructions;
    if (!find_place(r, address, &place)) {
        return false;
    }
    if (c->count > 0) {
        c->instructions[c->count - 1].bytes = address - c->instructions[c->count - 1].address;
    }
    char *copy = strdup(text);
    for (char *p = copy; p && *p; p++) {
        *p = *p == '\t' ? ' ' : *p;
    }
    c->instructions[c->count++] = (struct code_instruction){.address = address, .text = copy, .place = place};
    r->chain[0] = '\0';
    return copy != NULL;
}

static bool take_line(void *context, char *line)
{
    struct reading *r = context;
    const size_t n = strlen(line);
    size_t path;
    unsigned number;
    char *end;
    uint64_t address = line[0] == ' ' ? strtoull(line, &end, 16) : 0;
    if (line[0] == ' ' && end[0] == ':' && end[1] == '\t') {
        r->failed = !add_instruction(r, address, end + 2);
    } else if (strncmp(line, "inlined by ", 11) == 0) {
        add_inlined(r, line + 11);
    } else if (n > 3 && strcmp(line + n - 3, "():") == 0) {
        free(r->function);
        r->function = strndup(line, n - 3);
        r->failed = !r->function;
    } else if (line[0] != ' ' && parse_place(line, &path, &number)) {
        free(r->file);
        r->file = strndup(line, path);
        r->line = number;
        r->failed = !r->file;
    }
    return !r->failed;
}

/* Disassembles [low, high) of an executable, with objdump of binutils. code_done frees, after failure too. NOT_FOUND if
 * objdump is missing, or the file has no code there. */
static enum profd_status code_read(const char *path, const char *build_id, uint64_t low, uint64_t high,
                                   struct code *out, struct profd_error *e)
{
    struct reading r = {.code = out};
    char from[40], to[40];
    const char *words[] = {"objdump", "-d", "-l", "-C", "-w", "--inlines", "--no-show-raw-insn",
                           from,      to,   "--", path, NULL};
    *out = (struct code){.count = 0};
    (void)snprintf(from, sizeof from, "--start-address=0x%" PRIx64, low);
    (void)snprintf(to, sizeof to, "--stop-address=0x%" PRIx64, high);
    enum profd_status status = code_lines_open(path, build_id, &r.lines, e);
    status = status ? status : pipe_read_lines(words, "binutils", take_line, &r, e);
    code_lines_close(r.lines);
    free(r.file);
    free(r.function);
    if (status == PROFD_OK && r.failed) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the code of a function");
    }
    if (status == PROFD_OK && out->count == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "%s has no code at 0x%" PRIx64, path, low);
    }
    if (status == PROFD_OK) {
        out->instructions[out->count - 1].bytes = high - out->instructions[out->count - 1].address;
    }
    return status;
}

static void code_done(struct code *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->instructions[i].text);
    }
    for (size_t i = 0; i < c->place_count; i++) {
        free(c->places[i].file);
        free(c->places[i].chain);
    }
    free(c->instructions);
    free(c->places);
}

/* The number of the instruction that holds the address; count if none does. O(log n). */
static size_t code_find(const struct code *c, uint64_t address)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_instruction *i = &c->instructions[middle];
        if (address >= i->address && address - i->address < i->bytes) {
            return middle;
        }
        if (i->address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return c->count;
}

static bool code_is_call(const struct code_instruction *i)
{
    static const char *const CALLS[] = {"call", "bl ", "blr ", "bnd call", "addr32 call", "jal", "notrack call"};
    for (size_t k = 0; k < COUNT(CALLS); k++) {
        if (strncmp(i->text, CALLS[k], strlen(CALLS[k])) == 0) {
            return true;
        }
    }
    return false;
}

/* "call   18a80 <jv_free>", "bl 5d4 <f>" */
/* Where a call goes to that names its target: false if it goes to an address in a register or in memory. */
static bool code_find_target(const struct code_instruction *i, uint64_t *target)
{
    const char *end = strchr(i->text, '<'), *word = end;
    if (!code_is_call(i) || !end || strchr(i->text, '*')) {
        return false;
    }
    while (word > i->text && word[-1] == ' ') {
        word--;
    }
    const char *last = word;
    while (word > i->text && isxdigit((unsigned char)word[-1])) {
        word--;
    }
    if (word == last || word == i->text || word[-1] != ' ') {
        return false;
    }
    *target = strtoull(word, NULL, 16);
    return true;
}

/* ---- Source text, found on this machine and compared with what the compiler read ---- */

/* lines NULL: there is no text, and note says why. A note may also stand beside text. */
struct source {
    char *text, **lines; /* lines[0] is line 1 */
    size_t count;
    char note[400];
};

/* Where sources may be: an executable with DWARF, and directories of --source-path, tried in order before the path that
 * the compiler was given. */
struct source_finder {
    const char *executable;
    const char *const *folders;
    size_t folder_count;
    /* Downloads a file that is not here and returns its path, which the finder frees; NULL: it cannot. May be NULL. */
    char *(*fetch)(void *context, const char *name);
    void *context; /* its */
};

#define FILE_MOST ((off_t)64 << 20)
#define DIGEST_TEXT (2 * MD5_DIGEST_SIZE)

/* What the line tables say of files with this last name: with MD5, and is one that of the text? */
struct checking {
    const char *base;
    char digest[DIGEST_TEXT + 1]; /* of the text */
    bool stated, same;
};

/* objdump may write the 16 bytes as a number, the last one first. */
static bool same_digest(const char *hex, const char *digest)
{
    bool forward = true, backward = true;
    for (size_t i = 0; i < DIGEST_TEXT; i++) {
        forward = forward && hex[i] == digest[i];
        backward = backward && hex[i] == digest[(DIGEST_TEXT - 2 - i / 2 * 2) + i % 2];
    }
    return forward || backward;
}

/* "  0\t0 0x29db2e79ae406a0bb1a954a22c626f80\t(indirect line string, offset: 0xb): t.c" */
static bool take_entry(void *context, char *line)
{
    struct checking *c = context;
    char *hex = strstr(line, " 0x");
    const char *name = strstr(line, "): ");
    if (hex && name && name > hex && strspn(hex + 3, "0123456789abcdef") == DIGEST_TEXT &&
        strcmp(basename(name + 3), c->base) == 0) {
        c->stated = true;
        c->same = c->same || same_digest(hex + 3, c->digest);
    }
    return !c->same;
}

static char *read_file(const char *path, size_t *size)
{
    struct stat s;
    FILE *in = stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size <= FILE_MOST ? fopen(path, "re") : NULL;
    char *text = in ? malloc((size_t)s.st_size + 1) : NULL;
    if (text) {
        *size = fread(text, 1, (size_t)s.st_size, in);
        text[*size] = '\0';
    }
    if (in) {
        (void)fclose(in);
    }
    return text;
}

/* The first file there is; path is where it was. */
static char *find_text(const struct source_finder *f, const char *name, char path[4096], size_t *size)
{
    char *text = NULL;
    for (size_t i = 0; !text && i < f->folder_count; i++) {
        const char *end = name;
        do {
            end += *end == '/';
            (void)snprintf(path, 4096, "%s/%s", f->folders[i], end);
            text = read_file(path, size);
            end = strchr(end, '/');
        } while (!text && end);
    }
    if (!text) {
        (void)snprintf(path, 4096, "%s", name);
        text = name[0] == '/' ? read_file(name, size) : NULL;
    }
    return text;
}

/* False: it is not what the compiler read. */
static bool check_text(const struct source_finder *f, const char *name, const char *path, size_t size, struct source *s)
{
    const char *words[] = {"objdump", "--dwarf=rawline", "--", f->executable, NULL};
    struct checking c = {.base = basename(name)};
    struct stat source, executable;
    struct md5_ctx md5;
    uint8_t digest[MD5_DIGEST_SIZE];
    md5_init(&md5);
    md5_update(&md5, size, (const uint8_t *)s->text);
    md5_digest(&md5, MD5_DIGEST_SIZE, digest);
    for (size_t i = 0; i < MD5_DIGEST_SIZE; i++) {
        (void)snprintf(c.digest + 2 * i, 3, "%02x", digest[i]);
    }
    (void)pipe_read_lines(words, "binutils", take_entry, &c, NULL);
    if (c.stated && !c.same) {
        (void)snprintf(s->note, sizeof s->note,
                       "%.300s differs from the file that was compiled: its MD5 is not that of the line table", path);
        return false;
    }
    if (!c.stated && stat(path, &source) == 0 && stat(f->executable, &executable) == 0 &&
        source.st_mtime > executable.st_mtime) {
        (void)snprintf(s->note, sizeof s->note, "%.300s is newer than the executable and may differ", path);
    }
    return true;
}

static bool split(struct source *s)
{
    size_t n = 1;
    for (const char *p = s->text; *p; p++) {
        n += *p == '\n';
    }
    s->lines = calloc(n, sizeof *s->lines);
    for (char *at = s->text; s->lines && at; s->count++) {
        s->lines[s->count] = at;
        at = strchr(at, '\n');
        if (at) {
            *at++ = '\0';
        }
    }
    return s->lines != NULL;
}

/* The text of a file from elsewhere, if it is what the compiler read. */
static bool take_fetched(const struct source_finder *f, const char *name, struct source *s)
{
    char *path = f->fetch ? f->fetch(f->context, name) : NULL;
    size_t size = 0;
    struct source fetched = {.text = path ? read_file(path, &size) : NULL};
    if (fetched.text && check_text(f, name, path, size, &fetched)) {
        free(s->text);
        *s = (struct source){.text = fetched.text};
        free(path);
        return true;
    }
    free(fetched.text);
    free(path);
    return false;
}

/* The text of a file as DWARF names it. A folder is tried with the whole name, then with its ends, the longest first. A
 * file that differs from the MD5 of DWARF 5 is not taken; where there is no MD5, one that is newer than the executable
 * gets a note. NO_MEMORY; any other failure is a note. */
static enum profd_status source_find(const struct source_finder *f, const char *name, struct source *out,
                                     struct profd_error *e)
{
    char path[4096];
    size_t size = 0;
    *out = (struct source){.text = find_text(f, name, path, &size)};
    bool good = out->text && check_text(f, name, path, size, out) && !out->note[0];
    if (!good && take_fetched(f, name, out)) {
        return split(out) ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the lines of %.200s", name);
    }
    if (!out->text) {
        (void)snprintf(out->note, sizeof out->note,
                       "%.280s is not on this machine%s; --source-path names its directory", name,
                       f->fetch ? ", nor could it be downloaded" : "");
        return PROFD_OK;
    }
    if (!good && !check_text(f, name, path, size, out)) {
        free(out->text);
        out->text = NULL;
        return PROFD_OK;
    }
    return split(out) ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the lines of %.200s", name);
}

static void source_done(struct source *s)
{
    free(s->text);
    free(s->lines);
}

/* ---- Ticks and calls of addresses become those of instructions and of lines ---- */

struct annotate_amount {
    double ticks;     /* a bin over several lines is shared by bytes */
    double low, high; /* 95 % interval: of the ticks that are surely here, and of all that may be */
    bool estimated;   /* ticks of shared bins are in it */
    uint64_t calls;   /* from call sites here */
    double sure, possible;
};

struct annotate_sum {
    struct annotate_amount *instructions; /* ticks of a bin over several instructions stand at the first */
    size_t *span; /* of each instruction: how many the widest bin that begins there covers; 0: none */
    struct annotate_amount *places;
    double ticks;           /* in the function's instructions */
    double shared;          /* of bins with bytes of other functions: at no line */
    uint64_t calls_no_site; /* calls without an instruction that could have made them */
    bool call_sites;        /* false: addresses of callers are rounded, so calls have no line */
};

#define NORMAL 1.959963984540054 /* of 95 % */

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static uint64_t address_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strtoull(text, NULL, 16) : 0;
}

/* Bytes that an instruction has of [low, high). */
static uint64_t overlap(const struct code_instruction *i, uint64_t low, uint64_t high)
{
    uint64_t first = i->address > low ? i->address : low, end = i->address + i->bytes;
    uint64_t last = end < high ? end : high;
    return last > first ? last - first : 0;
}

static void add_ticks(struct annotate_sum *s, const struct code *code, uint64_t low, uint64_t high, double ticks)
{
    size_t first = 0, count = 0;
    uint64_t bytes = 0;
    bool one_place = true;
    for (size_t i = 0; i < code->count; i++) {
        const uint64_t own = overlap(&code->instructions[i], low, high);
        if (own > 0) {
            first = count++ == 0 ? i : first;
            one_place = one_place && code->instructions[i].place == code->instructions[first].place;
            bytes += own;
        }
    }
    if (count == 0) {
        s->shared += ticks;
        return;
    }
    s->ticks += ticks;
    s->instructions[first].ticks += ticks;
    s->instructions[first].sure += ticks;
    s->instructions[first].possible += ticks;
    s->span[first] = count > s->span[first] ? count : s->span[first];
    for (size_t i = first; i < first + count; i++) {
        struct annotate_amount *place = &s->places[code->instructions[i].place];
        place->ticks += ticks * (double)overlap(&code->instructions[i], low, high) / (double)bytes;
        if (one_place) {
            place->sure += i == first ? ticks : 0;
            place->possible += i == first ? ticks : 0;
        } else {
            bool again = false; /* a line may have several instructions in the bin */
            for (size_t k = first; k < i; k++) {
                again = again || code->instructions[k].place == code->instructions[i].place;
            }
            place->possible += again ? 0 : ticks;
            place->estimated = true;
        }
    }
}

/* The call instruction of a return address; count if there is none. A return address stands behind the call; profiles
 * of other tools name the call itself. */
static size_t find_site(const struct code *code, uint64_t address)
{
    size_t at = code_find(code, address - 1);
    if (at == code->count || code->instructions[at].address + code->instructions[at].bytes != address ||
        !code_is_call(&code->instructions[at])) {
        at = code_find(code, address);
    }
    return at < code->count && code_is_call(&code->instructions[at]) ? at : code->count;
}

/* Does the call instruction name the callee of the row? Another callee was jumped to by that one. */
static bool is_named(const json_t *answer, const struct code_instruction *i, const json_t *row)
{
    const char *own = json_string_value(json_object_get(json_object_get(answer, "function"), "build_id")),
               *build = json_string_value(json_object_get(row, "build_id"));
    uint64_t target;
    return own && build && strcmp(own, build) == 0 && code_find_target(i, &target) &&
           target == address_of(row, "callee_address");
}

/* named: of each instruction, whether it names a callee. */
static void add_calls(struct annotate_sum *s, const json_t *answer, const struct code *code, const bool *named)
{
    const json_t *row;
    size_t k;
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const uint64_t calls = (uint64_t)json_integer_value(json_object_get(row, "calls"));
        const size_t at = s->call_sites ? find_site(code, address_of(row, "address")) : code->count;
        if (at == code->count || (named[at] && !is_named(answer, &code->instructions[at], row))) {
            s->calls_no_site += calls;
        } else {
            s->instructions[at].calls += calls;
            s->places[code->instructions[at].place].calls += calls;
        }
    }
}

static bool find_calls(struct annotate_sum *s, const json_t *answer, const struct code *code)
{
    bool *named = calloc(code->count + 1, sizeof *named);
    const json_t *row;
    size_t k;
    if (!named) {
        return false;
    }
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const size_t at = find_site(code, address_of(row, "address"));
        named[at] = named[at] || (at < code->count && is_named(answer, &code->instructions[at], row));
    }
    add_calls(s, answer, code, named);
    free(named);
    return true;
}

/* Wilson's score interval of x of n samples of which n/overdispersion are independent. */
static double bound(double x, double n, double overdispersion, double sign)
{
    const double m = n / overdispersion, p = x / n, z = NORMAL;
    const double middle = p + z * z / (2 * m), half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
    const double at = (middle + sign * half) / (1 + z * z / m);
    return n * (at > 0 ? at : 0);
}

static void find_interval(struct annotate_amount *a, double n, double overdispersion)
{
    if (a->possible > 0 && n > 0) {
        const double low = bound(a->sure, n, overdispersion, -1),
                     high = bound(fmin(a->possible, n), n, overdispersion, 1);
        a->low = fmin(low, a->ticks); /* where all ticks are here, rounding could put them outside */
        a->high = fmax(high, a->ticks);
    }
}

/* answer: of /addresses. False when memory is exhausted. annotate_sum_done frees, after failure too. */
static bool annotate_sum_make(const json_t *answer, const struct code *code, struct annotate_sum *out)
{
    const json_t *row;
    size_t k;
    const double all = number(answer, "ticks"), overdispersion = number(answer, "overdispersion");
    *out = (struct annotate_sum){.instructions = calloc(code->count + 1, sizeof *out->instructions),
                                 .span = calloc(code->count + 1, sizeof *out->span),
                                 .places = calloc(code->place_count + 1, sizeof *out->places),
                                 .call_sites = json_is_true(json_object_get(answer, "call_sites"))};
    if (!out->instructions || !out->span || !out->places) {
        return false;
    }
    json_array_foreach(json_object_get(answer, "rows"), k, row)
    {
        const uint64_t low = address_of(row, "address"), bytes = (uint64_t)number(row, "bytes");
        if (json_is_true(json_object_get(row, "shared"))) {
            out->shared += number(row, "ticks");
        } else {
            add_ticks(out, code, low, low + bytes, number(row, "ticks"));
        }
    }
    if (!find_calls(out, answer, code)) {
        return false;
    }
    for (size_t i = 0; i < code->count; i++) {
        find_interval(&out->instructions[i], all, overdispersion);
    }
    for (size_t i = 0; i < code->place_count; i++) {
        find_interval(&out->places[i], all, overdispersion);
    }
    return true;
}

static void annotate_sum_done(struct annotate_sum *s)
{
    free(s->instructions);
    free(s->span);
    free(s->places);
}

/* ---- A function's lines or instructions with their ticks and calls ---- */

struct annotate_print {
    const json_t *answer; /* of /addresses */
    const struct code *code;
    const struct annotate_sum *sum;
    const struct source *sources; /* of each place: the text of its file */
    bool instructions;            /* else lines */
};

/* The source text of a line; NULL if it is not known. */
static const char *line_of(const struct annotate_print *p, size_t place, unsigned line)
{
    const struct source *s = &p->sources[place];
    return s->lines && line >= 1 && line <= s->count ? s->lines[line - 1] : NULL;
}

/* Source text with its tabs as spaces. */
static void print_source(const char *text)
{
    char plain[1024];
    size_t n = 0;
    for (; *text && n + 9 < sizeof plain; text++) {
        if (*text == '\t') {
            do {
                plain[n++] = ' ';
            } while (n % 8 != 0);
        } else if (*text != '\r') {
            plain[n++] = *text;
        }
    }
    plain[n] = '\0';
    profctl_print(plain, SHOWN_MOST);
}

static void print_amount(const struct annotate_print *p, const struct annotate_amount *a)
{
    char interval[48] = "", ticks[32] = "", percent[16] = "", calls[32] = "";
    if (a && a->possible > 0) {
        (void)snprintf(ticks, sizeof ticks, "%s%.0f", a->estimated ? "~" : "", a->ticks);
        (void)snprintf(percent, sizeof percent, "%.1f", p->sum->ticks > 0 ? 100 * a->ticks / p->sum->ticks : 0);
        (void)snprintf(interval, sizeof interval, "%.0f to %.0f", floor(a->low), ceil(a->high));
    }
    if (a && a->calls > 0) {
        (void)snprintf(calls, sizeof calls, "%s%" PRIu64, row_is_sampled(p->answer) ? "~" : "", a->calls);
    }
    printf("%8s %5s %14s %12s ", ticks, percent, interval, calls);
}

static void print_head(const struct annotate_print *p)
{
    const json_t *f = json_object_get(p->answer, "function");
    const double ticks = p->sum->ticks, all = json_number_value(json_object_get(p->answer, "ticks"));
    profctl_print(row_raw(f, "name"), SHOWN_MOST);
    printf(" in ");
    profctl_print(row_raw(f, "object"), SHOWN_MOST);
    printf(": %.0f of %.0f ticks, ", ticks, all);
    function_print_calls(p->answer);
    for (size_t i = 0; i < p->code->place_count; i++) {
        bool said = p->sources[i].note[0] == '\0';
        for (size_t k = 0; k < i; k++) {
            said = said || strcmp(p->sources[i].note, p->sources[k].note) == 0;
        }
        if (!said) {
            printf("No source: ");
            profctl_print(p->sources[i].note, SHOWN_MOST);
            printf("\n");
        }
    }
    if (ticks > 0 && strcmp(row_raw(p->answer, "dimension"), "seconds") == 0) {
        printf("A tick stands at the instruction that was to run next: those of a slow one stand behind it.\n");
    }
    printf("%8s %5s %14s %12s %s\n", "TICKS", "%", "95% INTERVAL", "CALLS", p->instructions ? "INSTRUCTION" : "LINE");
}

static void print_place(const struct code_place *place)
{
    if (place->file[0]) {
        profctl_print(place->file, SHOWN_MOST);
        printf(":%u", place->line);
    } else {
        printf("?");
    }
    if (place->chain[0]) {
        printf(" (");
        profctl_print(place->chain, SHOWN_MOST);
        printf(")");
    }
}

static void print_instructions(const struct annotate_print *p)
{
    size_t covered = 0;
    for (size_t i = 0; i < p->code->count; i++) {
        const struct code_instruction *in = &p->code->instructions[i];
        if (i == 0 || in->place != p->code->instructions[i - 1].place) {
            const char *source = line_of(p, in->place, p->code->places[in->place].line);
            printf("%42s ", "");
            print_place(&p->code->places[in->place]);
            printf("%s", source ? "  " : "");
            print_source(source ? source : "");
            printf("\n");
        }
        print_amount(p, &p->sum->instructions[i]);
        printf("%s%8" PRIx64 "  ", covered > 0 ? "+" : p->sum->span[i] > 1 ? "/" : " ", in->address);
        profctl_print(in->text, SHOWN_MOST);
        printf("\n");
        covered = p->sum->span[i] > 1 ? p->sum->span[i] - 1 : covered > 0 ? covered - 1 : 0;
    }
    for (size_t i = 0; i < p->code->count; i++) {
        if (p->sum->span[i] > 1) {
            printf("/ and +: a bin of the histogram holds several instructions; its ticks stand at the first.\n");
            return;
        }
    }
}

/* Lines of one file and one chain of inlined calls. */
static bool same_part(const struct code_place *a, const struct code_place *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->chain, b->chain) == 0;
}

static const struct annotate_amount *find_line(const struct annotate_print *p, size_t part, unsigned line)
{
    const struct code *c = p->code;
    for (size_t i = part; i < c->place_count; i++) {
        if (c->places[i].line == line && same_part(&c->places[i], &c->places[part])) {
            return &p->sum->places[i];
        }
    }
    return NULL;
}

static void print_part(const struct annotate_print *p, size_t part)
{
    const struct code *c = p->code;
    const struct code_place *place = &c->places[part];
    unsigned first = place->line, last = place->line;
    for (size_t i = part; i < c->place_count; i++) {
        if (same_part(&c->places[i], place)) {
            first = c->places[i].line < first ? c->places[i].line : first;
            last = c->places[i].line > last ? c->places[i].line : last;
        }
    }
    printf("%42s ", "");
    profctl_print(place->file[0] ? place->file : "no line is known", SHOWN_MOST);
    printf("%s", place->chain[0] ? ": " : "");
    profctl_print(place->chain, SHOWN_MOST);
    printf("\n");
    for (unsigned line = first; line <= last; line++) {
        const struct annotate_amount *a = find_line(p, part, line);
        const char *source = line_of(p, part, line);
        if (a || (source && place->chain[0] == '\0')) {
            print_amount(p, a);
            printf("%6u  ", line);
            print_source(source ? source : "");
            printf("\n");
        }
    }
}

static void annotate_print_text(const struct annotate_print *p)
{
    const struct code *c = p->code;
    print_head(p);
    if (p->instructions) {
        print_instructions(p);
    }
    for (size_t i = 0; !p->instructions && i < c->place_count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || same_part(&c->places[k], &c->places[i]);
        }
        if (!again) {
            print_part(p, i);
        }
    }
    const struct annotate_sum *s = p->sum;
    if (s->shared > 0) {
        printf("%.0f more ticks are in bins that other functions share.\n", s->shared);
    }
    if (!s->call_sites && s->calls_no_site > 0) {
        printf("A gmon.out rounds the addresses of callers: %" PRIu64 " %s from here %s no line.\n", s->calls_no_site,
               noun_for(s->calls_no_site, "call", "calls"), noun_for(s->calls_no_site, "has", "have"));
    } else if (s->calls_no_site > 0) {
        printf("%" PRIu64 " %s %s no call instruction here: a jump at the end of a function counts as a call by its "
               "caller.\n",
               s->calls_no_site, noun_for(s->calls_no_site, "call", "calls"),
               noun_for(s->calls_no_site, "has", "have"));
    }
}

static size_t row_count(const struct annotate_print *p)
{
    return p->instructions ? p->code->count : p->code->place_count;
}

static const struct annotate_amount *row_at(const struct annotate_print *p, size_t i, const struct code_place **place)
{
    *place = &p->code->places[p->instructions ? p->code->instructions[i].place : i];
    return p->instructions ? &p->sum->instructions[i] : &p->sum->places[i];
}

static void annotate_print_csv(const struct annotate_print *p)
{
    printf("%sfile,line,inlined,ticks,low,high,estimated,calls,%s\r\n", p->instructions ? "address," : "",
           p->instructions ? "instruction" : "source");
    for (size_t i = 0; i < row_count(p); i++) {
        const struct code_place *place;
        const struct annotate_amount *a = row_at(p, i, &place);
        const char *source = p->instructions ? p->code->instructions[i].text : line_of(p, i, place->line);
        if (p->instructions) {
            printf("0x%" PRIx64 ",", p->code->instructions[i].address);
        }
        csv_print_text(place->file);
        printf(",%u,", place->line);
        csv_print_text(place->chain);
        printf(",%.17g,%.17g,%.17g,%d,%" PRIu64 ",", a->ticks, a->low, a->high,
               a->estimated || (p->instructions && p->sum->span[i] > 1), a->calls);
        csv_print_text(source ? source : "");
        printf("\r\n");
    }
}

static json_t *make_row(const struct annotate_print *p, size_t i)
{
    const struct code_place *place;
    const struct annotate_amount *a = row_at(p, i, &place);
    const char *source = p->instructions ? p->code->instructions[i].text : line_of(p, i, place->line);
    char address[24] = "";
    json_t *row = json_pack("{sssIsssfsfsfsbsI}", "file", place->file, "line", json_count(place->line), "inlined",
                            place->chain, "ticks", a->ticks, "low", a->low, "high", a->high, "estimated",
                            (int)a->estimated, "calls", json_count(a->calls));
    if (row && p->instructions) {
        (void)snprintf(address, sizeof address, "0x%" PRIx64, p->code->instructions[i].address);
        (void)json_object_set_new(row, "address", json_string(address));
        (void)json_object_set_new(row, "bin_instructions", json_integer(json_count(p->sum->span[i])));
    }
    if (row) { /* source text may be no UTF-8 */
        json_t *text = source ? json_string(source) : NULL;
        (void)json_object_set_new(row, p->instructions ? "instruction" : "source", text ? text : json_null());
    }
    return row;
}

/* NULL when memory is exhausted. */
static json_t *annotate_print_json(const struct annotate_print *p)
{
    json_t *rows = json_array(), *notes = json_array();
    for (size_t i = 0; i < row_count(p); i++) {
        (void)json_array_append_new(rows, make_row(p, i));
    }
    for (size_t i = 0; i < p->code->place_count; i++) {
        if (p->sources[i].note[0]) {
            (void)json_array_append_new(notes, json_string(p->sources[i].note));
        }
    }
    return json_pack("{sosOsOsOsOsfsfsIsbso}", "rows", rows, "function", json_object_get(p->answer, "function"),
                     "dimension", json_object_get(p->answer, "dimension"), "calls_exact",
                     json_object_get(p->answer, "calls_exact"), "inexact_reasons",
                     json_object_get(p->answer, "inexact_reasons"), "ticks", p->sum->ticks, "shared_ticks",
                     p->sum->shared, "calls_without_site", json_count(p->sum->calls_no_site), "call_sites",
                     (int)p->sum->call_sites, "notes", notes);
}

/* ---- What annotate reads and this machine does not have: downloads from debuginfod servers ---- */

struct annotate_fetch {
    const char *url; /* NULL: the servers of DEBUGINFOD_URLS */
    const char *build_id;
    unsigned seconds;   /* for one file, and for all sources together */
    time_t sources_end; /* of the monotonic clock; 0: none was asked for */
    bool silent;        /* no more sources are asked for */
};

#define INFLATED_MOST (4 * (uint64_t)DEBUGINFOD_SIZE_MAX) /* bytes of compressed sections when they are read */
#define ZDEBUG_HEADER 12                                  /* "ZLIB" and the size, the highest byte first */

/* Bytes of a section with the flag SHF_COMPRESSED; 0 of others. */
static uint64_t section_inflated(Elf_Scn *section, const GElf_Shdr *header)
{
    GElf_Chdr compressed;
    return header->sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed) ? compressed.ch_size : 0;
}

/* Bytes of a section in GNU's older form, known by its name; 0 of others. */
static uint64_t section_inflated_older(Elf *elf, size_t names, Elf_Scn *section, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);
    const Elf_Data *data = name && strncmp(name, ".zdebug", 7) == 0 ? elf_rawdata(section, NULL) : NULL;
    const uint8_t *bytes = data && data->d_size >= ZDEBUG_HEADER ? data->d_buf : NULL;
    uint64_t size = 0;
    for (size_t i = 4; bytes && memcmp(bytes, "ZLIB", 4) == 0 && i < ZDEBUG_HEADER; i++) {
        size = size << 8 | bytes[i];
    }
    return size;
}

/* Bytes of all compressed sections, of which any is read into memory by the tools that read lines. Names are read only
 * if the sections are small, because theirs may be compressed, too. */
static uint64_t file_inflated(const char *path)
{
    uint64_t sum = 0;
    size_t names;
    GElf_Shdr header;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    for (Elf_Scn *s = NULL; elf && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const uint64_t size = gelf_getshdr(s, &header) ? section_inflated(s, &header) : 0;
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    const bool named = elf && elf_getshdrstrndx(elf, &names) == 0;
    for (Elf_Scn *s = NULL; named && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const uint64_t size = gelf_getshdr(s, &header) ? section_inflated_older(elf, names, s, &header) : 0;
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    (void)elf_end(elf);
    if (fd >= 0) {
        close(fd);
    }
    return sum;
}

/* Is a downloaded ELF file what was asked for, and can it be read? */
static enum profd_status check_file(const struct annotate_fetch *f, const char *path, struct profd_error *e)
{
    if (!build_is_file(path, f->build_id)) {
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debuginfod server sent another file than one of build %.12s",
                               f->build_id);
    }
    return file_inflated(path) <= INFLATED_MOST
               ? PROFD_OK
               : profd_error_set(e, PROFD_TOO_LARGE,
                                 "a debuginfod server sent a file of build %.12s of which the compressed sections have "
                                 "more than %" PRIu64 " MiB",
                                 f->build_id, INFLATED_MOST >> 20);
}

static enum profd_status fetch(const struct annotate_fetch *f, enum debuginfod_kind kind, const char *source,
                               char **path, struct profd_error *e)
{
    const struct debuginfod_file what = {
        .url = f->url, .build_id = f->build_id, .kind = kind, .source = source, .seconds = f->seconds};
    enum profd_status status = debuginfod_fetch(&what, path, e);
    if (status != PROFD_OK || kind == DEBUGINFOD_SOURCE) {
        return status;
    }
    status = check_file(f, *path, e);
    if (status != PROFD_OK) {
        (void)unlink(*path); /* or the cache would give it again */
        free(*path);
        *path = NULL;
    }
    return status;
}

/* The executable of the build. The caller frees *path, a file in the cache of libdebuginfod. TOO_LARGE: its compressed
 * sections have more than 2 GiB. */
static enum profd_status annotate_fetch_executable(const struct annotate_fetch *f, char **path, struct profd_error *e)
{
    return fetch(f, DEBUGINFOD_EXECUTABLE, NULL, path, e);
}

static bool ignore(void *context, char *line)
{
    (void)context;
    (void)line;
    return true;
}

static enum profd_status join(const char *executable, const char *debug, char **path, struct profd_error *e)
{
    const char *folder = getenv("TMPDIR");
    char name[1024];
    (void)snprintf(name, sizeof name, "%.900s/profctl-XXXXXX", folder && folder[0] ? folder : "/tmp");
    const int fd = mkstemp(name);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s cannot be created", name);
    }
    close(fd);
    const char *words[] = {"eu-unstrip", "-o", name, executable, debug, NULL};
    enum profd_status status = pipe_read_lines(words, "elfutils", ignore, NULL, e);
    *path = status == PROFD_OK ? strdup(name) : NULL;
    if (!*path) {
        (void)unlink(name);
    }
    return status == PROFD_OK && !*path ? profd_no_memory(e) : status;
}

/* An executable without lines, joined with its debug file. *path NULL: it has lines, or the servers have no debug file,
 * which is said. The caller removes the file and frees the string. Starts eu-unstrip of elfutils. */
static enum profd_status annotate_fetch_lines(const struct annotate_fetch *f, const char *executable, char **path,
                                              struct profd_error *e)
{
    struct code_lines *lines = NULL;
    struct profd_error why = {""};
    char *debug = NULL;
    *path = NULL;
    enum profd_status status = code_lines_open(executable, f->build_id, &lines, e);
    const bool has = lines != NULL;
    code_lines_close(lines);
    if (status != PROFD_OK || has) {
        return status;
    }
    status = fetch(f, DEBUGINFOD_DEBUG, NULL, &debug, &why);
    if (status == PROFD_NOT_FOUND) {
        profctl_complain("%s", why.sentence);
        return PROFD_OK;
    }
    status = status == PROFD_OK ? join(executable, debug, path, e) : profd_error_set(e, status, "%s", why.sentence);
    free(debug);
    return status;
}

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* For struct source_finder; context: a struct annotate_fetch. When the servers did not answer once, or the time for
 * sources is over, none is asked for any more: a function may have lines of thousands of files. */
static char *annotate_fetch_source(void *context, const char *name)
{
    struct annotate_fetch *f = context;
    char *path = NULL;
    struct profd_error why = {""};
    if (name[0] != '/' || f->silent) {
        return NULL;
    }
    f->sources_end = f->sources_end ? f->sources_end : now() + (time_t)f->seconds;
    struct annotate_fetch rest = *f;
    rest.seconds = f->sources_end > now() ? (unsigned)(f->sources_end - now()) : 0;
    enum profd_status status = rest.seconds > 0
                                   ? fetch(&rest, DEBUGINFOD_SOURCE, name, &path, &why)
                                   : profd_error_set(&why, PROFD_TIMEOUT,
                                                     "the sources of build %.12s did not arrive within %u s; --timeout "
                                                     "allows more",
                                                     f->build_id, f->seconds);
    f->silent = status != PROFD_OK && status != PROFD_NOT_FOUND;
    if (f->silent) {
        profctl_complain("%s", why.sentence);
    }
    return status == PROFD_OK ? path : NULL;
}

/* ---- The verb ---- */

#define FOLDERS_MOST 32

static const struct profctl_option options[] = {
    {"source", 0, NULL, "show source lines (the default)"},
    {"asm", 0, NULL, "show instructions"},
    {"source-path", 0, "DIR", "look for sources in DIR first; may be repeated"},
    {"exe", 'e', "FILE", "the executable or library with the function, if it was moved"},
    {"debuginfod", 0, NULL, "download missing files from a debuginfod server"},
    {"url", 0, "URL", "the debuginfod server (default: those of DEBUGINFOD_URLS)"},
    {"timeout", 0, "SECONDS", "time for one file, and for all sources together, 1 to 86400 (default 120)"},
    OPTION_FORMAT,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_UID,
    OPTION_PARTIAL,
    OPTION_LABEL,
    OPTION_MATCH,
    OPTION_SCOPE,
    OPTION_DIMENSION,
};

/* The file with the function's code: --exe, the argument, or the path that the process had, if it is that build. */
static enum profd_status find_executable(const struct profctl_call *call, const json_t *answer, const char **out,
                                         struct profd_error *e)
{
    const json_t *f = json_object_get(answer, "function");
    const char *id = row_raw(f, "build_id");
    const char *candidates[] = {profctl_value(call, "exe"), call->arguments[0], row_raw(f, "object")};
    for (size_t i = 0; i < COUNT(candidates); i++) {
        if (candidates[i] && build_is_file(candidates[i], id)) {
            *out = candidates[i];
            return PROFD_OK;
        }
        if (i == 0 && candidates[i]) {
            return profd_error_set(e, PROFD_NOT_FOUND, "--exe %s: not a readable file of build %.12s", candidates[i],
                                   id);
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND,
                           "%.200s: not a readable file of build %.12s on this machine; --exe names another path",
                           row_raw(f, "object"), id);
}

/* Files that annotate reads: the executable, where it was downloaded or joined with its debug file. */
struct files {
    struct annotate_fetch fetch;
    const char *executable;
    char *downloaded, *joined;
};

static enum profd_status find_files(const struct profctl_call *call, const json_t *answer, struct files *f,
                                    struct profd_error *e)
{
    enum profd_status status = find_executable(call, answer, &f->executable, e);
    if (!profctl_value(call, "debuginfod")) {
        return status;
    }
    f->fetch.url = profctl_value(call, "url");
    f->fetch.build_id = row_raw(json_object_get(answer, "function"), "build_id");
    if (status == PROFD_NOT_FOUND && !profctl_value(call, "exe")) {
        status = annotate_fetch_executable(&f->fetch, &f->downloaded, e);
        f->executable = f->downloaded;
    }
    if (status == PROFD_OK) {
        status = annotate_fetch_lines(&f->fetch, f->executable, &f->joined, e);
        f->executable = f->joined ? f->joined : f->executable;
    }
    return status;
}

static enum profd_status find_sources(const struct profctl_call *call, struct files *files, const struct code *code,
                                      struct source *sources, struct profd_error *e)
{
    const char *folders[FOLDERS_MOST];
    struct source_finder finder = {.executable = files->executable,
                                   .folders = folders,
                                   .fetch = profctl_value(call, "debuginfod") ? annotate_fetch_source : NULL,
                                   .context = &files->fetch};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < call->given_count && finder.folder_count < FOLDERS_MOST; i++) {
        if (strcmp(call->given[i].option->name, "source-path") == 0) {
            folders[finder.folder_count++] = call->given[i].value;
        }
    }
    for (size_t i = 0; status == PROFD_OK && i < code->place_count; i++) {
        size_t first = 0; /* one text for all places of a file; the first frees it */
        while (strcmp(code->places[first].file, code->places[i].file) != 0) {
            first++;
        }
        if (first < i) {
            sources[i] = sources[first];
        } else if (code->places[i].file[0]) {
            status = source_find(&finder, code->places[i].file, &sources[i], e);
        }
    }
    return status;
}

static enum profd_status print(size_t format, const struct annotate_print *p, struct profd_error *e)
{
    if (format == FORMAT_JSON) {
        return json_print(annotate_print_json(p), e);
    }
    if (format == FORMAT_CSV) {
        annotate_print_csv(p);
    } else {
        annotate_print_text(p);
    }
    return PROFD_OK;
}

static enum profd_status annotate(const struct profctl_call *call, size_t format, const json_t *answer,
                                  struct profd_error *e)
{
    const json_t *f = json_object_get(answer, "function");
    const uint64_t low = strtoull(row_raw(f, "address"), NULL, 16);
    const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(f, "bytes"));
    struct files files = {.executable = NULL};
    struct code code = {.count = 0};
    struct annotate_sum sum = {.span = NULL};
    struct source *sources = NULL;
    enum profd_status status = debuginfod_read_timeout(call, &files.fetch.seconds, e);
    status = status ? status : find_files(call, answer, &files, e);
    status =
        status == PROFD_OK ? code_read(files.executable, row_raw(f, "build_id"), low, low + bytes, &code, e) : status;
    if (status == PROFD_OK) {
        sources = calloc(code.place_count + 1, sizeof *sources);
        if (!sources || !annotate_sum_make(answer, &code, &sum)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu instructions", code.count);
        } else {
            status = find_sources(call, &files, &code, sources, e);
        }
    }
    if (status == PROFD_OK) {
        const struct annotate_print p = {.answer = answer,
                                         .code = &code,
                                         .sum = &sum,
                                         .sources = sources,
                                         .instructions = profctl_value(call, "asm") != NULL};
        status = print(format, &p, e);
    }
    for (size_t i = 0; sources && i < code.place_count; i++) {
        for (size_t k = i + 1; k < code.place_count; k++) {
            if (sources[k].text == sources[i].text) {
                sources[k].text = NULL;
                sources[k].lines = NULL;
            }
        }
        source_done(&sources[i]);
    }
    free(sources);
    annotate_sum_done(&sum);
    code_done(&code);
    if (files.joined) {
        (void)unlink(files.joined);
    }
    free(files.joined);
    free(files.downloaded);
    return status;
}

static enum profd_status annotate_run(const struct profctl_call *call, struct profd_error *e)
{
    struct function_place place;
    struct ask_target target;
    struct answer answer;
    char id[160];
    size_t format = FORMAT_TEXT;
    TRY(profctl_choose_format(call, &format, e));
    if (profctl_value(call, "asm") && profctl_value(call, "source")) {
        return profd_error_set(e, PROFD_USAGE, "annotate: --source and --asm are given both; choose one");
    }
    if (!profctl_value(call, "debuginfod") && (profctl_value(call, "url") || profctl_value(call, "timeout"))) {
        return profd_error_set(e, PROFD_USAGE, "annotate: --url and --timeout are for --debuginfod");
    }
    TRY(build_find(call, call->arguments[0], id, e));
    TRY(function_find(call, id, call->arguments[1], &place, e));
    function_target_init(&target, "/api/v1/builds/{}/functions/{}/addresses", id, &place);
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid|dimension", e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    enum profd_status status = json_is_object(json_object_get(answer.whole, "function"))
                                   ? annotate(call, format, answer.whole, e)
                                   : profd_error_set(e, PROFD_PROTOCOL, "the daemon's answer is no list of addresses");
    answer_free(&answer);
    return status;
}

const struct profctl_verb verb_annotate = {
    .name = "annotate",
    .arguments = "PROGRAM|BUILD|EXE FUNCTION",
    .summary = "Show ticks and calls of a function by line or instruction",
    .details = "The executable and the sources are read on this machine. CALLS are exact numbers of calls from each "
               "call site.\n",
    OPTIONS(options),
    .arguments_least = 2,
    .arguments_most = 2,
    .run = annotate_run,
};
