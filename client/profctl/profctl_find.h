/* Which build, side of a comparison and function a person means. */
#ifndef PROFD_CLIENT_PROFCTL_FIND_H
#define PROFD_CLIENT_PROFCTL_FIND_H

#include "profctl/profctl_ask.h"

/* The build-id or prefix for an argument: that of the file, if it contains '/' or exists; that of the program with this
 * name, as profctl builds prints it; that of the command with this name, which may be a link; otherwise the argument
 * itself, if it can be the beginning of a build-id.
 * AMBIGUOUS, with a list, if several builds have the name; NOT_FOUND if nothing stored is called so. id has 160 bytes.
 * Queries the daemon for its builds unless the argument is a file or too long for a name. */
enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[160],
                             struct profd_error *e);

#define COMMAND_PATH_SIZE 4096
/* The file that execvp() runs for a name. False: there is none. */
bool command_find(const char *name, char out[COMMAND_PATH_SIZE]);

/* Is the file that build? */
bool build_is_file(const char *path, const char *id);

#define SIDE_BUILD "PROGRAM|BUILD|EXE" /* a build, in the usage of a verb */

/* Replaces PROGRAM@LABEL=VALUE where a verb with -l takes a build: by the build-id, and by one more -l LABEL=VALUE. Of
 * other arguments nothing changes, nor if a file has this name. Errors as of side_add. */
enum profd_status side_take(struct profctl_call *call, struct profd_error *e);

/* Appends the side's build as parameter name ("a"), and its labels as "a.label.…". argument: what build_find accepts,
 * or such a name followed by @LABEL=VALUE: of the builds of that name the one with uploads that have the label.
 * AMBIGUOUS, with a list, if several have it; NOT_FOUND. */
enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e);

struct function_place {
    char name[256];     /* fit for a terminal */
    char build_id[160]; /* its own build's, which may be a library of the program */
    char address[24];   /* "0x401230" */
};

/* The function of a build's report that text names: by its name, its name in the symbol table, its name without the
 * parameters, or a part of these that only one function has; or by its address, if text begins with 0x. Of the uploads
 * that the call's options select. NOT_FOUND; AMBIGUOUS, with some of them. */
enum profd_status function_find(const struct profctl_call *call, const char *build_id, const char *text,
                                struct function_place *out, struct profd_error *e);

/* Sets the path of a function that was found in a build's report. path has {} for the build and for the address. */
void function_target_init(struct ask_target *target, const char *path, const char *build_id,
                          const struct function_place *place);

/* Prints why an answer's counts are not exact, as a line behind the indentation; nothing if they are. */
void function_print_reasons(const json_t *answer, const char *indentation);

/* Prints the end of a heading line: "3 calls by others", "no call by others was counted"; how sampled calls are marked.
 */
void function_print_calls(const json_t *answer);

#endif
