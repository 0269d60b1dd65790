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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/client.h"
#include "profctl/profctl.h"
#include "proto/hex.h"
#include "proto/noun.h"
#include "proto/whole.h"

/* Starts the program words[0] of PATH with these words, ended by NULL, without a shell, with an empty standard input,
 * no standard error and LC_ALL=C. Calls each with every line of its output, without the line feed; false stops the
 * program. NOT_FOUND if it is not in PATH; INTERNAL if it fails. package is the package of the program, which the
 * sentence names. */
static enum profd_status pipe_read_lines(const char *const *words, const char *package,
                                         bool (*each)(void *context, char *line), void *context, struct profd_error *e)
{
    pid_t pid = 0;
    int from = -1, how = 0;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool goes_on = true;
    FAIL_IF(getauxval(AT_SECURE), e, PROFD_FORBIDDEN, "%s is not started when profctl runs set-user-ID", words[0]);
    (void)setenv("LC_ALL", "C", 1);
    const int error = program_start(words, -1, &pid, &from);
    FAIL_IF(error == ENOENT || error == EACCES, e, PROFD_NOT_FOUND, "%s is not in PATH; the package %s has it",
            words[0], package);
    FAIL_IF(error != 0, e, PROFD_INTERNAL, "cannot start %s: %s", words[0], strerror(error));
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
    if (!goes_on || !in) {
        kill(pid, SIGTERM);
    }
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return goes_on && (!in || !WIFEXITED(how) || WEXITSTATUS(how) != 0)
               ? profd_error_set(e, PROFD_INTERNAL, "%s failed", words[0])
               : PROFD_OK;
}

/* ---- The instructions of a function, the line of each, and the calls that inlining removed above it ---- */

/* A source line, with where its function was inlined: "" or "inner, inlined at t.c:7 (middle)". */
struct code_place {
    const char *file; /* "": unknown */
    const char *chain;
    unsigned line;
};

struct code_instruction {
    uint64_t address, bytes;
    char *text;
    size_t place;
};

struct annotate_code {
    struct code_instruction *instructions; /* ascending */
    struct code_place *places;             /* none twice, in the order of their first instructions */
    uint32_t count, place_count;
};

#define SHOWN_MOST 1024 /* bytes of a name or line that are printed */
#define CHAIN_MOST 2000

struct disassembly {
    struct arena *arena;
    struct annotate_code *code;
    struct code_lines *lines; /* NULL: the file has none */
    uint32_t capacity, place_capacity;
    const char *file, *function; /* of the next instruction */
    unsigned line;
    char chain[CHAIN_MOST];
};

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

/* Adds an instruction, "    11c9:\tpush   %rbp". objdump 2.40 confuses the files of clang's DWARF 5, so files and lines
 * are those of libdw. */
static void add_instruction(struct disassembly *r, uint64_t address, const char *text)
{
    struct annotate_code *c = r->code;
    struct code_frame frames[CODE_LINES_DEPTH];
    char chain[CHAIN_MOST + 256] = "";
    const bool known = r->lines && code_lines_find(r->lines, address, frames) > 0 && frames[0].line > 0;
    const char *file = known ? frames[0].file : r->file;
    const unsigned line = known ? frames[0].line : r->line;
    (void)ARENA_EXTEND(r->arena, c->instructions, c->count, r->capacity);
    (void)ARENA_EXTEND(r->arena, c->places, c->place_count, r->place_capacity);
    struct code_place *places = c->places;
    if (r->chain[0]) {
        (void)snprintf(chain, sizeof chain, "%.200s, inlined%s", r->function, r->chain);
        r->chain[0] = '\0';
    }
    size_t place = c->place_count;
    while (place > 0 && (places[place - 1].line != line || strcmp(places[place - 1].file, file) != 0 ||
                         strcmp(places[place - 1].chain, chain) != 0)) {
        place--;
    }
    if (place == 0) {
        place = ++c->place_count;
        places[place - 1] = (struct code_place){.file = arena_copy(r->arena, file, strlen(file)),
                                                .chain = arena_copy(r->arena, chain, strlen(chain)),
                                                .line = line};
    }
    if (c->count > 0) {
        c->instructions[c->count - 1].bytes = address - c->instructions[c->count - 1].address;
    }
    char *copy = arena_copy(r->arena, text, strlen(text));
    for (char *p = copy; *p; p++) {
        *p = *p == '\t' ? ' ' : *p;
    }
    c->instructions[c->count++] = (struct code_instruction){.address = address, .text = copy, .place = place - 1};
}

static bool take_line(void *context, char *line)
{
    struct disassembly *r = context;
    const size_t n = strlen(line);
    size_t path;
    unsigned number;
    char *end;
    uint64_t address = line[0] == ' ' ? strtoull(line, &end, 16) : 0;
    if (line[0] == ' ' && end[0] == ':' && end[1] == '\t') {
        add_instruction(r, address, end + 2);
    } else if (strncmp(line, "inlined by ", 11) == 0) {
        const char *by = line + 11;
        const char *bracket = strrchr(by, '(');
        const size_t used = strlen(r->chain);
        char where[1024];
        if (bracket && bracket > by) {
            (void)snprintf(where, sizeof where, "%.*s", (int)(bracket - by - 1), by);
            (void)snprintf(r->chain + used, sizeof r->chain - used, "%s at %s %s", used ? "," : "", basename(where),
                           bracket);
        }
    } else if (n > 3 && strcmp(line + n - 3, "():") == 0) {
        r->function = arena_copy(r->arena, line, n - 3);
    } else if (line[0] != ' ' && parse_place(line, &path, &number)) {
        r->file = arena_copy(r->arena, line, path);
        r->line = number;
    }
    return true;
}

#if defined __x86_64__
#define OTHER_MACHINE EM_AARCH64
#define OTHER_OBJDUMP "aarch64-linux-gnu-objdump"
#define OTHER_PACKAGE "binutils-aarch64-linux-gnu"
#else
#define OTHER_MACHINE EM_X86_64
#define OTHER_OBJDUMP "x86_64-linux-gnu-objdump"
#define OTHER_PACKAGE "binutils-x86-64-linux-gnu"
#endif

/* Returns whether the objdump of this machine does not know the code of the executable, and that of the other does. */
static bool is_of_other_machine(const char *path)
{
    Elf64_Ehdr head = {.e_machine = EM_NONE}; /* e_machine has the same place in files of 32 bits */
    FILE *f = fopen(path, "re");
    if (f) {
        (void)!fread(&head, sizeof head, 1, f);
        (void)fclose(f);
    }
    return head.e_machine == OTHER_MACHINE;
}

/* Disassembles [low, high) of an executable, with objdump of binutils. NOT_FOUND if objdump is missing, or the file has
 * no code there. */
static enum profd_status code_read(struct arena *a, const char *path, const char *build_id, uint64_t low, uint64_t high,
                                   struct annotate_code *out, struct profd_error *e)
{
    struct disassembly r = {.arena = a, .code = out, .file = "", .function = "?"};
    char from[40], to[40];
    const bool other = is_of_other_machine(path);
    const char *objdump = other ? OTHER_OBJDUMP : "objdump", *package = other ? OTHER_PACKAGE : "binutils";
    const char *words[] = {objdump, "-d", "-l", "-C", "-w", "--inlines", "--no-show-raw-insn",
                           from,    to,   "--", path, NULL};
    *out = (struct annotate_code){.count = 0};
    (void)snprintf(from, sizeof from, "--start-address=0x%" PRIx64, low);
    (void)snprintf(to, sizeof to, "--stop-address=0x%" PRIx64, high);
    enum profd_status status = code_lines_open(path, build_id, &r.lines, e);
    status = status ? status : pipe_read_lines(words, package, take_line, &r, e);
    code_lines_close(r.lines);
    TRY(status);
    FAIL_IF(out->count == 0, e, PROFD_NOT_FOUND, "%s has no code at 0x%" PRIx64, path, low);
    out->instructions[out->count - 1].bytes = high - out->instructions[out->count - 1].address;
    return PROFD_OK;
}

/* The number of the instruction that holds the address; count if none does. O(log n). */
static size_t code_find(const struct annotate_code *c, uint64_t address)
{
    uint32_t i;
    SORT_SEARCH(i, 0, c->count, c->instructions[i].address + c->instructions[i].bytes <= address);
    return i < c->count && c->instructions[i].address <= address ? i : c->count;
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

/* The address that a call instruction names, as in "call   18a80 <jv_free>" or "bl 5d4 <f>". False if it is none, or
 * calls an address in a register or in memory. */
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
    struct arena *arena;
    const char *executable;
    const char *const *folders;
    size_t folder_count;
    /* Downloads a file that is not here and returns its path; NULL: it cannot. May be NULL. */
    const char *(*fetch)(void *context, const char *name);
    void *context; /* its */
};

#define FILE_MOST ((off_t)64 << 20)
#define DIGEST_TEXT (2 * MD5_DIGEST_SIZE)

/* Compares the text of a file with the MD5 that the line tables state for files with this last name. */
struct checking {
    const char *base;
    char digest[DIGEST_TEXT + 1]; /* of the text */
    bool stated, same;
};

/* A line of objdump: "  0\t0 0x29db2e79ae406a0bb1a954a22c626f80\t(indirect line string, offset: 0xb): t.c". objdump may
 * write the 16 bytes as one number, the last one first. */
static bool take_entry(void *context, char *line)
{
    struct checking *c = context;
    const char *hex = strstr(line, " 0x"), *name = strstr(line, "): ");
    if (hex && name && name > hex && strspn(hex + 3, "0123456789abcdef") == DIGEST_TEXT &&
        strcmp(basename(name + 3), c->base) == 0) {
        bool forward = true, backward = true;
        for (size_t i = 0; i < DIGEST_TEXT; i++) {
            forward = forward && hex[3 + i] == c->digest[i];
            backward = backward && hex[3 + i] == c->digest[(DIGEST_TEXT - 2 - i / 2 * 2) + i % 2];
        }
        c->stated = true;
        c->same = c->same || forward || backward;
    }
    return !c->same;
}

static char *read_file(struct arena *a, const char *path, size_t *size)
{
    struct stat s;
    FILE *in = stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size <= FILE_MOST ? fopen(path, "re") : NULL;
    if (!in) {
        return NULL;
    }
    char *text = arena_take(a, (size_t)s.st_size + 1);
    *size = fread(text, 1, (size_t)s.st_size, in);
    (void)fclose(in);
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
    (void)hex_put(c.digest, digest, MD5_DIGEST_SIZE);
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

/* The text of a file as DWARF names it. A folder is tried with the whole name, then with its ends, the longest first. A
 * file that differs from the MD5 of DWARF 5 is not taken; where there is no MD5, one that is newer than the executable
 * gets a note. A failure is a note. */
static void source_find(const struct source_finder *f, const char *name, struct source *out)
{
    char path[4096];
    size_t size = 0, n = 1;
    *out = (struct source){.text = NULL};
    for (size_t i = 0; !out->text && i < f->folder_count; i++) {
        const char *end = name;
        do {
            end += *end == '/';
            (void)snprintf(path, sizeof path, "%s/%s", f->folders[i], end);
            out->text = read_file(f->arena, path, &size);
            end = strchr(end, '/');
        } while (!out->text && end);
    }
    if (!out->text && name[0] == '/') {
        (void)snprintf(path, sizeof path, "%s", name);
        out->text = read_file(f->arena, name, &size);
    }
    const bool same = out->text && check_text(f, name, path, size, out);

    /* A download replaces a file that is not here, or that may differ. */
    const char *fetched = f->fetch && (!same || out->note[0]) ? f->fetch(f->context, name) : NULL;
    struct source other = {.text = fetched ? read_file(f->arena, fetched, &size) : NULL};
    if (other.text && check_text(f, name, fetched, size, &other)) {
        *out = (struct source){.text = other.text};
    } else if (!out->text) {
        (void)snprintf(out->note, sizeof out->note,
                       "%.280s is not on this machine%s; --source-path names its directory", name,
                       f->fetch ? ", nor could it be downloaded" : "");
    } else if (!same) {
        out->text = NULL;
    }
    if (!out->text) {
        return;
    }
    for (const char *p = out->text; *p; p++) {
        n += *p == '\n';
    }
    out->lines = ARENA_ARRAY(f->arena, n, char *);
    for (char *at = out->text; at; out->count++) {
        out->lines[out->count] = at;
        at = strchr(at, '\n');
        if (at) {
            *at++ = '\0';
        }
    }
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

static uint64_t address_of(const json_t *object, const char *key)
{
    return strtoull(row_raw(object, key), NULL, 16);
}

/* Bytes that an instruction has of [low, high). */
static uint64_t overlap(const struct code_instruction *i, uint64_t low, uint64_t high)
{
    uint64_t first = i->address > low ? i->address : low, end = i->address + i->bytes;
    uint64_t last = end < high ? end : high;
    return last > first ? last - first : 0;
}

static void add_ticks(struct annotate_sum *s, const struct annotate_code *code, uint64_t low, uint64_t high,
                      double ticks)
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
static size_t find_site(const struct annotate_code *code, uint64_t address)
{
    size_t at = code_find(code, address - 1);
    if (at == code->count || code->instructions[at].address + code->instructions[at].bytes != address ||
        !code_is_call(&code->instructions[at])) {
        at = code_find(code, address);
    }
    return at < code->count && code_is_call(&code->instructions[at]) ? at : code->count;
}

/* Returns whether the call instruction names the callee of the row. */
static bool is_named(const json_t *answer, const struct code_instruction *i, const json_t *row)
{
    const char *own = json_string_value(json_object_get(json_object_get(answer, "function"), "build_id")),
               *build = json_string_value(json_object_get(row, "build_id"));
    uint64_t target;
    return own && build && strcmp(own, build) == 0 && code_find_target(i, &target) &&
           target == address_of(row, "callee_address");
}

/* An end of Wilson's score interval of x of n samples, as if only n/overdispersion were independent. */
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

/* Adds up an answer of /addresses. */
static void annotate_sum_make(struct arena *a, const json_t *answer, const struct annotate_code *code,
                              struct annotate_sum *out)
{
    const json_t *row;
    size_t k;
    const double all = row_real(answer, "ticks"), overdispersion = row_real(answer, "overdispersion");
    *out = (struct annotate_sum){.instructions = ARENA_ARRAY(a, code->count, struct annotate_amount),
                                 .span = ARENA_ARRAY(a, code->count, size_t),
                                 .places = ARENA_ARRAY(a, code->place_count, struct annotate_amount),
                                 .call_sites = row_flag(answer, "call_sites")};
    bool *named = ARENA_ARRAY(a, code->count + 1, bool);
    json_array_foreach(json_object_get(answer, "rows"), k, row)
    {
        const uint64_t low = address_of(row, "address"), bytes = (uint64_t)row_real(row, "bytes");
        if (row_flag(row, "shared")) {
            out->shared += row_real(row, "ticks");
        } else {
            add_ticks(out, code, low, low + bytes, row_real(row, "ticks"));
        }
    }

    /* A call instruction that names a callee makes no other calls: those are of functions that the callee jumped to. */
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const size_t at = find_site(code, address_of(row, "address"));
        named[at] = named[at] || (at < code->count && is_named(answer, &code->instructions[at], row));
    }
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const uint64_t calls = row_number(row, "calls");
        const size_t at = out->call_sites ? find_site(code, address_of(row, "address")) : code->count;
        if (at == code->count || (named[at] && !is_named(answer, &code->instructions[at], row))) {
            out->calls_no_site += calls;
        } else {
            out->instructions[at].calls += calls;
            out->places[code->instructions[at].place].calls += calls;
        }
    }
    for (size_t i = 0; i < code->count; i++) {
        find_interval(&out->instructions[i], all, overdispersion);
    }
    for (size_t i = 0; i < code->place_count; i++) {
        find_interval(&out->places[i], all, overdispersion);
    }
}

/* ---- A function's lines or instructions with their ticks and calls ---- */

struct annotate_print {
    const json_t *answer; /* of /addresses */
    const struct annotate_code *code;
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

static void print_instructions(const struct annotate_print *p)
{
    size_t covered = 0;
    bool wide = false;
    for (size_t i = 0; i < p->code->count; i++) {
        const struct code_instruction *in = &p->code->instructions[i];
        const struct code_place *place = &p->code->places[in->place];
        if (i == 0 || in->place != p->code->instructions[i - 1].place) {
            const char *source = line_of(p, in->place, place->line);
            printf("%42s ", "");
            profctl_print(place->file[0] ? place->file : "?", SHOWN_MOST);
            if (place->file[0]) {
                printf(":%u", place->line);
            }
            if (place->chain[0]) {
                printf(" (");
                profctl_print(place->chain, SHOWN_MOST);
                printf(")");
            }
            printf("%s", source ? "  " : "");
            print_source(source ? source : "");
            printf("\n");
        }
        print_amount(p, &p->sum->instructions[i]);
        printf("%s%8" PRIx64 "  ", covered > 0 ? "+" : p->sum->span[i] > 1 ? "/" : " ", in->address);
        profctl_print(in->text, SHOWN_MOST);
        printf("\n");
        covered = p->sum->span[i] > 1 ? p->sum->span[i] - 1 : covered > 0 ? covered - 1 : 0;
        wide = wide || p->sum->span[i] > 1;
    }
    if (wide) {
        printf("/ and +: a bin of the histogram holds several instructions; its ticks stand at the first.\n");
    }
}

/* Lines of one file and one chain of inlined calls. */
static bool same_part(const struct code_place *a, const struct code_place *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->chain, b->chain) == 0;
}

/* The lines of one file and one chain of inlined calls, from the first to the last with ticks or calls. */
static void print_part(const struct annotate_print *p, size_t part)
{
    const struct annotate_code *c = p->code;
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
        const struct annotate_amount *a = NULL;
        for (size_t i = part; !a && i < c->place_count; i++) {
            a = c->places[i].line == line && same_part(&c->places[i], place) ? &p->sum->places[i] : NULL;
        }
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
    const struct annotate_code *c = p->code;
    const struct annotate_sum *s = p->sum;
    const json_t *f = json_object_get(p->answer, "function");
    profctl_print(row_raw(f, "name"), SHOWN_MOST);
    printf(" in ");
    profctl_print(row_raw(f, "object"), SHOWN_MOST);
    printf(": %.0f of %.0f ticks, ", s->ticks, row_real(p->answer, "ticks"));
    function_print_calls(p->answer);
    for (size_t i = 0; i < c->place_count; i++) {
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
    if (s->ticks > 0 && strcmp(row_raw(p->answer, "dimension"), "seconds") == 0) {
        printf("A tick stands at the instruction that was to run next: those of a slow one stand behind it.\n");
    }
    printf("%8s %5s %14s %12s %s\n", "TICKS", "%", "95% INTERVAL", "CALLS", p->instructions ? "INSTRUCTION" : "LINE");

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

/* NULL when memory is exhausted. */
static json_t *annotate_print_json(const struct annotate_print *p)
{
    json_t *rows = json_array(), *notes = json_array();
    for (size_t i = 0; i < row_count(p); i++) {
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
        if (row) { /* source text need not be UTF-8 */
            json_t *text = source ? json_string(source) : NULL;
            (void)json_object_set_new(row, p->instructions ? "instruction" : "source", text ? text : json_null());
        }
        (void)json_array_append_new(rows, row);
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
    struct arena *arena;
    const char *url; /* NULL: the servers of DEBUGINFOD_URLS */
    const char *build_id;
    unsigned seconds;    /* for one file, and for all sources together */
    int64_t sources_end; /* of conn_clock; 0 before the first source */
    bool silent;         /* no more sources are asked for */
};

#define INFLATED_MOST (4 * (uint64_t)DEBUGINFOD_SIZE_MAX) /* bytes of compressed sections when they are read */
#define ZDEBUG_HEADER 12                                  /* "ZLIB" and the size, the highest byte first */

/* Bytes of all compressed sections: the tools that read lines may read each of them into memory. Names of sections are
 * read only if the sections are small, because those may be compressed, too. */
static uint64_t file_inflated(const char *path)
{
    uint64_t sum = 0;
    size_t names;
    GElf_Shdr header;
    GElf_Chdr compressed;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    for (Elf_Scn *s = NULL; elf && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const uint64_t size =
            gelf_getshdr(s, &header) && header.sh_flags & SHF_COMPRESSED && gelf_getchdr(s, &compressed)
                ? compressed.ch_size
                : 0;
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    const bool named = elf && elf_getshdrstrndx(elf, &names) == 0;
    for (Elf_Scn *s = NULL; named && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const char *name = gelf_getshdr(s, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        const Elf_Data *data = name && strncmp(name, ".zdebug", 7) == 0 ? elf_rawdata(s, NULL) : NULL;
        const uint8_t *bytes = data && data->d_size >= ZDEBUG_HEADER ? data->d_buf : NULL;
        uint64_t size = 0;
        for (size_t i = 4; bytes && memcmp(bytes, "ZLIB", 4) == 0 && i < ZDEBUG_HEADER; i++) {
            size = size << 8 | bytes[i];
        }
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    (void)elf_end(elf);
    whole_close(fd);
    return sum;
}

/* Downloads a file of the build: *path is a file in the cache of libdebuginfod. WRONG_BUILD if an ELF
 * file is of another build; TOO_LARGE if its compressed sections have more than 2 GiB. */
static enum profd_status fetch(const struct annotate_fetch *f, enum debuginfod_kind kind, const char *source,
                               const char **path, struct profd_error *e)
{
    char *cached;
    const struct debuginfod_file what = {
        .url = f->url, .build_id = f->build_id, .kind = kind, .source = source, .seconds = f->seconds};
    TRY(debuginfod_fetch(&what, &cached, e));
    enum profd_status status = PROFD_OK;
    *path = arena_copy(f->arena, cached, strlen(cached));
    free(cached);
    if (kind == DEBUGINFOD_SOURCE) {
        return PROFD_OK;
    }
    if (!build_is_file(*path, f->build_id)) {
        status = profd_error_set(e, PROFD_WRONG_BUILD, "a debuginfod server sent another file than one of build %.12s",
                                 f->build_id);
    } else if (file_inflated(*path) > INFLATED_MOST) {
        status = profd_error_set(e, PROFD_TOO_LARGE,
                                 "a debuginfod server sent a file of build %.12s of which the compressed sections have "
                                 "more than %" PRIu64 " MiB",
                                 f->build_id, INFLATED_MOST >> 20);
    }
    if (status != PROFD_OK) {
        (void)unlink(*path); /* or the cache would give it again */
        *path = NULL;
    }
    return status;
}

static bool ignore(void *context, char *line)
{
    (void)context;
    (void)line;
    return true;
}

/* Joins an executable without lines with its debug file, by eu-unstrip of elfutils. *path stays NULL if it has lines,
 * or if the servers have no debug file, which is said. The caller removes the file. */
static enum profd_status annotate_fetch_lines(const struct annotate_fetch *f, const char *executable, char **path,
                                              struct profd_error *e)
{
    struct code_lines *lines = NULL;
    struct profd_error why = {""};
    const char *folder = getenv("TMPDIR");
    const char *debug = NULL;
    char name[1024];
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
    FAIL_IF(status != PROFD_OK, e, status, "%s", why.sentence);
    (void)snprintf(name, sizeof name, "%.900s/profctl-XXXXXX", folder && folder[0] ? folder : "/tmp");
    *path = arena_copy(f->arena, name, strlen(name));
    const int fd = mkstemp(*path);
    FAIL_IF(fd < 0, e, PROFD_CANT_CREATE, "%s cannot be created", name);
    const char *words[] = {"eu-unstrip", "-o", *path, executable, debug, NULL};
    close(fd);
    return pipe_read_lines(words, "elfutils", ignore, NULL, e);
}

/* Downloads a source, for struct source_finder; context is a struct annotate_fetch. Once the servers did not answer, or
 * the time for sources is over, no more are asked for: a function may have lines of thousands of files. */
static const char *annotate_fetch_source(void *context, const char *name)
{
    struct annotate_fetch *f = context;
    const char *path = NULL;
    struct profd_error why = {""};
    if (name[0] != '/' || f->silent) {
        return NULL;
    }
    const int64_t now = conn_clock();
    f->sources_end = f->sources_end ? f->sources_end : now + (int64_t)f->seconds * 1000;
    struct annotate_fetch rest = *f;
    rest.seconds = f->sources_end > now ? (unsigned)((f->sources_end - now + 999) / 1000) : 0;
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
    OPTIONS_SELECTION,
    OPTION_SCOPE,
    OPTION_DIMENSION,
};

/* Files that annotate reads: the executable, where it was downloaded or joined with its debug file. */
struct annotate_files {
    struct annotate_fetch fetch;
    const char *executable;
    char *joined;
};

/* Finds the file with the function's code: --exe, the argument, or the path that the process had, if it is that build.
 * With --debuginfod it is downloaded if it is not there, and joined with its debug file. */
static enum profd_status find_files(const struct profctl_call *call, const json_t *answer, struct annotate_files *f,
                                    struct profd_error *e)
{
    const json_t *function = json_object_get(answer, "function");
    const char *id = row_raw(function, "build_id"), *object = row_raw(function, "object"),
               *given = profctl_value(call, "exe"), *candidates[] = {given, call->arguments[0], object};
    const bool download = profctl_value(call, "debuginfod") != NULL;
    for (size_t i = 0; !f->executable && i < (given ? 1 : COUNT(candidates)); i++) {
        f->executable = candidates[i] && build_is_file(candidates[i], id) ? candidates[i] : NULL;
    }
    FAIL_IF(!f->executable && given, e, PROFD_NOT_FOUND, "--exe %s: not a readable file of build %.12s", given, id);
    FAIL_IF(!f->executable && !download, e, PROFD_NOT_FOUND,
            "%.200s: not a readable file of build %.12s on this machine; --exe names another path", object, id);
    if (download) {
        f->fetch.url = profctl_value(call, "url");
        f->fetch.build_id = id;
        if (!f->executable) {
            TRY(fetch(&f->fetch, DEBUGINFOD_EXECUTABLE, NULL, &f->executable, e));
        }
        TRY(annotate_fetch_lines(&f->fetch, f->executable, &f->joined, e));
        f->executable = f->joined ? f->joined : f->executable;
    }
    return PROFD_OK;
}

static void find_sources(const struct profctl_call *call, struct annotate_files *files,
                         const struct annotate_code *code, struct source *sources)
{
    const char *folders[FOLDERS_MOST];
    struct source_finder finder = {.arena = call->arena,
                                   .executable = files->executable,
                                   .folders = folders,
                                   .fetch = profctl_value(call, "debuginfod") ? annotate_fetch_source : NULL,
                                   .context = &files->fetch};
    for (size_t i = 0; i < call->given_count && finder.folder_count < FOLDERS_MOST; i++) {
        if (strcmp(call->given[i].option->name, "source-path") == 0) {
            folders[finder.folder_count++] = call->given[i].value;
        }
    }
    for (size_t i = 0; i < code->place_count; i++) {
        size_t first = 0; /* one text for all places of a file */
        while (strcmp(code->places[first].file, code->places[i].file) != 0) {
            first++;
        }
        if (first < i) {
            sources[i] = sources[first];
        } else if (code->places[i].file[0]) {
            source_find(&finder, code->places[i].file, &sources[i]);
        }
    }
}

static enum profd_status annotate(const struct profctl_call *call, size_t format, const json_t *answer,
                                  struct profd_error *e)
{
    const json_t *f = json_object_get(answer, "function");
    const uint64_t low = address_of(f, "address");
    struct annotate_files files = {.fetch.arena = call->arena};
    struct annotate_code code = {.count = 0};
    struct annotate_sum sum;
    TRY(debuginfod_read_timeout(call, &files.fetch.seconds, e));
    enum profd_status status = find_files(call, answer, &files, e);
    status = status ? status
                    : code_read(call->arena, files.executable, row_raw(f, "build_id"), low,
                                low + row_number(f, "bytes"), &code, e);
    if (status == PROFD_OK) {
        struct source *sources = ARENA_ARRAY(call->arena, code.place_count, struct source);
        annotate_sum_make(call->arena, answer, &code, &sum);
        find_sources(call, &files, &code, sources);
        const struct annotate_print p = {.answer = answer,
                                         .code = &code,
                                         .sum = &sum,
                                         .sources = sources,
                                         .instructions = profctl_value(call, "asm") != NULL};
        if (format == FORMAT_JSON) {
            status = json_print(annotate_print_json(&p), e);
        } else if (format == FORMAT_CSV) {
            annotate_print_csv(&p);
        } else {
            annotate_print_text(&p);
        }
    }
    if (files.joined) {
        (void)unlink(files.joined);
    }
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
    FAIL_IF(profctl_value(call, "asm") && profctl_value(call, "source"), e, PROFD_USAGE,
            "annotate: --source and --asm are given both; choose one");
    FAIL_IF(!profctl_value(call, "debuginfod") && (profctl_value(call, "url") || profctl_value(call, "timeout")), e,
            PROFD_USAGE, "annotate: --url and --timeout are for --debuginfod");
    TRY(build_find(call, call->arguments[0], id, e));
    TRY(function_find(call, id, call->arguments[1], &place, e));
    function_target_init(&target, "/api/v1/builds/{}/functions/{}/addresses", id, &place);
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid|dimension", e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    FAIL_IF(!json_is_object(json_object_get(answer.whole, "function")), e, PROFD_PROTOCOL,
            "the daemon's answer is no list of addresses");
    return annotate(call, format, answer.whole, e);
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
