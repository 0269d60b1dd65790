/* Targets from strangers: parsed, checked and understood without a fault; what is accepted holds its promises. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "proto/utf8.h"
#include "query/query_internal.h"
#include "query/params.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())

static void check_text(const char *text)
{
    REQUIRE(utf8_valid((const uint8_t *)text, strlen(text)));
    for (const char *c = text; *c != '\0'; c++) {
        REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
}

static void check_options(const struct params *p, bool compat, struct arena *a)
{
    struct options o;
    struct profd_error e = {""};
    struct store_scope scope = {.all = true};
    enum profd_status status = options_parse(p, &scope, true, INT64_C(1795276800000000000), compat, a, &o, &e);
    if (status != PROFD_OK) {
        REQUIRE(status == PROFD_BAD_QUERY && e.sentence[0] != '\0');
        return;
    }
    struct buffer b;
    buffer_init(&b, 1 << 20);
    params_add_canonical(p, NULL, &b);
    REQUIRE(!b.failed && o.format != NULL && o.matcher_count <= LIMIT_MATCHERS);
    REQUIRE(o.since >= 0 && o.until >= 0 && (o.until == 0 || o.since < o.until));
    buffer_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct params p;
    struct profd_error e = {""};
    const struct route *route;
    char *target = malloc(size + 1);
    REQUIRE(target != NULL);
    if (size > 0) {
        memcpy(target, data, size);
    }
    target[size] = '\0';
    etag_match(target, "\"0123456789abcdef-1\"");
    char tag[ETAG_SIZE];
    if (query_match_etag(target, "\"0123456789abcdef-1\"", CODING_GZIP, tag)) {
        REQUIRE(tag[0] == '"' && strncmp(tag, "\"0123456789abcdef-1", 19) == 0);
    }
    struct coding_wish wish = {{0}};
    if (coding_wish_read(&wish, target, size)) {
        REQUIRE(coding_choose(&wish) != CODING_IDENTITY || !coding_refuses_identity(&wish));
    }
    enum profd_status status = params_parse(target, &p, &e);
    if (status != PROFD_OK) {
        REQUIRE(e.sentence[0] != '\0');
        free(target);
        return 0;
    }
    for (size_t i = 0; i < p.segment_count; i++) {
        check_text(p.segments[i]);
    }
    for (size_t i = 0; i < p.count; i++) {
        check_text(p.items[i].name);
        check_text(p.items[i].value);
    }
    if (route_find(target, &route, &e) == PROFD_OK) {
        (void)params_check(&p, route->allowed, route->report ? "partial" : NULL, &e);
    }
    struct arena *a = arena_new(1 << 20);
    REQUIRE(a != NULL);
    check_options(&p, false, a);
    check_options(&p, true, a);
    arena_free(a);
    free(target);
    return 0;
}
