/* Messages as JSON: what clients may write is read, and what is written is what they expect. */
#include "proto/json_message.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/profd.pb-c.h"
#include "proto/pyroscope.pb-c.h"

#define SELECT &profd__pyroscope__select_merge_stacktraces_request__descriptor

static ProtobufCMessage *reads(const ProtobufCMessageDescriptor *d, const char *text)
{
    ProtobufCMessage *m = NULL;
    struct profd_error e = {""};
    cr_assert_eq(json_message_decode(d, text, strlen(text), 1000, &m, &e), PROFD_OK, "%s", e.sentence);
    return m;
}

static void refuses(const ProtobufCMessageDescriptor *d, const char *text, enum profd_status status, const char *words)
{
    ProtobufCMessage *m = NULL;
    struct profd_error e = {""};
    cr_assert_eq(json_message_decode(d, text, strlen(text), 10, &m, &e), status, "%s", text);
    cr_assert(strstr(e.sentence, words) && !m, "%s", e.sentence);
}

/* The message of this JSON is written as expected. */
static void writes(const ProtobufCMessageDescriptor *d, const char *text, const char *expected)
{
    ProtobufCMessage *m = reads(d, text);
    char *made;
    size_t n;
    cr_assert_eq(json_message_encode(m, &made, &n, NULL), PROFD_OK);
    cr_assert_str_eq(made, expected);
    cr_assert_eq(n, strlen(expected));
    free(made);
    protobuf_c_message_free_unpacked(m, NULL);
}

Test(json_message, both_spellings_numbers_and_enums)
{
    const char *const texts[] = {"{\"profileTypeID\":\"t\",\"maxNodes\":\"9223372036854775807\",\"format\":\"PROFILE_"
                                 "FORMAT_PPROF\",\"start\":-2}",
                                 "{\"profile_typeID\":\"t\",\"max_nodes\":9223372036854775807,\"format\":4,\"start\":-"
                                 "2.0,\"x\":[{}],\"end\":null}"};
    for (int i = 0; i < 2; i++) {
        Profd__Pyroscope__SelectMergeStacktracesRequest *m = (void *)reads(SELECT, texts[i]);
        cr_assert_str_eq(m->profile_typeid, "t");
        cr_assert(m->has_max_nodes && m->max_nodes == INT64_MAX && m->start == -2 && !m->has_end);
        cr_assert_eq(m->format, PROFD__PYROSCOPE__PROFILE_FORMAT__PROFILE_FORMAT_PPROF);
        protobuf_c_message_free_unpacked(&m->base, NULL);
    }
    ProtobufCMessage *empty = reads(SELECT, "");
    protobuf_c_message_free_unpacked(empty, NULL);
}

Test(json_message, lists_and_messages)
{
    writes(&profd__pyroscope__flame_graph__descriptor,
           "{\"names\":[\"total\",\"\"],\"levels\":[{\"values\":[0,\"5\",-1]},{}],\"max_self\":3}",
           "{\"names\":[\"total\",\"\"],\"levels\":[{\"values\":[\"0\",\"5\",\"-1\"]},{}],\"maxSelf\":\"3\"}");
    writes(
        &profd__pyroscope__select_series_request__descriptor,
        "{\"step\":0.5,\"aggregation\":1,\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"}]},\"groupBy\":[]}",
        "{\"step\":0.5,\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_AVERAGE\","
        "\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"}]}}");
    writes(&profd__pyroscope__location__descriptor, "{\"address\":\"18446744073709551615\",\"isFolded\":false}",
           "{\"address\":\"18446744073709551615\",\"isFolded\":false}");
    /* proto3: defaults are left out, bytes are base64. */
    writes(&profd__wire__label__descriptor, "{\"name\":\"\",\"value\":\"v\"}", "{\"value\":\"v\"}");
    writes(&profd__wire__upload__descriptor, "{\"sender\":\"AP8=\",\"sequence\":0}", "{\"sender\":\"AP8=\"}");
}

Test(json_message, what_is_wrong_is_named)
{
    refuses(SELECT, "{", PROFD_MALFORMED, "not JSON");
    refuses(SELECT, "[]", PROFD_MALFORMED, "JSON object");
    refuses(SELECT, "{\"maxNodes\":1.5}", PROFD_MALFORMED, "max_nodes");
    refuses(SELECT, "{\"maxNodes\":9223372036854775808}", PROFD_MALFORMED, "JSON");
    refuses(SELECT, "{\"maxNodes\":\"9223372036854775808\"}", PROFD_MALFORMED, "max_nodes");
    refuses(SELECT, "{\"format\":\"SVG\"}", PROFD_MALFORMED, "format");
    refuses(SELECT, "{\"profileIdSelector\":\"a\"}", PROFD_MALFORMED, "profile_id_selector");
    refuses(SELECT, "{\"profileIdSelector\":[\"a\",1]}", PROFD_MALFORMED, "profile_id_selector");
    refuses(SELECT, "{\"labelSelector\":\"a\\u0000b\"}", PROFD_MALFORMED, "");
    refuses(SELECT, "{\"x\":[1,2,3,4,5,6,7,8,9,10]}", PROFD_TOO_LARGE, "values");
}

/* A text from elsewhere may have any bytes. The JSON is valid all the same. */
Test(json_message, bytes_that_are_no_character_are_replaced)
{
    static char odd[] = "a\xff\xe2\x82z\xc3\xa4\xc3";
    Profd__Pyroscope__LabelPair pair = PROFD__PYROSCOPE__LABEL_PAIR__INIT;
    char *made;
    size_t n;
    pair.name = odd;
    cr_assert_eq(json_message_encode(&pair.base, &made, &n, NULL), PROFD_OK);
    cr_assert_str_eq(made, "{\"name\":\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xc3\xa4\xef\xbf\xbd\"}");
    free(made);
}
