#!/bin/sh
# Prints a C file that holds the bytes of $1 as `embed_NAME` with `embed_NAME_size`; NAME is the path, or $2, with _ for
# what C does not allow. A NUL follows the bytes.
set -eu
name=$(printf '%s' "${2:-$1}" | tr -c 'A-Za-z0-9' '_')
printf '#include <stddef.h>\nextern const unsigned char embed_%s[];\nextern const size_t embed_%s_size;\n' \
    "$name" "$name"
printf 'const unsigned char embed_%s[] = {\n' "$name"
od -An -v -tx1 "$1" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
printf '0};\nconst size_t embed_%s_size = sizeof embed_%s - 1;\n' "$name" "$name"
