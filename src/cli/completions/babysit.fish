# Completion of babysit for fish. The program itself is asked, so that families and shards are those of
# the shards.toml at hand; file names where it has no answer.
function __babysit_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l found (command babysit __complete $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c babysit -f -a '(__babysit_candidates)'
