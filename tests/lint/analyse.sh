#!/bin/bash
# cppcheck and clang-tidy over the product's sources; spelling. Prints only what is wrong.
set -uo pipefail
cd "$(dirname "$0")/../.."
bad=0
# cppcheck reads no system header, but must know the macros of this one.
queue=$(echo '#include <sys/queue.h>' | ${CC:-cc} -E -M -x c - | grep -o '/[^ ]*/sys/queue\.h')
cppcheck --quiet --include="$queue" --std=c11 --enable=warning,performance,portability --inline-suppr \
    --error-exitcode=1 -j2     --suppress=missingIncludeSystem --suppress=legacyUninitvar --suppress=internalAstError \
    --suppress=memleak:proto/counts_codec.c \
    -I. -Idaemon -Iclient daemon client proto || bad=1
mapfile -t sources < <(find daemon client proto -name '*.c' | sort)
checks='-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier'
checks+=',-bugprone-assignment-in-if-condition,-bugprone-branch-clone,-bugprone-narrowing-conversions'
checks+=',-bugprone-implicit-widening-of-multiplication-result,-bugprone-sizeof-expression'
checks+=',-bugprone-not-null-terminated-result,-bugprone-misplaced-widening-cast,-bugprone-integer-division'
checks+=',readability-braces-around-statements,cert-err34-c'
export checks
printf '%s\0' "${sources[@]}" | xargs -0 -n 6 -P 2 sh -c 'clang-tidy --quiet --warnings-as-errors="*" \
    --checks="$checks" "$@" -- -std=c11 -D_GNU_SOURCE -I. -Idaemon -Iclient -Ibuild/plain/gen \
    -DPROFD_VERSION=\"lint\" -DSYSCONFDIR=\"/etc\" -DPROFD_LIBDIR=\"/usr/lib\" -DPROFD_COLLECT_ABI=\"0\" \
    2>/dev/null' lint || bad=1
codespell --ignore-words-list=nd,statics,ans,fo,ot,te,numer,inout,ser,mis,iif,fro --skip='*.pb-c.*,corpus' \
    daemon client proto schema/*.sql systemd README.md Makefile || bad=1
[ $bad = 0 ] && echo "lint: nothing found"
exit $bad
