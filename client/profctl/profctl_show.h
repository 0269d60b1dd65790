/* Times and amounts as people read them. */
#ifndef PROFD_CLIENT_PROFCTL_SHOW_H
#define PROFD_CLIENT_PROFCTL_SHOW_H

#include <stddef.h>
#include <stdint.h>

/* "12 s ago", "3 min ago", "5 h ago", "2 d ago" for a time before now (both in seconds since the epoch). */
void show_age(int64_t then, int64_t now, char *out, size_t size);
/* The same for "2026-11-21T15:48:00Z"; "-" if it is no time. */
void show_age_of(const char *rfc3339, int64_t now, char *out, size_t size);
/* "812 B", "1.4 MB". */
void show_bytes(uint64_t bytes, char *out, size_t size);
/* Two decimals, "12.34"; "<0.01" for what is above 0 and would read 0.00. */
void show_amount(double value, char *out, size_t size);
/* A percentage of that many ticks, "80.94%"; below 1,000 ticks with two significant digits, "81%". */
void show_percent(double percent, uint64_t ticks, char *out, size_t size);
/* A number above 0 with this number of digits, others rounded, without an exponent: "7.6", "520". */
void show_rounded(double value, int digits, char *out, size_t size);
/* A part of the whole, "4.74%"; "<0.001%" for what is above 0 and less than that. */
void show_share(double part, char *out, size_t size);
/* A fraction as a percentage, "+12.3%", "-2.51%"; "0.00%" for what would read 0; from 9 on as a factor, "10x". */
void show_change(double change, char *out, size_t size);

#endif
