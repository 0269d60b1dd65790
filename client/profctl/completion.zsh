#compdef profctl
_profctl_builds() { local -a ids; ids=(${${(f)"$(profctl completion builds 2>/dev/null)"}/$'\t'/:}); _describe build ids; _files }
_profctl_labels() { local -a labels; labels=(${(f)"$(profctl completion labels 2>/dev/null)"}); compadd -a labels }
_profctl() {
    local -a verbs
    if ((CURRENT == 2)); then
@@        return
    fi
    local verb=$words[2]
    shift words; ((CURRENT--))
    case $verb in
@@    esac
}
_profctl "$@"
