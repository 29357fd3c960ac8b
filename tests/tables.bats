# SPDX-License-Identifier: Apache-2.0
# The cases of tests/tables: zs answers as its manual says.
setup() { load helper; }

# cases TABLE: no case of it is wrong.
cases() {
  run -0 "$ROOT/tests/table" -r "$1"
  [[ $output == *", 0 wrong" ]]
}

@test "cases: verdicts" { cases verdicts; }

@test "cases: settings" { cases settings; }

@test "cases: parsers" { cases parsers; }

@test "cases: registry" { cases registry; }

@test "cases: reports" { cases reports; }

@test "cases: each table has its test" {
  for table in "$ROOT"/tests/tables/*; do grep -q "^@test \"cases: ${table##*/}\"" "$ROOT/tests/tables.bats"; done
}
