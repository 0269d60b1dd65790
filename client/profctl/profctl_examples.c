#include "profctl/profctl_examples.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *verb, *lines;
} examples[] = {
    {"run", "  profctl run -l service=shop -- ./shop --port 8080    under the collector, with a label\n"
            "  profctl run --clock wall make                       a build with all it starts, waiting included\n"},
    {"ps", "  profctl ps -l service=shop      the processes of one service\n"
           "  profctl ps --json               with all that is known of each\n"},
    {"pause", "  profctl pause 4711              one process\n"
              "  profctl pause service=shop      all of a service\n"},
    {"resume", "  profctl resume service=shop --rate 25     count again, with 25 ticks a second\n"},
    {"upload", "  profctl upload -e ./shop -l service=shop gmon.out    what a -pg program wrote\n"
               "  profctl upload callgrind.out.4711                    callgrind's exact calls\n"
               "  perf script | profctl upload -f perf -               samples of perf\n"},
    {"symbols", "  profctl symbols ./shop /usr/lib/x86_64-linux-gnu/libcrypto.so.3     names for stored profiles\n"},
    {"builds", "  profctl builds                            programs, the latest first\n"
               "  profctl builds --all --sort seconds       libraries too, most time first\n"
               "  profctl builds --time iso --full          for scripts; --json says more\n"},
    {"report", "  profctl report ./shop                                   everything, in a pager\n"
               "  profctl report 1a2b --flat --limit 20 --since now-1h    the top of the last hour\n"
               "  profctl report 1a2b --graph --focus parse -l host=db1   around a function, on one host\n"
               "  profctl report 1a2b -f svg -o shop.svg                  a picture\n"
               "  profctl report 1a2b -f speedscope -o shop.json          for www.speedscope.app\n"},
    {"open", "  profctl open ./shop                      its report in the browser\n"
             "  profctl open 1a2b --view flame --print   only the address of its flames\n"},
    {"export", "  profctl export ./shop -o all.out && gprof -b ./shop all.out     the sum of a fleet in gprof\n"},
    {"groups", "  profctl groups ./shop --by host                       which hosts it ran on\n"
               "  profctl groups ./shop --step 1h --since now-1d        its load over a day\n"
               "  profctl groups ./shop --by version --step 1d --json   both, for a program\n"},
    {"labels", "  profctl labels                           names of labels\n"
               "  profctl labels host --build ./shop       the hosts of one build\n"},
    {"status", "  profctl status              is the daemon there, what does it hold\n"
               "  profctl status --json       the same for a program\n"},
    {"spool", "  profctl spool               what waits for a daemon\n"
              "  profctl spool flush         deliver it now\n"},
    {"top", "  profctl top ./shop                          again and again, until Ctrl-C\n"
            "  profctl top ./shop -w 10m -i 5 --sort calls  of the last ten minutes, every five seconds\n"},
    {"delete", "  profctl delete ./shop           asks before\n"
               "  profctl delete 1a2b3c4d --yes   does not\n"},
    {"verify", "  profctl verify              every difference, and exit status 65 if there is one\n"},
    {"backup", "  profctl backup /srv/backup/profd.copy       a file that profd --restore takes\n"
               "  profctl backup - | zstd > profd.copy.zst    through a pipe\n"},
    {"completion", "  source <(profctl completion bash)                    this bash\n"
                   "  profctl completion zsh > ~/.zsh/_profctl             zsh, in a folder of fpath\n"
                   "  profctl completion fish | source                     this fish\n"},
};

const char *examples_of(const char *verb)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        if (strcmp(examples[i].verb, verb) == 0) {
            return examples[i].lines;
        }
    }
    return "";
}
