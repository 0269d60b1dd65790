/* Statements of a migration for the tables of one address. Pure.
 *
 * In the text of a migration, $copied(T) is a table of which every shard has all rows, $local(T) is the table that
 * stores the rows of T on a server, $replacing(T, V) its engine, in which of rows with the same key the one with the
 * greatest V remains, and $distributed(T, KEY) the statement that makes T from the tables of all shards; without a
 * cluster there is no such statement. */
#ifndef PROFD_CLICKHOUSE_SCRIPT_H
#define PROFD_CLICKHOUSE_SCRIPT_H

#include "clickhouse/address.h"
#include "proto/status.h"

/* Calls each with every statement, in order, without comment lines and the semicolon, until it fails, and returns what
 * it returned last. A semicolon ends a statement only at the end of a line. INTERNAL: the text has another word behind
 * a '$', or no ')' behind it. O(length). */
enum profd_status clickhouse_each_statement(const char *text, const struct clickhouse_address *address,
                                            enum profd_status (*each)(void *context, const char *statement,
                                                                      struct profd_error *e),
                                            void *context, struct profd_error *e);

#endif
