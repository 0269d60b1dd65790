// throws SECONDS: uses that much CPU time with exceptions in flight: thrown through a function with a destructor, caught,
// thrown again.
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#define APART __attribute__((noinline, noclone))

static volatile unsigned long sink;

extern "C" {
static APART void burn(unsigned n)
{
    for (unsigned i = 0; i < 100 * n; i++) {
        sink = sink * 3 + i;
    }
}

APART void leaf_throw()
{
    burn(10);
    sink++;
}

APART void leaf_guard()
{
    burn(10);
    sink++;
}

APART void leaf_catch()
{
    burn(10);
    sink++;
}

APART void leaf_last()
{
    burn(10);
    sink++;
}

APART void guard_end()
{
    leaf_guard();
    sink++;
}

APART void thrower(unsigned n)
{
    leaf_throw();
    if (n % 8 != 7) {
        throw std::runtime_error("a sentence");
    }
    sink++;
}

struct guard {
    ~guard()
    {
        guard_end();
    }
};

APART void middle(unsigned n)
{
    guard g;
    thrower(n);
    sink++;
}

APART void catcher(unsigned n)
{
    try {
        middle(n);
    } catch (const std::exception &) {
        leaf_catch();
        throw;
    }
    sink++;
}

APART void last(unsigned n)
{
    try {
        catcher(n);
    } catch (...) {
        leaf_last();
    }
    sink++;
}
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 0.1;
    for (unsigned i = 0; i < 1000 || (double)std::clock() / CLOCKS_PER_SEC < seconds; i++) {
        last(i);
    }
    return 0;
}
