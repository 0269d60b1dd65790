#include "profctl/profctl_examples.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *verb, *lines;
} examples[] = {
    {"run", "  profctl run -l service=shop -- ./shop --port 8080    with a label\n"
            "  profctl run --rate 999 make                         a process tree, with more ticks\n"},
    {"record", "  profctl record -a                    everything on this host, until Ctrl-C\n"
               "  profctl record --rate 99 -- make     a command and all that it starts\n"},
    {"ps", "  profctl ps -l service=shop      the processes with this label\n"
           "  profctl ps --json               all fields of each process\n"},
    {"pause", "  profctl pause 4711              one process\n"
              "  profctl pause service=shop      all processes with this label\n"
              "  profctl pause --off service=shop --rate 25     count again, at 25 ticks per second\n"},
    {"upload", "  profctl upload -e ./shop -l service=shop gmon.out    written by a program compiled with -pg\n"
               "  profctl upload callgrind.out.4711                    exact calls, from callgrind\n"
               "  perf script | profctl upload -f perf -               samples, from perf\n"},
    {"symbols", "  profctl symbols ./shop /usr/lib/x86_64-linux-gnu/libcrypto.so.3     names for stored profiles\n"},
    {"builds", "  profctl builds                            programs, the latest first\n"
               "  profctl builds --all --sort seconds       also libraries, by time\n"
               "  profctl builds --time iso --full          complete ids, paths and times\n"},
    {"report",
     "  profctl report ./shop                                   the complete report\n"
     "  profctl report 1a2b --flat --limit 20 --since now-1h    the 20 functions with most self time, last hour\n"
     "  profctl report 1a2b --graph --focus parse -l host=db1   functions with this in their names, one host\n"
     "  profctl report 1a2b -f svg -o shop.svg                  the call graph as a drawing\n"
     "  profctl report 1a2b -f speedscope -o shop.json          for www.speedscope.app\n"},
    {"export", "  profctl export ./shop -o all.out && gprof -b ./shop all.out     one gmon.out for all uploads\n"},
    {"groups", "  profctl groups ./shop --by host                       one row per host\n"
               "  profctl groups ./shop --step 1h --since now-1d        one row per hour of the last day\n"
               "  profctl groups ./shop --by version --step 1d -f csv   by label and time, for a spreadsheet\n"},
    {"diff", "  profctl diff 1a2b 9f3c                                       two builds\n"
             "  profctl diff shop@version=1.2 shop@version=1.3 --plan        two versions; how much data 2 % needs\n"
             "  profctl diff shop shop --a-until now-1d --b-since now-1d     one build, before and since yesterday\n"
             "  profctl diff 1a2b 9f3c --fail-on 'self>2%' --watch parse     in CI: exit status 1 if parse grew\n"},
    {"functions", "  profctl functions -l service=api                 over all programs and builds of a service\n"
                  "  profctl functions --name parse --since now-1d    with this in their names\n"},
    {"callers", "  profctl callers ./shop parse                     its callers, and how long their calls took\n"
                "  profctl callers parse -l service=api             in every program of a service\n"
                "  profctl callers ./shop parse -f csv              for a spreadsheet\n"},
    {"annotate", "  profctl annotate ./shop parse                    ticks and calls by source line\n"
                 "  profctl annotate ./shop parse --asm              by instruction\n"
                 "  profctl annotate 1a2b parse --source-path src    sources that are elsewhere by now\n"},
    {"never-called", "  profctl never-called ./shop                      code that may be removed, the largest first\n"
                     "  profctl never-called ./shop --since now-30d      entered by no process of this month\n"},
    {"cycles",
     "  profctl cycles ./shop             which functions call each other in a circle, and how to break it\n"},
    {"labels", "  profctl labels                           names of labels\n"
               "  profctl labels host --build ./shop       the hosts of one build\n"},
    {"status", "  profctl status              the daemon and its stored data\n"
               "  profctl status --json       the same as JSON\n"},
    {"top", "  profctl top ./shop                          update every two seconds, until Ctrl-C\n"
            "  profctl top ./shop -w 10m -i 5 --sort calls  the last ten minutes, every five seconds\n"},
    {"delete", "  profctl delete ./shop           ask for confirmation\n"
               "  profctl delete 1a2b3c4d --yes   do not ask\n"},
    {"verify", "  profctl verify              print every difference\n"},
    {"backup", "  profctl backup /srv/backup/profd.copy       a file for profd --restore\n"
               "  profctl backup - | zstd > profd.copy.zst    compressed\n"},
    {"reload", "  profctl reload              print which keys were applied, and which need a restart\n"},
    {"retention", "  profctl retention --confirm-clock    the date is right: remove by it again\n"},
    {"hosts", "  profctl hosts               every host that has sent something\n"},
    {"relay",
     "  profctl relay move          after `relay` was changed: the next centre that answers is the right one\n"},
    {"tier", "  profctl tier init           after `tier` was added to profd.conf\n"},
    {"token", "  profctl token add grafana --read                              for a data source\n"
              "  profctl token add ci --admin --tenant shop --expires 90d      for a build that sends symbols\n"
              "  profctl token list                                            names, rights and tenants\n"},
    {"completion", "  source <(profctl completion bash)                    in the current bash\n"
                   "  profctl completion zsh > ~/.zsh/_profctl             for zsh, in a directory of fpath\n"
                   "  profctl completion fish | source                     in the current fish\n"},
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
