/* The command line of one verb, and its help. */
#ifndef PROFD_CLIENT_PROFCTL_PARSE_H
#define PROFD_CLIENT_PROFCTL_PARSE_H

#include "profctl/profctl.h"

/* Complete command lines with a comment, one per line. "" for a verb that does everything itself. */
const char *examples_of(const char *verb);

/* Moves options that stand before the verb behind it. USAGE if one of them is not an option of every verb. */
enum profd_status profctl_place_verb(int argc, char **argv, struct profd_error *e);
/* USAGE and a sentence for an option that getopt_long refused with value, '?' or ':'. */
enum profd_status profctl_refuse_option(const struct profctl_verb *verb, int value, int argc, char **argv,
                                        struct profd_error *e);
/* Parses argv[1…] after the verb (argv[0]). *help: --help was given, the rest is ignored. USAGE names the wrong
 * argument. profctl_parse_done frees. */
enum profd_status profctl_parse(const struct profctl_verb *verb, int argc, char **argv, struct profctl_call *call,
                                bool *help, struct profd_error *e);
/* The options that every verb has. */
const struct profctl_option *profctl_common_options(size_t *n);
void profctl_parse_done(struct profctl_call *call);
/* A line of help for each option; two where the first column is too long. */
void profctl_print_options(const struct profctl_option *options, size_t n);
/* Usage, summary and every option of the verb, on stdout. */
void profctl_print_help(const struct profctl_verb *verb);

#endif
