#include "relay/identity.h"

#include <stdio.h>
#include <string.h>

const char *identity_machine(char out[IDENTITY_MACHINE_SIZE])
{
    FILE *f = fopen("/etc/machine-id", "re");

    out[0] = 0;
    if (f) {
        if (!fgets(out, IDENTITY_MACHINE_SIZE, f)) {
            out[0] = 0;
        }
        fclose(f);
    }
    out[strspn(out, "0123456789abcdef")] = 0;
    return out;
}
