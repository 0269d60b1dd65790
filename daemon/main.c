/* Contains only main, so that everything else can be linked into tests. */
#include "server.h"

int main(int argc, char *argv[])
{
    return server_main(argc, argv);
}
