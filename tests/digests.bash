# SPDX-License-Identifier: Apache-2.0
# The digests of many trainings, and the verdicts of zs-verify, on the same ranks, which start once (tests/mpi/digests.cpp). BUILD
# names the build.

# digests ROWS RANKS [DEVICE [TRANSPORT]]: a line "NAME DIGEST", or "NAME ! WHAT", for each line "NAME OPTION..." of the file ROWS; of
# a line "NAME zs-verify OPTION..." a line "NAME status STATUS; verdict: VERDICT; ...". A training that ends its program has a line
# too, and a new program trains the rest.
digests() {
  local rows=$1 ranks=$2 count at=0 program=$BUILD/mpi/digests
  [[ :$PATH: != *:$BUILD-warm:* || ! -x $BUILD-warm/mpi/digests ]] || program=$BUILD-warm/mpi/digests
  shift 2
  count=$(wc -l <"$rows")
  while ((at < count)); do
    tail -n +$((at + 1)) "$rows" >"$rows.rest"
    timeout --foreground -k 5 3600 mpirun --oversubscribe --bind-to none -n "$ranks" "$program" "$rows.rest" "$@" 2>"$rows.errors" </dev/null |
      grep -aE '^[^ ]+ ([0-9a-f]{32}|! .*|status [0-9])$|^[a-z ]+: ' |
      awk '/^[a-z ]+: / { said = said "; " $0; next } { print $0 ($2 == "status" ? said : ""); said = "" }' | tee "$rows.part"
    ((at += $(wc -l <"$rows.part")))
    ((at < count)) || break
    echo "$(sed -n "$((at + 1))s/ .*//p" "$rows") ! $(grep -m 1 '^digests: ' "$rows.errors" || tail -n 1 "$rows.errors")"
    ((++at))
  done
}

# training GROUP RANKS OPTIONS: notes one for one_digest_each; trainings of a group differ in what must change no bit.
training() { mkdir -p rows && echo "$1 $3" >>"rows/$2"; }
# one_digest_each: the noted trainings; a line "GROUP DIGEST" for each group, in order. Status 1 where a training of one failed, or has
# another: a line "GROUP: ..." says what came of each.
one_digest_each() {
  local of
  for of in rows/*; do digests "$of" "${of##*/}" | sed "s|^[^ ]*|& ${of##*/} ranks:|"; done >rows.got
  rm -r rows
  awk '{ group = $1; sub(/^[^ ]* /, ""); what = $0; sub(/^[0-9]+ ranks: /, "", what) }
    !(group in first) { first[group] = what; order[++groups] = group }
    { all[group] = all[group] (all[group] == "" ? "" : "; ") $0; if (what != first[group] || length(what) != 32 || what ~ /[^0-9a-f]/) bad[group] = 1 }
    END { for (i = 1; i <= groups; ++i) if (order[i] in bad) { print order[i] ": " all[order[i]]; status = 1 } else print order[i], first[order[i]]; exit status || !groups }' rows.got
}

# refusal WORDS OPTIONS: notes a training on one rank that must be refused with these words. refused_each: trains what is noted, and
# complains where one is not.
refusal_words=() refusal_options=()
refusal() { refusal_words+=("$1") refusal_options+=("$2"); }
refused_each() {
  local i got
  for i in "${!refusal_options[@]}"; do echo "$i ${refusal_options[i]}"; done >refusals
  digests refusals 1 >came
  for i in "${!refusal_words[@]}"; do
    got=$(sed -n "s/^$i //p" came)
    [[ $got == "! "*"${refusal_words[i]}"* ]] || complain "${refusal_options[i]}: $got"
  done
}

# verified GROUP RANKS OPTIONS: notes a comparison of zs-verify for `verdicts`.
verified() { training "$1" "$2" "zs-verify $3"; }
# verdicts: the noted comparisons, a line "GROUP status STATUS; verdict: VERDICT; ..." each.
verdicts() {
  local of
  for of in rows/*; do digests "$of" "${of##*/}"; done >rows.got
  rm -r rows
  cat rows.got
}
# all_exact COUNT: whether COUNT comparisons are noted and each is exact; if not, it prints them all.
all_exact() {
  verdicts >rows.all
  [[ $(wc -l <rows.all) == "$1" && $(grep -c '^[^ ]* status 0; verdict: exact;' rows.all) == "$1" ]] || { cat rows.all; return 1; }
}
