# Completion of babysit for bash. The program itself is asked, so that families and shards are those of
# the shards.toml at hand; file names where it has no answer.
_babysit() {
    local program=${COMP_WORDS[0]/#\~/$HOME} candidate
    type "$program" >/dev/null 2>&1 || program=babysit
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("$candidate")
    done < <("$program" __complete "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
}
complete -o bashdefault -o default -F _babysit babysit
