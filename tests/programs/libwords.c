/* The shared library of uselib.c. */
unsigned long words_hash(const char *text);
unsigned words_count(const char *text);

static __attribute__((noinline)) int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

unsigned long words_hash(const char *text)
{
    unsigned long h = 1469598103934665603ul;
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * 1099511628211ul;
    }
    return h;
}

unsigned words_count(const char *text)
{
    unsigned words = 0;
    for (int in_word = 0; *text; text++) {
        if (is_blank(*text)) {
            in_word = 0;
        } else if (!in_word) {
            in_word = 1, words++;
        }
    }
    return words;
}
