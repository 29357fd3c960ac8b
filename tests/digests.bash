# SPDX-License-Identifier: Apache-2.0
# The digests of many trainings on the same ranks, which start once (tests/mpi/digests.cpp). BUILD names the build.

# digests ROWS RANKS [DEVICE [TRANSPORT]]: a line "NAME DIGEST", or "NAME ! WHAT", for each line "NAME OPTION..." of the file ROWS. A
# training that ends its program is a line too, and those behind it go on in another.
digests() {
  local rows=$1 ranks=$2 count at=0
  shift 2
  count=$(wc -l <"$rows")
  while ((at < count)); do
    tail -n +$((at + 1)) "$rows" >"$rows.rest"
    timeout --foreground -k 5 3600 mpirun --oversubscribe --bind-to none -n "$ranks" "$BUILD/mpi/digests" "$rows.rest" "$@" 2>"$rows.errors" </dev/null |
      grep -E '^[^ ]+ ([0-9a-f]{32}|! .*)$' | tee "$rows.part"
    ((at += $(wc -l <"$rows.part")))
    ((at < count)) || break
    echo "$(sed -n "$((at + 1))s/ .*//p" "$rows") ! $(grep -m 1 '^digests: ' "$rows.errors" || tail -n 1 "$rows.errors")"
    ((++at))
  done
}
