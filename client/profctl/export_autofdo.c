#include "profctl/export_autofdo.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_MASK 0xffffu /* LLVM keeps 16 bits of a line's distance from its function */

struct target {
    const char *function;
    uint64_t calls;
};

struct position {
    unsigned offset, discriminator;
};

struct body {
    struct position at;
    uint64_t count;
    struct target *targets;
    size_t target_count, target_capacity;
};

/* A function, or an inlined copy of one at a position of its parent. */
struct node {
    struct position at;
    const char *function;
    uint64_t head, total; /* total: of its lines, and of what is inlined there */
    struct node *parent;
    struct body *bodies;
    size_t body_count, body_capacity;
    struct node **children; /* ascending once they are printed */
    size_t child_count, child_capacity;
    size_t printed; /* of them */
};

struct profile {
    struct code_lines *lines;
    struct node root;   /* its children are the functions */
    struct node **made; /* all others; parents stand before children */
    size_t made_count, made_capacity;
    uint64_t left_out, taken;
};

/* The list with space for one more row; NULL: no memory. */
static void *grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return list;
    }
    const size_t more = *capacity ? 2 * *capacity : 8;
    void *grown = reallocarray(list, more, size);
    *capacity = grown ? more : *capacity;
    return grown;
}

/* A component of a discriminator of clang -fdebug-info-for-profiling: the first is the one of the source, the second
 * says how many copies of the code the compiler made. */
static unsigned component_of(unsigned d)
{
    if (d & 1) {
        return 0;
    }
    d >>= 1;
    return d & 0x20 ? ((d >> 1) & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static unsigned copies_of(unsigned d)
{
    const unsigned copies = component_of(d & 1 ? d >> 1 : d >> (d & 0x40 ? 14 : 7));
    return copies > 0 ? copies : 1;
}

static struct position position_of(const struct code_frame *f)
{
    return (struct position){(f->line - f->first_line) & OFFSET_MASK, component_of(f->discriminator)};
}

static int compare_positions(const struct position *a, const struct position *b)
{
    return a->offset != b->offset ? (a->offset > b->offset) - (a->offset < b->offset)
                                  : (a->discriminator > b->discriminator) - (a->discriminator < b->discriminator);
}

static int compare_bodies(const void *left, const void *right)
{
    return compare_positions(&((const struct body *)left)->at, &((const struct body *)right)->at);
}

static int compare_nodes(const void *left, const void *right)
{
    const struct node *a = *(struct node *const *)left, *b = *(struct node *const *)right;
    const int order = compare_positions(&a->at, &b->at);
    return order != 0 ? order : strcmp(a->function, b->function);
}

/* Neighbouring addresses have the same line: the search begins at the last row. */
static struct body *take_body(struct node *n, struct position at)
{
    for (size_t i = n->body_count; i-- > 0;) {
        if (compare_positions(&n->bodies[i].at, &at) == 0) {
            return &n->bodies[i];
        }
    }
    struct body *bodies = grow(n->bodies, n->body_count, &n->body_capacity, sizeof *bodies);
    if (!bodies) {
        return NULL;
    }
    n->bodies = bodies;
    bodies[n->body_count] = (struct body){.at = at};
    return &bodies[n->body_count++];
}

static struct node *take_child(struct profile *p, struct node *n, struct position at, const char *function)
{
    for (size_t i = n->child_count; i-- > 0;) {
        if (compare_positions(&n->children[i]->at, &at) == 0 && strcmp(n->children[i]->function, function) == 0) {
            return n->children[i];
        }
    }
    struct node **children = grow(n->children, n->child_count, &n->child_capacity, sizeof(struct node *)),
                **made = grow(p->made, p->made_count, &p->made_capacity, sizeof(struct node *));
    n->children = children ? children : n->children;
    p->made = made ? made : p->made;
    struct node *child = children && made ? calloc(1, sizeof *child) : NULL;
    if (child) {
        *child = (struct node){.at = at, .function = function, .parent = n};
        children[n->child_count++] = made[p->made_count++] = child;
    }
    return child;
}

/* The row of an address. *out NULL: it has no line, or its function no name. False: no memory. */
static bool find_body(struct profile *p, uint64_t address, struct body **out, unsigned *copies, struct node **function)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    size_t n = code_lines_find(p->lines, address, frames);
    struct node *node = &p->root;
    struct position at = {0, 0};
    bool known = n > 0;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        known = known && frames[i].function[0] && frames[i].first_line > 0 && frames[i].line > 0;
    }
    if (!known) {
        return true;
    }
    for (size_t i = n; node && i-- > 0; at = position_of(&frames[i])) {
        node = take_child(p, node, at, frames[i].function);
        *function = i + 1 == n ? node : *function;
    }
    *copies = copies_of(frames[0].discriminator);
    *out = node ? take_body(node, at) : NULL;
    return *out != NULL;
}

static bool add_ticks(struct profile *p, uint64_t address, uint64_t ticks)
{
    struct body *body;
    struct node *function;
    unsigned copies;
    if (!find_body(p, address, &body, &copies, &function)) {
        return false;
    }
    if (!body) {
        p->left_out += ticks;
        return true;
    }
    p->taken += ticks;
    body->count = ticks * copies > body->count ? ticks * copies : body->count;
    return true;
}

/* Lines of the function at an address without ticks have the count 0, and the function gets its head. */
static bool add_lines(struct profile *p, uint64_t address, uint64_t *end)
{
    uint64_t low, high, entry;
    struct body *body = NULL;
    struct node *function;
    unsigned copies;
    if (!code_lines_range(p->lines, address, &low, &high, &entry)) {
        *end = address + 1;
        return true;
    }
    for (uint64_t at = code_lines_next(p->lines, low, high); at < high; at = code_lines_next(p->lines, at + 1, high)) {
        if (!find_body(p, at, &body, &copies, &function)) {
            return false;
        }
    }
    if (entry == low && !find_body(p, entry, &body, &copies, &function)) {
        return false;
    }
    if (entry == low && body) {
        function->head = body->count;
    }
    *end = high;
    return true;
}

static bool add_call(struct profile *p, uint64_t from, uint64_t to, uint64_t calls)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    struct body *body;
    struct node *function;
    unsigned copies;
    size_t n = code_lines_find(p->lines, to, frames);
    if (n == 0 || !frames[n - 1].function[0]) {
        return true;
    }
    const char *callee = frames[n - 1].function;
    if (!find_body(p, from, &body, &copies, &function) || !body) {
        return !body;
    }
    for (size_t i = 0; i < body->target_count; i++) {
        if (strcmp(body->targets[i].function, callee) == 0) {
            body->targets[i].calls += calls;
            return true;
        }
    }
    struct target *targets = grow(body->targets, body->target_count, &body->target_capacity, sizeof *targets);
    if (targets) {
        body->targets = targets;
        targets[body->target_count++] = (struct target){callee, calls};
    }
    return targets != NULL;
}

static enum profd_status add_histogram(struct profile *p, const struct counts *c, const struct counts_histogram *h,
                                       struct profd_error *e)
{
    uint64_t end = 0;
    bool done = true;
    if (h->bins != h->high - h->low) {
        return profd_error_set(
            e, PROFD_REFUSED,
            "-f autofdo needs ticks of single instructions, and this histogram has %.3g bytes a bin; "
            "profctl run counts single instructions",
            (double)(h->high - h->low) / h->bins);
    }
    for (uint32_t i = 0; done && i < h->used; i++) {
        done = add_ticks(p, h->low + c->bin_index[h->first + i], c->bin_ticks[h->first + i]);
    }
    for (uint32_t i = 0; done && i < h->used; i++) { /* bins ascend */
        const uint64_t address = h->low + c->bin_index[h->first + i];
        done = address < end || add_lines(p, address, &end);
    }
    return done ? PROFD_OK : profd_no_memory(e);
}

static void print_position(FILE *out, struct position at)
{
    fprintf(out, at.discriminator > 0 ? "%u.%u: " : "%u: ", at.offset, at.discriminator);
}

static void print_body(FILE *out, const struct body *b, int depth)
{
    double calls = 0;
    fprintf(out, "%*s", depth, "");
    print_position(out, b->at);
    fprintf(out, "%" PRIu64, b->count);
    for (size_t i = 0; i < b->target_count; i++) {
        calls += (double)b->targets[i].calls;
    }
    for (size_t i = 0; i < b->target_count; i++) {
        const uint64_t part = (uint64_t)((double)b->count * (double)b->targets[i].calls / calls);
        if (part > 0) {
            fprintf(out, " %s:%" PRIu64, b->targets[i].function, part);
        }
    }
    fprintf(out, "\n");
}

/* Children behind lines, as LLVM writes them. */
static void print(struct profile *p, FILE *out)
{
    int depth = 0;
    for (size_t i = p->made_count; i-- > 0;) {
        struct node *n = p->made[i];
        for (size_t k = 0; k < n->body_count; k++) {
            n->total += n->bodies[k].count;
        }
        n->parent->total += n->total;
    }
    for (struct node *n = &p->root; n;) {
        if (n->printed == 0 && n->child_count > 0) {
            qsort(n->children, n->child_count, sizeof(struct node *), compare_nodes);
        }
        if (n->printed == n->child_count) {
            n = n->parent;
            depth--;
            continue;
        }
        n = n->children[n->printed++];
        if (depth == 0) {
            fprintf(out, "%s:%" PRIu64 ":%" PRIu64 "\n", n->function, n->total, n->head);
        } else {
            fprintf(out, "%*s", depth, "");
            print_position(out, n->at);
            fprintf(out, "%s:%" PRIu64 "\n", n->function, n->total);
        }
        depth++;
        if (n->body_count > 0) {
            qsort(n->bodies, n->body_count, sizeof *n->bodies, compare_bodies);
        }
        for (size_t i = 0; i < n->body_count; i++) {
            print_body(out, &n->bodies[i], depth);
        }
    }
}

enum profd_status autofdo_write(const struct counts *c, struct code_lines *lines, FILE *out, uint64_t *left_out,
                                struct profd_error *e)
{
    struct profile p = {.lines = lines};
    enum profd_status status = PROFD_OK;
    for (uint32_t i = 0; status == PROFD_OK && i < c->histogram_count; i++) {
        if (c->histograms[i].build == 0 && strcmp(c->histograms[i].dimension, "seconds") == 0) {
            status = add_histogram(&p, c, &c->histograms[i], e);
        }
    }
    for (uint32_t i = 0; status == PROFD_OK && i < c->arc_count; i++) {
        if (c->from_build[i] == 0 && c->to_build[i] == 0 && c->calls[i] > 0 && c->from[i] > 0 &&
            !add_call(&p, c->from[i] - 1, c->to[i], c->calls[i])) {
            status = profd_no_memory(e);
        }
    }
    if (status == PROFD_OK && p.taken == 0) {
        status = profd_error_set(e, PROFD_REFUSED, "-f autofdo: no CPU tick is at an instruction with a source line");
    }
    if (status == PROFD_OK) {
        print(&p, out);
        *left_out = p.left_out;
    }
    for (size_t i = 0; i < p.made_count; i++) {
        for (size_t k = 0; k < p.made[i]->body_count; k++) {
            free(p.made[i]->bodies[k].targets);
        }
        free(p.made[i]->bodies);
        free(p.made[i]->children);
        free(p.made[i]);
    }
    free(p.made);
    free(p.root.children);
    return status;
}
