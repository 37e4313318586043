#!/usr/bin/env bash
# Stands before each of Slurm's commands (a folder of links to it is `bin_dir`): notes every call, and
# does it wrong where a test says so.
#
#   calls        one line a call: name, TAB, arguments quoted for a shell
#   once/NAME    the fault of the next call of NAME (its first line), used up by it; second line: the message
#   always/NAME  the fault of every call of NAME
#   random       "SEED PERCENT": so many calls in a hundred go wrong, which and how follows from SEED, name
#                and the number of the call
#   faults       one line a fault that was thrown: name, kind
here=${0%/*} name=${0##*/}
printf '%s\t%s\n' "$name" "$(printf '%q ' "$@")" >>"$here/calls"

say_error() {
  case $name in
    sbatch) echo "sbatch: error: Batch job submission failed: $1" ;;
    squeue) echo "slurm_load_jobs error: $1" ;;
    sinfo) echo "slurm_load_partitions: $1" ;;
    scancel) echo "scancel: error: Kill job error on job id 1: $1" ;;
    sacct) echo "sacct: error: slurm_persist_conn_open: $1" ;;
    *) echo "$1" ;;
  esac >&2
}

kind='' text=''
if [[ -e $here/once/$name ]] && mv "$here/once/$name" "$here/taken.$$" 2>/dev/null; then
  { read -r kind; read -r text; } <"$here/taken.$$"
  rm -f "$here/taken.$$"
elif [[ -e $here/always/$name ]]; then
  { read -r kind; read -r text; } <"$here/always/$name"
elif [[ -e $here/random ]]; then
  read -r seed percent <"$here/random"
  # The number of the call: squeue and sinfo run side by side, so each name counts by itself.
  exec 8>>"$here/count.$name"
  flock 8
  echo >&8
  number=$(wc -l <"$here/count.$name")
  exec 8>&-
  dice=$(cksum <<<"$seed $name $number")
  dice=${dice%% *}
  if ((dice % 100 < percent)); then
    kinds=(before after silent-before silent-after torn half hang)
    # babysit gives sbatch three minutes; being killed is how such a hang ends, and takes less.
    if [[ $name == sbatch ]]; then kinds[6]=killed; fi
    kind=${kinds[dice / 100 % 7]}
  fi
fi
[[ -z $kind ]] || printf '%s\t%s\n' "$name" "$kind" >>"$here/faults"

real=/usr/bin/$name
case $kind in
  '') exec "$real" "$@" ;;
  before) say_error "${text:-Unable to contact slurm controller (connect failure)}" && exit 1 ;;
  after)
    "$real" "$@" >/dev/null 2>&1
    say_error "${text:-Connection reset by peer}"
    exit 1
    ;;
  silent-before) cat >/dev/null && exit 0 ;;
  silent-after) "$real" "$@" >/dev/null 2>&1; exit 0 ;;
  torn) # in the middle of the output, whatever stands there
    output=$("$real" "$@"; echo .)
    output=${output%.}
    printf %s "${output:0:${#output} / 2}"
    ;;
  without) # one job is not shown
    "$real" "$@" | grep -v "^$text[^0-9]"
    ;;
  half) # whole lines, but not all
    output=$("$real" "$@")
    [[ -z $output ]] || head -n "$(((1 + $(wc -l <<<"$output")) / 2))" <<<"$output"
    ;;
  gate) # answers once the test has taken the gate away
    while [[ -e $here/gate ]]; do sleep 0.05; done
    exec "$real" "$@"
    ;;
  hang) "$real" "$@" >/dev/null 2>&1; exec sleep 1000 ;;
  killed) "$real" "$@" >/dev/null 2>&1; kill -KILL $$ ;;
  *) echo "wrap.sh: no such fault: $kind" >&2 && exit 99 ;;
esac
