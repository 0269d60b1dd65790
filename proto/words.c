#include "proto/words.h"

#include <string.h>

bool words_are(const char *dimension)
{
    return strcmp(dimension, WORDS_DIMENSION) == 0;
}

const char *words_name(uint32_t word)
{
    static const char *const NAMES[WORDS_ROOM] = {
#define X(name, number, json, text) [number] = (json),
        WORDS_LIST(X)
#undef X
    };
    return word < WORDS_ROOM ? NAMES[word] : NULL;
}

bool words_is_time(uint32_t word)
{
    return word >= WORDS_CPU_NS && word <= WORDS_OUTSIDE_NS;
}
