/* The common result of all parsers: what another tool measured in one process, before addresses are assigned to builds.
 * Pure; everything lives in an arena. */
#ifndef PROFD_CLIENT_IMPORT_PROFILE_H
#define PROFD_CLIENT_IMPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/table.h"
#include "proto/status.h"

#define IMPORT_NONE UINT32_MAX
#define IMPORT_NO_OFFSET UINT64_MAX

/* Texts, each stored once: equal texts are equal pointers. */
struct import_texts {
    struct arena *arena;
    struct table table;
    struct import_text *list;
    uint32_t count, capacity;
};

/* Kinds of addresses of an object's frames. */
enum import_addressing {
    IMPORT_LINK_TIME, /* addresses of the build */
    IMPORT_IN_FILE,   /* offsets in its file */
    IMPORT_MOVED,     /* they differ from link-time addresses by whole pages, which the names of functions determine */
};

struct import_object {
    const char *path;     /* a text; never NULL */
    const char *build_id; /* as the file states it; NULL if it does not */
    enum import_addressing addressing;
    bool outside;       /* not a file: the kernel, generated code */
    uint64_t low, high; /* mapped range, in addresses of this kind; both 0 if unknown */
};

/* A place in the code. */
struct import_frame {
    uint32_t object;
    const char *name, *file; /* texts; NULL if unknown */
    bool has_address;
    uint64_t address; /* 0 without has_address */
    uint64_t offset;  /* offset of the address in the function of that name, or IMPORT_NO_OFFSET */
    uint64_t ticks;   /* not a part of what it is */
};

/* Calls from one frame to another. from and to are numbers of frames. */
struct import_pair {
    uint32_t from, to;
    uint64_t calls;
};

/* A node of the tree of stacks, after its parent: a frame that the parent's called. */
struct import_node {
    uint32_t parent; /* IMPORT_NONE: the outermost frame that is known */
    uint32_t frame;  /* IMPORT_CUT: frames that are left out, only without a parent */
    bool leaf;       /* where the sample was taken, not a caller */
    uint64_t ticks;  /* of the stacks that end here */
};
#define IMPORT_CUT (UINT32_MAX - 1)

struct import_profile {
    struct arena *arena;
    const char *process; /* "main (12345)", for sentences; "": nothing to say */
    struct import_object *objects;
    struct import_frame *frames; /* in order of arrival, each once */
    struct import_pair *pairs;   /* the same */
    struct import_node *nodes;   /* the same; of ticks that frames have, too */
    uint32_t object_count, frame_count, pair_count, node_count;
    uint32_t object_capacity, frame_capacity, pair_capacity, node_capacity;
    struct table object_table, frame_table, pair_table, node_table;
    const char *program;     /* name of the program in the file, perhaps cut; "" if it has none */
    const char *program_id;  /* the program's build-id, NULL if unknown */
    uint32_t program_object; /* object of the program, or IMPORT_NONE if it must be determined by name */
    bool saturated;          /* a sum reached its end */
    bool whole_stacks;       /* they begin where all stacks of a thread do; else frames say so, or do not */
    bool sampled;            /* an export of profd: its calls were sampled, not counted */
    bool lossy;              /* the tool that measured reported losses */
    bool own;                /* an export of profd: reasons says why its counts are not exact, and lossy nothing */
    uint32_t reasons;        /* INEXACT_… bits that an upload may have */
    uint32_t processes;      /* processes that began with this profile; 0: it continues a process */
    char dimension[16], abbreviation;
    uint32_t rate;       /* ticks per unit of the dimension */
    uint64_t start, end; /* ns since 1970, 0 if unknown */
};

/* An export of profd names its reasons; a process that was live then had later counts that are not in it. */
void import_profile_set_reasons(struct import_profile *p, const char *text, size_t n);
/* How many processes the file says that its counts are of; at most 2^32-1. */
void import_profile_set_processes(struct import_profile *p, uint64_t n);
void import_texts_init(struct import_texts *t, struct arena *a);
/* Returns the text of n bytes, which may contain any byte but NUL; NULL if memory is exhausted. Expected O(n). */
const char *import_texts_take(struct import_texts *t, const char *text, size_t n);

/* Initialises an empty profile of "seconds" with rate 1 in the arena. */
void import_profile_init(struct import_profile *p, struct arena *a);
/* Sets the dimension, cut to 15 bytes, and its first letter as abbreviation; 'I' for instructions. */
void import_profile_set_dimension(struct import_profile *p, const char *name, size_t n, uint32_t rate);
/* Appends an object; NULL if memory is exhausted. A path that is "???" or "", or begins with '[' or "//", is not a
 * file: outside. */
struct import_object *import_profile_add_object(struct import_profile *p, const char *path);
/* Sets the number of the object with that path, which is a text; appended on first use. Do not use both functions on
 * one profile. Expected O(1). */
bool import_profile_take_object(struct import_profile *p, const char *path, uint32_t *out);
/* Sets the number of the frame, created on first use; its ticks are unchanged. False if memory is exhausted. Expected
 * O(1).
 */
bool import_profile_take_frame(struct import_profile *p, const struct import_frame *key, uint32_t *out);
void import_profile_add_ticks(struct import_profile *p, uint32_t frame, uint64_t ticks);
/* Adds calls of a pair. False if memory is exhausted. Expected O(1). */
bool import_profile_add_pair(struct import_profile *p, uint32_t from, uint32_t to, uint64_t calls);
/* Adds ticks of a stack of n frames, the leaf first; the last one may be IMPORT_CUT, if there are others. Frames beyond
 * LIMIT_STACK_DEPTH are left out. Nothing is added if there are no ticks or no frames. False if memory is exhausted.
 * Expected O(n). */
bool import_profile_add_stack(struct import_profile *p, const uint32_t *frames, uint32_t n, uint64_t ticks);
/* Sets the sentence for exhausted memory: NO_MEMORY, or LIMIT if the arena's own limit was reached. */
enum profd_status import_profile_exhausted(const struct arena *a, struct profd_error *e);

#endif
