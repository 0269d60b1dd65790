#include "render/render_addresses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/hex.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "render/json_function.h"
#include "render/json_write.h"

static void add_calls(struct buffer *out, const struct report *r, const struct address_calls *c)
{
    JSON_ADD(out, "{\"callee\":");
    render_json_string(out, c->callee != NULL ? c->callee->name : "");
    json_add_text(out, "build_id", c->callee != NULL ? json_find_build(r, c->callee->build) : "");
    if (c->callee != NULL) {
        json_add_address(out, "callee_address", c->callee->address);
    } else {
        json_add_text(out, "callee_address", NULL);
    }
    json_add_address(out, "address", c->address);
    json_add_count(out, "calls", c->calls);
    JSON_ADD(out, "}");
}

static void add_instruction(struct buffer *out, const struct object *o, const struct object_instruction *i,
                            const char *target_name)
{
    char text[LIMIT_INSTRUCTION_TEXT + 32];
    if (i->targeted) {
        (void)snprintf(text, sizeof text, "%s0x%" PRIx64, o->instruction_texts + i->text, i->target);
    } else {
        (void)snprintf(text, sizeof text, "%s", o->instruction_texts + i->text);
    }
    JSON_ADD(out, "{\"text\":");
    render_json_string(out, text);
    json_add_address(out, "address", i->address);
    json_add_count(out, "bytes", i->size);
    if (i->targeted) {
        json_add_address(out, "target", i->target);
    }
    if (target_name != NULL) {
        json_add_text(out, "target_name", target_name);
    }
    JSON_ADD(out, "}");
}

static int compare_file(const void *key, const void *member)
{
    const uint32_t file = *(const uint32_t *)key, other = ((const struct object_digest *)member)->file;
    return (file > other) - (file < other);
}

/* The MD5s of the files that lines are of, where they are known: each file where it comes first. */
static void add_files(struct buffer *out, const struct render_addresses *what)
{
    const struct object *o = what->object;
    bool any = false;
    for (uint32_t i = 0; o != NULL && i < what->line_count && o->digest_count > 0; i++) {
        const uint32_t file = what->lines[i].file;
        uint32_t seen = 0;
        while (what->lines[seen].file != file) {
            seen++;
        }
        const struct object_digest *d =
            seen < i ? NULL : bsearch(&file, o->digests, o->digest_count, sizeof *d, compare_file);
        if (d == NULL) {
            continue;
        }
        while (d > o->digests && d[-1].file == file) {
            d--;
        }
        for (; d < o->digests + o->digest_count && d->file == file; d++) {
            buffer_add_text(out, any ? ",\n{\"file\":" : "\n{\"file\":");
            render_json_string(out, object_name(o, file));
            JSON_ADD(out, ",\"md5\":\"");
            char text[2 * OBJECT_DIGEST_BYTES + 1];
            hex_put(text, d->md5, OBJECT_DIGEST_BYTES);
            buffer_add_text(out, text);
            JSON_ADD(out, "\"}");
            any = true;
        }
    }
}

void render_addresses(const struct render_input *in, const struct render_addresses *what, struct buffer *out)
{
    const struct report *r = in->report;
    const struct report_function *f = what->function;
    const uint32_t inexact = in->provenance->inexact;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < what->tick_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        JSON_ADD(out, "{\"bytes\":");
        buffer_add_u64(out, what->ticks[i].bytes, 0);
        json_add_address(out, "address", what->ticks[i].address);
        json_add_count(out, "ticks", what->ticks[i].ticks);
        json_add_number(out, "seconds", what->ticks[i].seconds);
        json_add_flag(out, "shared", what->ticks[i].shared);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"calls\":[");
    for (uint32_t i = 0; i < what->call_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_calls(out, r, &what->calls[i]);
    }
    JSON_ADD(out, "],\"lines\":[");
    for (uint32_t i = 0; i < what->line_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        JSON_ADD(out, "{\"file\":");
        render_json_string(out, object_name(what->object, what->lines[i].file));
        json_add_count(out, "line", what->lines[i].line);
        json_add_address(out, "address", what->lines[i].low);
        json_add_count(out, "bytes", what->lines[i].high - what->lines[i].low);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"files\":[");
    add_files(out, what);
    JSON_ADD(out, "],\"instructions\":[");
    for (uint32_t i = 0; i < what->instruction_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_instruction(out, what->object, &what->instructions[i], what->target_names[i]);
    }
    JSON_ADD(out, "],\"function\":{\"name\":");
    render_json_string(out, f->name);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    json_add_text(out, "object", f->build < r->build_count ? r->build_names[f->build] : "");
    json_add_address(out, "address", f->address);
    json_add_count(out, "bytes", f->size);
    json_add_text(out, "file", f->file == NULL ? "" : f->file);
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_number(out, "self_seconds", f->self);
    JSON_ADD(out, "}");
    json_add_count(out, "ticks", r->ticks);
    json_add_number(out, "seconds", r->total);
    json_add_number(out, "overdispersion", what->overdispersion);
    json_add_flag(out, "call_sites", (inexact & INEXACT_CALLER_BUCKET) == 0);
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_text(out, "dimension", r->dimension);
    json_add_exact_parts(out, inexact);
    json_add_exact(out, inexact);
    json_add_meanings(out, inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}
