#include "import/import_perf_text.h"

static bool digits_only(const struct import_scan *word, uint64_t *value)
{
    struct import_scan s = *word;
    return import_scan_number(&s, 10, value) && s.at == s.end;
}

/* "123" or "123/124" */
static bool take_thread(struct import_scan word, struct perf_heading *h)
{
    uint64_t first, second;
    if (!import_scan_number(&word, 10, &first)) {
        return false;
    }
    h->has_pid = word.at < word.end && *word.at == '/';
    h->pid = h->tid = first;
    if (h->has_pid) {
        word.at++;
        if (!import_scan_number(&word, 10, &second)) {
            return false;
        }
        h->tid = second;
    }
    return word.at == word.end;
}

/* "12345.678901:" */
static bool take_time(struct import_scan word, uint64_t *ns)
{
    uint64_t seconds, fraction;
    if (!import_scan_number(&word, 10, &seconds) || word.at == word.end || *word.at != '.') {
        return false;
    }
    word.at++;
    const char *begin = word.at;
    if (!import_scan_number(&word, 10, &fraction) || word.end - word.at != 1 || *word.at != ':' ||
        word.at - begin > 9) {
        return false;
    }
    for (size_t digits = (size_t)(word.at - begin); digits < 9; digits++) {
        fraction *= 10;
    }
    return !__builtin_mul_overflow(seconds, UINT64_C(1000000000), &seconds) &&
           !__builtin_add_overflow(seconds, fraction, ns);
}

static struct import_scan next_word(const struct import_scan *rest)
{
    struct import_scan s = *rest;
    return import_scan_word(&s);
}

static void skip_word(struct import_scan *rest)
{
    (void)import_scan_word(rest);
}

/* Reads the part after the thread. */
static bool heading_finish(struct import_scan rest, struct perf_heading *h)
{
    struct import_scan word = next_word(&rest);
    if (word.at < word.end && *word.at == '[' && word.end[-1] == ']') { /* the CPU */
        skip_word(&rest);
        word = next_word(&rest);
    }
    h->has_time = take_time(word, &h->time);
    if (h->has_time) {
        skip_word(&rest);
        word = next_word(&rest);
    }
    struct import_scan behind = rest;
    skip_word(&behind);
    struct import_scan second = next_word(&behind);
    if (digits_only(&word, &h->period) && import_scan_left(&second) > 1 && second.end[-1] == ':') {
        h->has_period = true;
        skip_word(&rest);
        word = second;
    }
    if (import_scan_left(&word) > 1 && word.end[-1] == ':') {
        h->event = (struct import_scan){word.at, word.end - 1};
        skip_word(&rest);
    }
    import_scan_trim(&rest);
    h->place = rest;
    struct perf_place place;
    return rest.at == rest.end || h->event.at != h->event.end || perf_place_parse(rest, &place);
}

bool perf_heading_parse(struct import_scan line, struct perf_heading *out)
{
    import_scan_trim(&line);
    struct import_scan rest = line;
    skip_word(&rest);
    const char *comm_end = rest.at;
    while (rest.at < rest.end) {
        struct import_scan word = import_scan_word(&rest);
        struct perf_heading h = {
            .comm = {line.at, comm_end}, .event = {line.end, line.end}, .place = {line.end, line.end}};
        if (take_thread(word, &h) && heading_finish(rest, &h)) {
            *out = h;
            return true;
        }
        comm_end = word.end;
    }
    return false;
}

/* The object is the text in the last matching pair of brackets. */
static bool take_object(struct import_scan *rest, struct import_scan *object)
{
    size_t depth = 0;
    if (rest->at == rest->end || rest->end[-1] != ')') {
        return false;
    }
    for (const char *p = rest->end; p-- > rest->at;) {
        depth += *p == ')';
        if (*p == '(' && --depth == 0) {
            *object = (struct import_scan){p + 1, rest->end - 1};
            rest->end = p;
            import_scan_trim(rest);
            return true;
        }
    }
    return false;
}

/* "+0x1f" at the end goes. */
static bool take_offset(struct import_scan *name, uint64_t *offset)
{
    const char *plus = name->end;
    while (plus > name->at && plus[-1] != '+') {
        plus--;
    }
    struct import_scan s = {plus, name->end};
    if (plus == name->at || !import_scan_begins(&s, "0x") || !import_scan_any_number(&s, offset) || s.at != s.end) {
        return false;
    }
    name->end = plus - 1;
    return true;
}

bool perf_place_parse(struct import_scan line, struct perf_place *out)
{
    uint64_t ignored;
    import_scan_trim(&line);
    struct perf_place p = {.name = {line.end, line.end}, .object = {line.end, line.end}};
    struct import_scan word = import_scan_word(&line);
    if (!import_scan_number(&word, 16, &p.address) || word.at != word.end) {
        return false;
    }
    import_scan_trim(&line);
    if (!take_object(&line, &p.object) && line.at != line.end && import_scan_begins(&line, "(")) {
        return false;
    }
    (void)take_offset(&p.object, &ignored);
    p.name = line;
    p.has_offset = take_offset(&p.name, &p.offset);
    if (import_scan_is(&p.name, "[unknown]")) {
        p.name.end = p.name.at;
        p.has_offset = false;
    }
    *out = p;
    return true;
}

struct import_scan perf_event_name(struct import_scan event)
{
    if (event.at == event.end) {
        return event;
    }
    const char *slash = memchr(event.at, '/', import_scan_left(&event));
    if (slash) {
        const char *end = memchr(slash + 1, '/', (size_t)(event.end - slash - 1));
        return (struct import_scan){slash + 1, end ? end : event.end};
    }
    const char *colon = event.end;
    while (colon > event.at && colon[-1] != ':') {
        if (!memchr("ukhGHpPSDIWeb", colon[-1], 13)) {
            return event;
        }
        colon--;
    }
    if (colon > event.at + 1) {
        event.end = colon - 1;
    }
    return event;
}
