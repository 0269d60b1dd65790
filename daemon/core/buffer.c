#include "core/buffer.h"

#include <stdarg.h>
#include <stdio.h> /* vsnprintf only: formatting into memory, no stream */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

void buffer_init(struct buffer *b, size_t limit)
{
    *b = (struct buffer){.limit = limit};
}

void buffer_init_arena(struct buffer *b, struct arena *a)
{
    *b = (struct buffer){.limit = SIZE_MAX / 2, .arena = a};
}

void buffer_done(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){.limit = b->limit};
}

void buffer_release(void *b)
{
    buffer_done(b);
}

void buffer_init_drained(struct buffer *b, size_t block, buffer_drain *drain, void *context)
{
    *b = (struct buffer){.limit = SIZE_MAX / 2, .drain = drain, .context = context};
    b->data = malloc(block);
    b->failed = b->data == NULL;
    b->capacity = b->failed ? 0 : block;
}

bool buffer_flush(struct buffer *b)
{
    if (b->failed || b->drain == NULL || b->size == 0) {
        return !b->failed;
    }
    b->failed = !b->drain(b->context, b->data, b->size);
    b->drained += b->size;
    b->size = 0;
    return !b->failed;
}

static bool buffer_grow(struct buffer *b, size_t n)
{
    if (b->drain != NULL && (!buffer_flush(b) || n <= b->capacity)) {
        return !b->failed;
    }
    if (b->size > b->limit || n > b->limit - b->size) {
        b->failed = true;
        return false;
    }
    size_t capacity = b->capacity < 256 ? 256 : b->capacity;
    while (capacity - b->size < n) {
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    }
    capacity = capacity > b->limit ? b->limit : capacity;
    char *data = b->arena ? arena_take(b->arena, capacity) : realloc(b->data, capacity == 0 ? 1 : capacity);
    if (data && b->arena && b->size > 0) {
        memcpy(data, b->data, b->size);
    }
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

char *buffer_open(struct buffer *b, size_t n)
{
    if (b->failed || (b->capacity - b->size < n && !buffer_grow(b, n))) {
        return NULL;
    }
    return b->data == NULL && !buffer_grow(b, n) ? NULL : b->data + b->size;
}

char *buffer_extend(struct buffer *b, size_t n)
{
    char *added = buffer_open(b, n);
    if (added != NULL) {
        b->size += n;
    }
    return added;
}

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    char *added = n == 0 ? NULL : buffer_extend(b, n);
    if (added != NULL) {
        memcpy(added, bytes, n);
    }
}

void buffer_add_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

void buffer_add_char(struct buffer *b, char c)
{
    buffer_add(b, &c, 1);
}

void buffer_add_repeat(struct buffer *b, char c, size_t n)
{
    char *added = n == 0 ? NULL : buffer_extend(b, n);
    if (added != NULL) {
        memset(added, c, n);
    }
}

void buffer_add_format(struct buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
        return;
    }
    /* One byte more for vsnprintf's NUL, which is then given back. */
    char *added = buffer_extend(b, (size_t)n + 1);
    if (added == NULL) {
        return;
    }
    va_start(args, format);
    vsnprintf(added, (size_t)n + 1, format, args);
    va_end(args);
    b->size--;
}
