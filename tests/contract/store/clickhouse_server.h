/* A server of ClickHouse in a private directory, which the test program starts before the first test of the suite
 * store_clickhouse and ends after the last. Each test has a database of its own. */
#ifndef PROFD_TESTS_STORE_CLICKHOUSE_SERVER_H
#define PROFD_TESTS_STORE_CLICKHOUSE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

/* Makes a database with profd's tables; name receives what it is called. */
void clickhouse_server_make(char *name, size_t size);
struct store *clickhouse_server_open(const char *name, bool writable);
void clickhouse_server_remove(const char *name);
/* Runs a statement, for what a test does behind the engine's back. The reply is freed by the caller. */
char *clickhouse_server_ask(const char *name, const char *statement);

#endif
