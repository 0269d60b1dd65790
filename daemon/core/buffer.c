#include "core/buffer.h"

#include <stdarg.h>
#include <stdio.h> /* vsnprintf only: formatting into memory, no stream */
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *b, size_t limit)
{
    *b = (struct buffer){.limit = limit};
}

void buffer_done(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){.limit = b->limit};
}

static bool buffer_grow(struct buffer *b, size_t n)
{
    if (b->size > b->limit || n > b->limit - b->size) {
        b->failed = true;
        return false;
    }
    size_t capacity = b->capacity < 256 ? 256 : b->capacity;
    while (capacity - b->size < n)
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    capacity = capacity > b->limit ? b->limit : capacity;
    char *data = realloc(b->data, capacity == 0 ? 1 : capacity);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

char *buffer_room(struct buffer *b, size_t n)
{
    if (b->failed || (b->capacity - b->size < n && !buffer_grow(b, n)))
        return NULL;
    char *room = b->data == NULL && !buffer_grow(b, n) ? NULL : b->data + b->size;
    if (room != NULL)
        b->size += n;
    return room;
}

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    char *room = n == 0 ? NULL : buffer_room(b, n);
    if (room != NULL)
        memcpy(room, bytes, n);
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
    char *room = n == 0 ? NULL : buffer_room(b, n);
    if (room != NULL)
        memset(room, c, n);
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
    char *room = buffer_room(b, (size_t)n + 1);
    if (room == NULL)
        return;
    va_start(args, format);
    vsnprintf(room, (size_t)n + 1, format, args);
    va_end(args);
    b->size--;
}
