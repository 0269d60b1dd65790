/* An expression parser with mutual recursion: expression → term → factor → expression. Reads expressions from its
 * arguments, or makes them from a seed: `calc -s SEED -n COUNT`. Prints the sum of the values. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct parser {
    const char *at;
    int errors;
};

double parse_expression(struct parser *p);
double parse_factor(struct parser *p);

NOINLINE void skip_blanks(struct parser *p)
{
    while (*p->at == ' ') {
        p->at++;
    }
}

NOINLINE double parse_number(struct parser *p)
{
    double value = 0;
    while (isdigit((unsigned char)*p->at)) {
        value = value * 10 + (*p->at++ - '0');
    }
    return value;
}

NOINLINE double power(double base, double exponent)
{
    double result = 1;
    for (int i = 0; i < (int)exponent && i < 40; i++) {
        result = result * base > 1e100 ? 1 : result * base;
    }
    return result;
}

NOINLINE double parse_factor(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '-') {
        p->at++;
        return -parse_factor(p);
    }
    double value = 0;
    if (*p->at == '(') {
        p->at++;
        value = parse_expression(p);
        skip_blanks(p);
        if (*p->at == ')') {
            p->at++;
        } else {
            p->errors++;
        }
    } else if (isdigit((unsigned char)*p->at)) {
        value = parse_number(p);
    } else {
        p->errors++;
        if (*p->at) {
            p->at++;
        }
    }
    skip_blanks(p);
    if (*p->at == '^') {
        p->at++;
        value = power(value, parse_factor(p));
    }
    return value;
}

NOINLINE double parse_term(struct parser *p)
{
    double value = parse_factor(p);
    for (skip_blanks(p); *p->at == '*' || *p->at == '/'; skip_blanks(p)) {
        char sign = *p->at++;
        double right = parse_factor(p);
        value = sign == '*' ? value * right : right != 0 ? value / right : 0;
    }
    return value;
}

NOINLINE double parse_expression(struct parser *p)
{
    double value = parse_term(p);
    for (skip_blanks(p); *p->at == '+' || *p->at == '-'; skip_blanks(p)) {
        char sign = *p->at++;
        double right = parse_term(p);
        value = sign == '+' ? value + right : value - right;
    }
    return value;
}

struct text {
    char bytes[4096];
    size_t used;
    unsigned seed;
};

NOINLINE unsigned draw(struct text *t, unsigned limit)
{
    t->seed = t->seed * 1103515245u + 12345u;
    return (t->seed >> 16) % limit;
}

NOINLINE void put(struct text *t, const char *piece)
{
    size_t n = strlen(piece);
    if (t->used + n < sizeof t->bytes) {
        memcpy(t->bytes + t->used, piece, n + 1);
        t->used += n;
    }
}

NOINLINE void make_expression(struct text *t, int depth)
{
    static const char *const operators[] = {"+", "-", "*", "/", "^"};
    char number[16];
    if (depth == 0 || draw(t, 5) == 0) {
        snprintf(number, sizeof number, "%u", draw(t, 100));
        put(t, number);
        return;
    }
    put(t, "(");
    make_expression(t, depth - 1);
    put(t, operators[draw(t, 5)]);
    make_expression(t, depth - 1);
    put(t, ")");
}

int main(int argc, char **argv)
{
    unsigned seed = 1;
    long count = 3000;
    double sum = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            seed = (unsigned)atoi(argv[++i]);
        } else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            count = atol(argv[++i]);
        } else {
            struct parser p = {argv[i], 0};
            sum += parse_expression(&p);
            count = 0;
        }
    }
    struct text t = {.seed = seed};
    for (long i = 0; i < count; i++) {
        t.used = 0;
        make_expression(&t, 6);
        for (int again = 0; again < 4; again++) {
            struct parser p = {t.bytes, 0};
            sum += parse_expression(&p);
        }
    }
    printf("%g\n", sum);
    return 0;
}
