# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by up, down, status and env: where the sandbox is, and which processes are its own.
export LC_ALL=C.UTF-8
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# As it is named: a link in its place may be another user's.
place=$(realpath -ms "${ZS_SANDBOX:-${TMPDIR:-/tmp}/zs-sandbox-$UID}")
export SLURM_CONF=$place/slurm.conf

die() {
  echo "${0##*/}: $*" >&2
  exit 2
}

# help LINE [WORD]: a command without arguments prints what its line LINE says if it is asked for help.
help() {
  case ${2--} in
    -h | --help) sed -n "$1s/^# //p" "$0"; exit 0 ;;
    -) ;;
    *) die "takes no argument; see zs-sandbox(7)" ;;
  esac
}

# The files there run as the caller: only the caller may own or change the folder.
if [[ -e $place/.zs-sandbox ]]; then
  [[ ! -L $place && -O $place && $(stat -c %a "$place") == 700 ]] ||
    die "$place must be a folder of yours that other users cannot enter: set ZS_SANDBOX to one"
fi

# own daemons|jobs: the pids of its daemons, or of processes of its jobs. Only daemons have a certain variable; Slurm's
# step daemons lose it, and processes of jobs never had it, but both have the sandbox's SLURM_CONF.
own() {
  local file
  grep -lzxsF -e "ZS_SANDBOX_DAEMON=$place" -e "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ | while read -r file; do
    [[ ${file//[!0-9]/} != "$$" ]] || continue
    if grep -qzxsF "ZS_SANDBOX_DAEMON=$place" "$file" || [[ $(cat "${file%environ}comm" 2>/dev/null) == slurmstepd ]]; then
      [[ $1 != daemons ]] || echo "${file//[!0-9]/}"
    elif grep -qzs '^SLURM_JOB_ID=' "$file"; then
      [[ $1 != jobs ]] || echo "${file//[!0-9]/}"
    fi
  done || true
}

# ended SECONDS daemons|jobs: waits until none is left; status 1 if some are.
ended() {
  local end=$((SECONDS + $1))
  while [[ -n $(own "$2") ]]; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# finish daemons|jobs: ends them, first asking.
finish() {
  local signal pids
  for signal in TERM KILL KILL; do
    mapfile -t pids < <(own "$1")
    ((${#pids[@]})) || return 0
    kill -s "$signal" "${pids[@]}" 2>/dev/null || true
    ended 3 "$1" && return 0
  done
  die "cannot end the $1 of $place: $(own "$1" | xargs)"
}
