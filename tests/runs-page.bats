# SPDX-License-Identifier: Apache-2.0
# zs-runs --output: one page of all runs. tests/peers/browser acts in it as a user does, in Chromium.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# The page's data.
data() { sed -n 's|.*<script type="application/json" id="data">\(.*\)</script>.*|\1|p' "$1" | head -n 1; }

# record NAME LOSS...: a run with these losses, recorded.
record() {
  local name=$1 step=0
  shift
  for loss in "$@"; do echo "step $((++step)) loss $loss"; done >log.txt
  zs-record --name "$name" --registry runs -- cat log.txt >/dev/null 2>&1
}

@test "page: all runs, their columns, losses and logs; runs with the same losses have the same hashes" {
  record a 3 2.5 2 1.5
  record b 3 2.5 2 1.5
  record '</script><b>' 3 2.5 2.25 nan
  run -0 zs-runs --registry runs --output page.html
  [ -z "$output" ] || complain "$output"
  run -1 grep -E 'https?://[^w]|src=|@import|url\(' page.html
  [ "$(grep -c '</script>' page.html)" = 2 ] || complain "a name ends the script"
  data page.html >data.json
  [ "$(jq -c '[.curves[].n]' data.json)" = '[4,4,4]' ] || complain "$(jq -c '.curves' data.json)"
  [ "$(jq -r '.curves[0].hash == .curves[1].hash, .curves[0].hash == .curves[2].hash' data.json | xargs)" = 'true false' ] || complain "$(jq -c .curves data.json)"
  [ "$(jq -r '.curves[2].loss' data.json | base64 -d | od -An -tf4 | xargs)" = '3 2.5 2.25 nan' ] || complain "$(jq -c '.curves[2]' data.json)"
  [ "$(jq -c '.columns[] | select(.name == "run_name") | [.values[.codes[]]]' data.json)" = '["a","b","</script><b>"]' ] || complain "$(jq -c '.columns[].name' data.json)"
  while read -r link; do [ -e "$link" ] || complain "no $link"; done < <(jq -r '.links[]' data.json)
  [[ $(jq -r '.columns[].name' data.json | xargs) == *\ status\ final_train_loss\ command\ * ]] || complain "$(jq -c '.columns[].name' data.json)"
  verdict
}

@test "page: the tests of the command line choose its runs, and it stands anywhere" {
  record a 3 2
  record b 3 1
  mkdir there
  run -0 zs-runs --registry runs --filter run_name=b --output there/page.html
  data there/page.html >data.json
  [ "$(jq '.links | length' data.json)" = 1 ] || complain "$(jq -c .links data.json)"
  [ -e "there/$(jq -r '.links[0]' data.json)" ] || complain "$(jq -c .links data.json)"
  verdict
}

@test "page: of an empty registry, of damaged metrics, and what is no page" {
  mkdir empty
  run -0 zs-runs --registry empty --output page.html
  [ "$(data page.html | jq -c '[.links, .curves]')" = '[[],[]]' ] || complain "$(data page.html)"
  record a 3 2
  for run in runs/*/; do printf 'no HDF5' >"$run/metrics.h5"; done
  run -1 zs-runs --registry runs --output page.html
  [[ $output == *metrics.h5* ]] || complain "$output"
  [ "$(data page.html | jq -c .curves)" = '[null]' ] || complain "$(data page.html)"
  run -2 zs-runs --registry runs --output page.doc
  [[ $output == *"cannot write 'page.doc': zs-runs writes "*".html"* ]] || complain "$output"
  run -2 zs-runs --registry runs --watch 5
  run -2 zs-runs --registry runs --output no/such/page.html
  verdict
}

@test "page: --watch writes it again until it is ended" {
  record a 3 2
  zs-runs --registry runs --output page.html --watch 1 &
  local writer=$!
  await [ -s page.html ]
  grep -q '<meta name="zs-every" content="1">' page.html || complain "browsers do not read it again"
  record b 3 2
  await sh -c "grep -q '\"b\"' page.html"
  kill "$writer"
  verdict
}

@test "page: of a folder of logs: a row a log, which it opens; losses that a log rounded are equal as printed" {
  mkdir logs
  for name in a b c; do
    for step in 1 2 3 4; do echo "step $step loss 2.$((9 - step))"; done >"logs/$name.log"
  done
  sed -i '3s/2\.6/2.5/' logs/c.log
  printf 'step 1 loss 1.23456789012345678\nstep 2 loss 1\n' >logs/exact.log
  run -0 zs-runs --output there.html logs
  [ -z "$output" ] || complain "$output"
  [ ! -e saved_models ] || complain "it made a registry"
  data there.html >data.json
  [ "$(jq -c .links data.json)" = '["logs/a.log","logs/b.log","logs/c.log","logs/exact.log"]' ] || complain "$(jq -c .links data.json)"
  [ "$(jq -c '[.curves[].printed]' data.json)" = '[true,true,true,null]' ] || complain "$(jq -c .curves data.json)"
  [ "$(jq -c '[.curves[].hash] | .[0] == .[1], .[0] == .[2]' data.json | xargs)" = 'true false' ] || complain "$(jq -c .curves data.json)"
  [ "$(jq -c '[.columns[] | select(.shown) | .name]' data.json)" = '["run_name","status","best_loss","final_loss","points","reason","runs"]' ] ||
    complain "$(jq -c '[.columns[] | select(.shown) | .name]' data.json)"
  # A loss is shown as in other pages, and its title has all digits.
  [ "$(jq -c '.columns[] | select(.name == "first_loss") | [.values[-1], .texts[-1], .texts[1]]' data.json)" = '["1.2345678901234567","1.23457","2.8"]' ] ||
    complain "$(jq -c '.columns[] | select(.name == "first_loss")' data.json)"
  grep -qF 'td.textContent=(c.texts||c.values)[' there.html || complain "the page does not show the short texts"
  run -0 zs-runs --output one.html --filter 'final_loss<2.5' --show run_name final_loss -- logs
  [ "$(data one.html | jq -c '[.links, [.columns[] | select(.shown) | .name]]')" = '[["logs/exact.log"],["run_name","final_loss"]]' ] || complain "$(data one.html)"
  run -2 zs-runs --output none.html no_such_folder
  # A log that grows is there at the next writing.
  zs-runs --output there.html --watch 1 logs &
  local writer=$!
  echo 'step 1 loss 4' >logs/new.log
  await sh -c "grep -q 'logs/new.log' there.html"
  kill "$writer"
  verdict
}
