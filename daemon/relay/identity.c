#include "relay/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void identity_read(const char *path, char out[IDENTITY_MACHINE_SIZE])
{
    FILE *f = fopen(path, "re");

    out[0] = 0;
    if (f) {
        if (!fgets(out, IDENTITY_MACHINE_SIZE, f)) {
            out[0] = 0;
        }
        fclose(f);
    }
}

const char *identity_machine(char out[IDENTITY_MACHINE_SIZE])
{
    identity_read("/etc/machine-id", out);
    out[strspn(out, "0123456789abcdef")] = 0;
    return out;
}

const char *identity_boot(char out[IDENTITY_MACHINE_SIZE])
{
    const char *given = getenv("PROFD_BOOT_ID"); /* of the unit: its sandbox hides the file */
    char *to = out;

    identity_read("/proc/sys/kernel/random/boot_id", out);
    if (!*out && given) {
        (void)snprintf(out, IDENTITY_MACHINE_SIZE, "%s", given);
    }
    for (const char *from = out; *from; from++) {
        if (strchr("0123456789abcdef", *from)) {
            *to++ = *from;
        }
    }
    *to = 0;
    return out;
}
