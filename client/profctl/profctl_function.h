/* Which function a person means. */
#ifndef PROFD_CLIENT_PROFCTL_FUNCTION_H
#define PROFD_CLIENT_PROFCTL_FUNCTION_H

#include <jansson.h>
#include <stdbool.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"

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

/* Are calls of this answer sampled, at least in part? Its numbers of calls are then how often ticks found a callee
 * below its caller, where a program does not count. */
bool function_is_sampled(const json_t *answer);

/* Prints why an answer's counts are not exact, as a line behind the indentation; nothing if they are. */
void function_print_reasons(const json_t *answer, const char *indentation);

/* Prints the end of a heading line: "3 calls by others", "no call by others was counted"; how sampled calls are marked.
 */
void function_print_calls(const json_t *answer);

#endif
