#include "profctl/annotate_code.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/code_lines.h"
#include "profctl/profctl_pipe.h"

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

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
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
        (void)snprintf(r->chain + used, sizeof r->chain - used, "%s at %s %s", used ? "," : "", base_of(place), open);
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

enum profd_status code_read(const char *path, const char *build_id, uint64_t low, uint64_t high, struct code *out,
                            struct profd_error *e)
{
    struct reading r = {.code = out};
    char from[40], to[40];
    const char *words[] = {"objdump", "-d", "-l", "-C", "-w", "--inlines", "--no-show-raw-insn",
                           from,      to,   "--", path, NULL};
    *out = (struct code){.count = 0};
    (void)snprintf(from, sizeof from, "--start-address=0x%" PRIx64, low);
    (void)snprintf(to, sizeof to, "--stop-address=0x%" PRIx64, high);
    enum profd_status status = code_lines_open(path, build_id, &r.lines, e);
    status = status == PROFD_OK ? pipe_read_lines(words, "binutils", take_line, &r, e) : status;
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

void code_done(struct code *c)
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

size_t code_find(const struct code *c, uint64_t address)
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

bool code_is_call(const struct code_instruction *i)
{
    static const char *const CALLS[] = {"call", "bl ", "blr ", "bnd call", "addr32 call", "jal", "notrack call"};
    for (size_t k = 0; k < sizeof CALLS / sizeof CALLS[0]; k++) {
        if (strncmp(i->text, CALLS[k], strlen(CALLS[k])) == 0) {
            return true;
        }
    }
    return false;
}

/* "call   18a80 <jv_free>", "bl 5d4 <f>" */
bool code_find_target(const struct code_instruction *i, uint64_t *target)
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
