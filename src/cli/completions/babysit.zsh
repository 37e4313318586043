#compdef babysit
# Completion of babysit for zsh. The program itself is asked, so that families and shards are those of
# the shards.toml at hand; file names where it has no answer.
_babysit() {
    local line
    local -a values shown
    for line in "${(@f)$(${~words[1]} __complete "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    if (( $#values )); then
        compadd -l -d shown -a values
    else
        _files
    fi
}
if [[ $funcstack[1] == _babysit ]]; then
    _babysit "$@"
else
    compdef _babysit babysit
fi
