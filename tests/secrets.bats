# SPDX-License-Identifier: Apache-2.0
# Secrets in names, arguments, settings and files are not written to any file. Text that only looks like a secret is written.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  export ZS_REGISTRY=$PWD/runs
  unset ZS_RUN
}

# the_run: the folder of the only run.
the_run() { echo runs/2*; }

# secrets_in FOLDER: which of its files hold the secret.
secrets_in() { grep -rl --exclude=run.log Zq1Wx2 "$1" | sed 's,.*/,,' | sort -u | paste -sd' '; }

@test "secrets: zs-record writes none into any file of the registry, under whatever name and in whatever form" {
  local s=Zq1Wx2Ec3Rv4Tb5Yn6Um7Ik8Ol9Pa0Sd1Fg2 name words value
  # A row: a name, then what stands between zs-record and the command, or behind the command.
  while IFS='|' read -r name words; do
    rm -rf runs
    eval "run -0 zs-record $words"
    [ -d "$(the_run)/record" ] || complain "$name: no run"
    [ -z "$(secrets_in runs)" ] || complain "$name: in $(secrets_in runs)"
  done <<END
a setting by a name|--set db.password=$s -- true
glpat|--set x.y=glpat-$s -- true
xoxb|--set x.y=xoxb-$s -- true
AIza|--set x.y=AIza$s -- true
sk-ant|--set x.y=sk-ant-api03-$s -- true
npm|--set x.y=npm_$s -- true
github|--set x.y=github_pat_$s -- true
nvapi|--set x.y=nvapi-$s -- true
a JSON Web Token|--set x.y=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.$s -- true
a private key|--set "x.y=-----BEGIN RSA PRIVATE KEY----- $s" -- true
a database|--set x.y=postgres://u:$s@h/db -- true
Redis|--set x.y=redis://:$s@h:6379 -- true
a header in a setting|--set "x.y=Authorization: Bearer $s" -- true
a header of the command|-- true --header "Authorization: Basic $s"
a cookie, no setting of Hydra's|-- true --cookie session=$s
a cookie in a header|-- true -H "Cookie: session=$s; id=1"
a list of objects|--set 'x.y=[{name: a, password: $s}]' -- true
JSON in a word|-- true --cfg '{"api_key": "$s"}'
an account|-- true --x "DefaultEndpointsProtocol=https;AccountKey=$s=="
a signed URL|-- true --x "https://a.blob.core.windows.net/c?sv=2020&sig=$s"
a password of MySQL|-- true -p$s
a name in form of a URL|--name https://u:$s@h -- true
a shell's line|-- bash -c 'true --password $s'
a variable of a shell's line|-- bash -c 'HF_TOKEN=$s true'
END
  for value in "x: {y: npm_$s}" "{\"a\": {\"list\": [{\"password\": \"$s\"}]}}" "db: {secret_key: $s}" "a: ['k', {token: $s}]"; do
    rm -rf runs
    echo "$value" >c.yaml
    run -0 zs-record -c c.yaml -- true
    [ -z "$(secrets_in runs)" ] || complain "$value: in $(secrets_in runs)"
  done
  verdict
}

@test "secrets: what only looks like a secret is recorded as it is" {
  cat >c.yaml <<'END'
model: {max_tokens: 512, pad_token: "<pad>", url: "https://h:80/x?q=1"}
sort: [{key: loss, op: min}]
use_auth_token: true
note: "unexpected token: 'x'; forward pass: 3 ms"
END
  run -0 zs-record -c c.yaml --set a.b=risk-averse-strategies-of-old -- true --tokens=5 --hf_token_file -p 8080
  run -0 grep -h 'max_tokens\|pad_token\|url\|sort\|use_auth\|note\|a:\|b:\|tokens' "$(the_run)/config.yaml"
  [[ $output != *withheld* ]] || complain "$output"
  for text in 512 '<pad>' 'https://h:80/x?q=1' 'key: loss' "unexpected token: 'x'; forward pass: 3 ms" risk-averse-strategies-of-old; do
    [[ $output == *"$text"* ]] || complain "not $text: $output"
  done
  verdict
}

@test "secrets: an experiment's plan and a sweep's files have none, and say what to do instead" {
  local s=Zq1Wx2Ec3Rv4Tb5Yn6Um7Ik8Ol9Pa0Sd1Fg2
  echo 'lr: 1' >base.yaml
  printf 'sweep_name: s\nparameters: {lr: {values: [1, 2]}}\n' >sweep.yaml
  mkdir results
  run -2 zs-runs plan "experiment=$PWD/results" "run_command=true --hf_token npm_$s {options}" -- a --lr 1
  [[ $output == *"a: its command holds a password or a token, and others read the record of a run: export it as a variable, and write \$NAME in its place" ]] || complain "$output"
  run -0 zs-runs plan "experiment=$PWD/results" 'run_command=true --hf_token $HF_TOKEN {options}' -- a --lr 1
  grep -qF '$HF_TOKEN' results/metadata.json || complain "the variable is gone: $(cat results/metadata.json)"
  # zs-train needs no secret; another's training may, and would get one that is withheld.
  run -0 zs-sweep base.yaml sweep.yaml --output none --run 'true {options}'
  echo "hub: {token: hf_$s}" >>base.yaml
  run -2 zs-sweep base.yaml sweep.yaml --output files --run 'true {options}'
  [[ $output == "zs-sweep: base.yaml:2: hub.token is a secret, and a sweep is written into files: leave it out, and export a variable" ]] || complain "$output"
  [ ! -e files ] || complain "files are written"
  [ -z "$(secrets_in runs)$(secrets_in results)" ] || complain "in $(secrets_in runs) $(secrets_in results)"
  verdict
}
