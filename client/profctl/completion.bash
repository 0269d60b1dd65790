# bash completion for profctl: source it, or put it into the directory of bash-completion.
_profctl_builds() { profctl completion builds 2>/dev/null | cut -f 1; }
_profctl_label() {
    local have=
    if [[ $word == = ]]; then have=$before=; word=; elif [[ $before == = ]]; then have=${COMP_WORDS[COMP_CWORD-2]}=; fi
    if [[ $have ]]; then
        COMPREPLY=($(compgen -W "$(profctl completion labels 2>/dev/null | sed -n "s|^$have||p")" -- "$word"))
    else
        COMPREPLY=($(compgen -S = -W "$(profctl completion labels 2>/dev/null | cut -d = -f 1 | sort -u)" -- "$word"))
        type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null
    fi
}
_profctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} option
    COMPREPLY=()
    option=$before
    if [[ $word == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before == = ]]; then option=${COMP_WORDS[COMP_CWORD-3]}; fi
    [[ $word == = && $before == --* ]] && { option=$before; word=; }
    [[ $before == = && ${COMP_WORDS[COMP_CWORD-2]} == --* ]] && option=${COMP_WORDS[COMP_CWORD-2]}
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '@@help version' -- "$word")); return
    fi
    case $verb:$option in
@@    esac
    case $verb in
@@    esac
}
complete -o default -o nosort -F _profctl profctl
