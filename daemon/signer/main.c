/* profd-signer: see profd-signer(8). */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "log/log.h"
#include "log/notify.h"
#include "signer/authority.h"
#include "signer/init.h"
#include "signer/serve.h"
#include "tls/tls_context.h"

#define USAGE                                                                                                          \
    "usage: profd-signer [--dir DIR] [--socket PATH]\n"                                                                \
    "       profd-signer --init|--roll|--gate [--dir DIR] --name HOST [--name HOST]…\n\n"                            \
    "  --dir DIR      directory of ca.key, gate-ca.crt and gate.crt (default " SYSCONFDIR "/profd)\n"                  \
    "  --socket PATH  listen there, if no socket is passed in\n"                                                       \
    "  --init         make a CA and the gate's certificate, and exit\n"                                                \
    "  --roll         make a new key for the CA, beside the certificate of the old one, and exit\n"                    \
    "  --gate         make a new certificate for the gate, and exit\n"                                                 \
    "  --name HOST    name or address under which hosts reach the gate\n"                                              \
    "  --help         print this text\n"                                                                               \
    "  --version      print the version\n"

struct options {
    struct init_options init;
    const char *socket;
    bool make, help, version;
};

static enum profd_status read_options(int argc, char *const argv[], struct options *o, struct profd_error *e)
{
    static const struct option known[] = {{"dir", required_argument, NULL, 'd'},
                                          {"socket", required_argument, NULL, 's'},
                                          {"init", no_argument, NULL, 'i'},
                                          {"roll", no_argument, NULL, 'r'},
                                          {"gate", no_argument, NULL, 'g'},
                                          {"name", required_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    int got;

    *o = (struct options){.init = {.directory = SYSCONFDIR "/profd"}};
    opterr = 0;
    while ((got = getopt_long(argc, argv, "", known, NULL)) != -1) {
        o->init.directory = got == 'd' ? optarg : o->init.directory;
        o->socket = got == 's' ? optarg : o->socket;
        o->make |= got == 'i' || got == 'r' || got == 'g';
        o->init.roll |= got == 'r';
        o->init.gate |= got == 'g';
        o->help |= got == 'h';
        o->version |= got == 'v';
        if (got == 'n' && o->init.name_count < INIT_NAMES_MAX) {
            o->init.names[o->init.name_count++] = optarg;
        } else if (got == '?' || got == 'n') {
            return profd_error_set(e, PROFD_USAGE,
                                   got == 'n' ? "%s: more than %d names" : "%s is no option, or lacks its value",
                                   argv[optind - 1], INIT_NAMES_MAX);
        }
    }
    if (optind < argc) {
        return profd_error_set(e, PROFD_USAGE, "%s is no option", argv[optind]);
    }
    if (o->make && !o->init.roll && !o->init.name_count) {
        return profd_error_set(e, PROFD_USAGE, "--name is missing: a name or address under which hosts reach the gate");
    }
    return PROFD_OK;
}

/* The files are read once before, so that a mistake is said at the start. */
static enum profd_status serve(const struct options *o, struct profd_error *e)
{
    struct authority a;
    int listener;
    enum profd_status status = authority_open(o->init.directory, &a, e);

    if (status) {
        return status;
    }
    authority_close(&a);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return profd_error_set(e, PROFD_INTERNAL, "cannot give up new privileges: %s", strerror(errno));
    }
    (void)notify_open();
    status = serve_listen(o->socket, &listener, e);
    if (!status) {
        notify_send("READY=1");
        status = serve_run(listener, o->init.directory, e);
    }
    return status;
}

int main(int argc, char *argv[])
{
    struct profd_error e = {""};
    struct options o;
    enum profd_status status = read_options(argc, argv, &o, &e);

    log_set_program("profd-signer");
    log_open(LOG_LEVEL_NOTICE);
    if (!status && (o.help || o.version)) {
        fputs(o.help ? USAGE : "profd-signer " PROFD_VERSION "\n", stdout);
        return 0;
    }
    tls_init();
    if (!status) {
        status = o.make ? init_run(&o.init, &e) : serve(&o, &e);
    }
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
    }
    return profd_status_exit(status);
}
