/* Comma-separated values, RFC 4180. */
#ifndef PROFD_CLIENT_PROFCTL_CSV_H
#define PROFD_CLIENT_PROFCTL_CSV_H

/* Prints the text to stdout in quotes. */
void csv_print_text(const char *text);

#endif
