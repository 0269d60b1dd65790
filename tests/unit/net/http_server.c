/* HTTP connections: keep-alive, HEAD and 304, deadlines, limits, and what is closed when there are too many. */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/http.h"
#include "tests/unit/net/http_scene.h"

static const struct http_server_config unix_server = {0};

#define GET(target) "GET " target " HTTP/1.1\r\nHost: localhost\r\n\r\n"

Test(net_http_server, a_request_is_handed_on_and_answered)
{
    struct scene s;
    scene_open(&s, &unix_server);
    static const char request[] =
        "GET /api/v1/builds?limit=5 HTTP/1.1\r\nHost: any.thing\r\nIf-None-Match: \"x\"\r\n\r\n";
    scene_say(&s, request, sizeof request - 1);
    scene_pump(&s, 1);
    cr_assert_eq(s.handled, 1);
    cr_assert_str_eq(s.target, "/api/v1/builds?limit=5");
    cr_assert_str_eq(s.etag, "\"x\"");
    cr_assert_eq(s.peer.uid, 1000);
    cr_assert(s.peer.may_read_all);
    cr_assert_eq(scene_status(&s), 200);
    scene_assert_guarded(&s);
    scene_assert_field(&s, "Content-Length", "10");
    scene_assert_field(&s, "Content-Type", "application/json; charset=utf-8");
    scene_assert_field(&s, "ETag", "\"tag\"");
    scene_assert_field(&s, "Cache-Control", "private, no-cache");
    cr_assert_arr_eq(s.got + s.got_size - 14, "\r\n\r\nabcdefghij", 14);
    cr_assert_not(s.ended, "kept alive");
    struct http_server_counts counts;
    http_server_get_counts(s.server, &counts);
    cr_assert_eq(counts.connections, 1);
    cr_assert_eq(counts.answered[2], 1);
    cr_assert_eq(counts.bytes, s.got_size);
    scene_close(&s);
}

Test(net_http_server, a_request_that_arrives_byte_by_byte_is_the_same)
{
    struct scene s;
    scene_open(&s, &unix_server);
    for (size_t i = 0; i < sizeof GET("/x") - 1; i++) {
        scene_say(&s, &GET("/x")[i], 1);
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    cr_assert_str_eq(s.target, "/x");
    scene_close(&s);
}

Test(net_http_server, connections_are_kept_for_many_requests)
{
    struct scene s;
    scene_open(&s, &unix_server);
    for (unsigned i = 1; i <= 1000; i++) {
        cr_assert_not(s.ended, "request %u", i);
        s.got_size = 0;
        scene_say(&s, GET("/"), sizeof GET("/") - 1);
        scene_pump(&s, 1);
        cr_assert_eq(scene_status(&s), 200, "request %u", i);
    }
    scene_pump(&s, 0);
    cr_assert_eq(s.handled, 1000);
    cr_assert(s.ended, "the thousandth answer is the last");
    scene_assert_field(&s, "Connection", "close");
    scene_close(&s);
}

Test(net_http_server, head_and_304_have_no_body)
{
    struct scene s;
    scene_open(&s, &unix_server);
    static const char request[] = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    scene_say(&s, request, sizeof request - 1);
    scene_pump(&s, 1);
    cr_assert(s.head);
    scene_assert_field(&s, "Content-Length", "10");
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    s.got_size = 0;
    s.status = 304;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_pump(&s, 1);
    char value[501];
    cr_assert_eq(scene_status(&s), 304);
    scene_assert_field(&s, "ETag", "\"tag\"");
    cr_assert_null(scene_field(&s, "Content-Length", value));
    scene_assert_guarded(&s);
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    s.got_size = 0;
    s.status = 200;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200, "the connection is still in step");
    scene_close(&s);
}

Test(net_http_server, old_clients_and_close_end_the_connection)
{
    static const char *const requests[] = {"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
                                           "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"};
    struct scene s;
    scene_open(&s, &unix_server);
    for (size_t i = 0; i < 2; i++) {
        scene_connect(&s);
        scene_say(&s, requests[i], strlen(requests[i]));
        scene_pump(&s, 0);
        cr_assert(s.ended);
        cr_assert_eq(scene_status(&s), 200);
        scene_assert_field(&s, "Connection", "close");
    }
    scene_close(&s);
}

Test(net_http_server, bytes_behind_a_request_are_never_a_second_request)
{
    struct scene s;
    scene_open(&s, &unix_server);
    static const char two[] = GET("/first") GET("/second");
    scene_say(&s, two, sizeof two - 1);
    scene_pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.handled, 1);
    cr_assert_str_eq(s.target, "/first");
    cr_assert_eq(scene_count_heads(&s), 1);
    scene_close(&s);
}

Test(net_http_server, an_answer_may_come_later_or_too_late)
{
    struct scene s;
    scene_open(&s, &unix_server);
    s.later = true;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    cr_assert_eq(s.handled, 1);
    cr_assert_eq(s.got_size, 0);
    scene_answer(&s, s.waiting);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    scene_connect(&s);
    scene_settle(&s);
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    close(s.client);
    s.client = -1;
    struct http_exchange *orphan = s.waiting;
    s.body = 1 << 20;
    scene_answer(&s, orphan);
    for (int i = 0; i < 20; i++) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
    struct http_server_counts counts;
    http_server_get_counts(s.server, &counts);
    cr_assert_eq(counts.connections, 0, "the client had gone");
    scene_connect(&s);
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    http_server_free(s.server);
    scene_answer(&s, s.waiting);
    s.server = NULL;
    scene_close(&s);
}

/* Deadlines are shortened; what is asserted is that they come, not when. */
Test(net_http_server, a_slow_head_is_answered_408)
{
    struct http_server_config config = {.header_ms = 50};
    struct scene s;
    scene_open(&s, &config);
    scene_say(&s, "GET / HT", 8);
    scene_pump(&s, 0);
    scene_assert_problem(&s, 408, "complete");
    scene_connect(&s);
    for (int i = 0; i < 2000 && !s.ended; i++) { /* one byte at a time does not help */
        scene_say(&s, "a", 1);
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        scene_receive(&s);
        poll(NULL, 0, 10);
    }
    cr_assert(s.ended);
    scene_assert_problem(&s, 408, "complete");
    scene_close(&s);
}

Test(net_http_server, idle_connections_and_slow_handlers_are_ended)
{
    struct http_server_config config = {.life_ms = 60, .handle_ms = 50};
    struct scene s;
    scene_open(&s, &config);
    scene_pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.got_size, 0);
    scene_connect(&s);
    s.later = true;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_pump(&s, 0);
    scene_assert_problem(&s, 504, "ready");
    scene_answer(&s, s.waiting);
    scene_close(&s);
}

Test(net_http_server, a_reader_that_takes_nothing_is_left_alone)
{
    struct http_server_config config = {.write_ms = 50};
    struct scene s;
    scene_open(&s, &config);
    s.body = 6 << 20;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    struct http_server_counts counts;
    int tries = 0;
    do {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        poll(NULL, 0, 1);
        http_server_get_counts(s.server, &counts);
    } while (counts.connections > 0 && ++tries < 60000);
    cr_assert_eq(counts.connections, 0);
    cr_assert_lt(counts.bytes, 6u << 20);
    scene_close(&s);
}

Test(net_http_server, a_full_server_closes_its_idlest_connection_or_answers_busy)
{
    struct http_server_config config = {.connections_max = 2};
    struct scene s;
    scene_open(&s, &config);
    int idlest = s.client;
    s.client = -1;
    scene_connect(&s);
    int second = s.client;
    s.client = -1;
    s.later = true;
    scene_connect(&s);
    char byte;
    cr_assert_eq(read(idlest, &byte, 1), 0, "the idlest was closed");
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    struct http_exchange *asked = s.waiting;
    cr_assert_eq(write(second, "G", 1), 1);
    scene_settle(&s);
    int third = s.client;
    s.client = -1;
    scene_connect(&s);
    int fourth = s.client;
    s.client = second;
    scene_pump(&s, 0);
    scene_assert_problem(&s, 503, "all 2 connections"); /* half a request gave way to the fourth */
    scene_assert_field(&s, "Retry-After", "1");
    s.client = fourth;
    s.got_size = 0;
    s.ended = false;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    s.client = -1;
    scene_connect(&s); /* the two before are being served */
    scene_pump(&s, 0);
    scene_assert_problem(&s, 503, "all 2 connections");
    struct http_server_counts counts;
    http_server_get_counts(s.server, &counts);
    cr_assert_eq(counts.connections, 2);
    scene_answer(&s, s.waiting);
    scene_answer(&s, asked);
    close(idlest);
    close(second);
    close(third);
    close(fourth);
    scene_close(&s);
}

/* Clients that always ask do not keep others out: the one that was answered most often is closed. */
Test(net_http_server, the_busiest_connection_gives_way)
{
    struct http_server_config config = {.connections_max = 2};
    struct scene s;
    scene_open(&s, &config);
    for (int i = 0; i < 3; i++) {
        s.got_size = 0;
        scene_say(&s, GET("/"), sizeof GET("/") - 1);
        scene_pump(&s, 1);
    }
    int busiest = s.client;
    s.client = -1;
    s.got_size = 0;
    scene_connect(&s);
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_pump(&s, 1);
    int other = s.client;
    s.later = true;
    cr_assert_eq(write(busiest, GET("/"), sizeof GET("/") - 1), (ssize_t)sizeof GET("/") - 1);
    scene_settle(&s);
    struct http_exchange *dropped = s.waiting;
    cr_assert_eq(write(other, GET("/"), sizeof GET("/") - 1), (ssize_t)sizeof GET("/") - 1);
    scene_settle(&s);
    struct http_exchange *asked = s.waiting;
    s.client = -1;
    s.got_size = 0;
    scene_connect(&s);
    char byte;
    cr_assert_eq(read(busiest, &byte, 1), 0, "it was closed");
    struct http_server_counts counts;
    http_server_get_counts(s.server, &counts);
    cr_assert_eq(counts.connections, 2);
    s.later = false;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    scene_answer(&s, dropped);
    scene_answer(&s, asked);
    close(busiest);
    close(other);
    scene_close(&s);
}

/* A token that is removed is good for nothing that was not answered yet. */
Test(net_http_server, the_end_of_a_token_ends_what_waits_for_an_answer)
{
    const struct http_server_config config = {.admit = scene_admit};
    static const char ask[] = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n";
    struct scene s;
    scene_open(&s, &config);
    s.later = true;
    scene_say(&s, ask, sizeof ask - 1);
    scene_settle(&s);
    struct http_exchange *asked = s.waiting;
    cr_assert_not_null(asked);
    http_server_end_token(s.server, SCENE_TOKEN + 1);
    scene_settle(&s);
    scene_receive(&s);
    cr_assert_eq(s.got_size, 0, "another token");
    http_server_end_token(s.server, SCENE_TOKEN);
    scene_pump(&s, 0);
    cr_assert_eq(scene_status(&s), 401);
    scene_assert_problem(&s, 401, "removed");
    scene_answer(&s, asked);
    cr_assert_eq(scene_count_heads(&s), 1, "its answer is dropped");
    scene_close(&s);
}

/* Without the token a client gets refusals and public pages. None of that keeps its place. */
Test(net_http_server, a_refused_client_gives_way_before_one_that_was_answered)
{
    struct http_server_config config = {.tcp = true, .port = 80, .connections_max = 2, .admit = scene_admit};
    struct scene s;
    scene_open(&s, &config);
    scene_say(&s, "GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n", 39);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 401);
    int refused = s.client;
    s.client = -1;
    scene_connect(&s);
    int half = s.client;
    cr_assert_eq(write(half, "GET /", 5), 5);
    scene_settle(&s);
    int others[100];
    for (int i = 0; i < 100; i++) {
        s.client = -1;
        scene_connect(&s);
        others[i] = s.client;
        scene_say(&s, "GET /", 5);
        scene_settle(&s);
        struct http_server_counts counts;
        http_server_get_counts(s.server, &counts);
        cr_assert_eq(counts.connections, 2);
        cr_assert(!s.ended && s.got_size == 0, "the newest stays");
    }
    for (int i = 0; i < 99; i++) {
        close(others[i]);
    }
    close(refused);
    close(half);
    scene_close(&s);
}

Test(net_http_server, a_request_that_has_arrived_is_not_given_up)
{
    struct http_server_config config = {.connections_max = 2};
    struct scene s;
    scene_open(&s, &config);
    int asking = s.client;
    s.client = -1;
    scene_connect(&s);
    int idle = s.client;
    cr_assert_eq(write(asking, GET("/"), sizeof GET("/") - 1),
                 (ssize_t)sizeof GET("/") - 1); /* the loop has not read it */
    s.client = -1;
    scene_connect(&s);
    int newest = s.client;
    char byte;
    cr_assert_eq(read(idle, &byte, 1), 0, "the idle one was closed");
    s.client = asking;
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    close(idle);
    close(newest);
    scene_close(&s);
}

Test(net_http_server, stopping_answers_what_is_under_way)
{
    struct scene s;
    scene_open(&s, &unix_server);
    int idle = s.client;
    s.client = -1;
    scene_connect(&s);
    s.later = true;
    scene_say(&s, GET("/"), sizeof GET("/") - 1);
    scene_settle(&s);
    http_server_stop(s.server);
    char byte;
    cr_assert_eq(read(idle, &byte, 1), 0);
    scene_answer(&s, s.waiting);
    scene_pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(scene_status(&s), 200);
    scene_assert_field(&s, "Connection", "close");
    scene_connect(&s);
    scene_pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.got_size, 0, "no new ones");
    close(idle);
    scene_close(&s);
}

Test(net_http_server, a_megabyte_of_header_is_not_kept)
{
    struct scene s;
    scene_open(&s, &unix_server);
    char *flood = malloc(1 << 20);
    memset(flood, 'a', 1 << 20);
    memcpy(flood, "GET / HTTP/1.1\r\nX: ", 19);
    scene_say(&s, flood, 1 << 20);
    scene_pump(&s, 0);
    cr_assert_eq(s.handled, 0);
    cr_assert_eq(scene_status(&s), 431);
    free(flood);
    scene_close(&s);
}
