# SPDX-License-Identifier: Apache-2.0
# Conversations: chat templates, the assistant's text, token files with marks, training, and errors.
# tests/peers/chat compares templates of other projects with the rendering of transformers.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  python3 -c 'import jinja2' 2>/dev/null || /usr/bin/python3 -c 'import jinja2' || no_package python3-jinja2
  python3 "$BATS_TEST_DIRNAME/chat.py" || no_package python3
}

setup() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
}

digest() { sed -n 's/^state_digest: //p' "$1"; }

# said FILE: of each conversation of a token file of bytes what is trained on, a line each.
said() {
  python3 - "$1" <<'END'
import struct, sys
ids = struct.unpack("<%dH" % ((len(data := open(sys.argv[1], "rb").read()[1024:])) // 2), data)
marks = open(sys.argv[1].replace(".bin", ".mask"), "rb").read()[40:]
assert len(ids) == len(marks)
text = ""
for i, mark in zip(ids, marks):
    if mark & 2:
        text += "\n"
    if mark & 1:
        text += chr(i) if i < 256 else "<%d>" % i
print(text.lstrip("\n").replace("\n\n", "\n"))
END
}

@test "chat: the loss counts the assistant's text and its end token, found by generation blocks or by comparison" {
  printf '%s\n' '{"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": "two"}, {"role": "assistant", "content": "one"}]}' \
    '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}' >few.jsonl
  run -0 zs-tokenize --tokenizer chat --loss_on assistant --output few.bin few.jsonl
  [[ $(said few.bin) == $'two<257>one<257>\na<257>' ]] || complain "compared: $(said few.bin)"
  run -0 zs-tokenize --info few.bin
  [[ $output == *", 2 conversations, the loss of 10 ids" ]] || complain "$output"
  zs-tokenize --tokenizer chat --output all.bin few.jsonl
  run -0 zs-tokenize --info all.bin
  [[ $output == *" ids, the largest 258, 2 conversations, the loss of "* ]] || complain "$output"
  # The first token of a conversation is a target of none before it.
  [[ $(python3 -c 'm = open("all.mask", "rb").read()[40:]; print(sum(x == 2 for x in m), sum(x == 1 for x in m) == len(m) - 2)') == "2 True" ]] || complain "marks of all"

  mkdir -p blocks
  cp chat/tokenizer.json blocks
  echo '{"eos_token": "<|end|>"}' >blocks/tokenizer_config.json
  printf '%s' '{% for m in messages %}[{{ m.role }}]{% if m.role == "assistant" %}{% generation %}{{ m.content }}!{% endgeneration %}{% else %}{{ m.content }}{% endif %}
{% endfor %}' >blocks/chat_template.jinja
  zs-tokenize --tokenizer blocks --loss_on assistant --output blocks.bin few.jsonl
  [[ $(said blocks.bin) == $'two!one!\na!' ]] || complain "blocks: $(said blocks.bin)"
  run -0 zs-tokenize --tokenizer blocks --format ids few.jsonl
  zs-tokenize --tokenizer blocks --format ids shared.jsonl >shared.ids
  zs-tokenize --tokenizer blocks --format ids talk.jsonl >talk.ids
  cmp shared.ids talk.ids || complain "ShareGPT's form gives other ids"

  # An added token that takes the blanks behind it, one that is found in composed letters, and another template for tools.
  mkdir -p own/additional_chat_templates
  python3 -c '
import json
own = json.load(open("chat/tokenizer.json"))
own["added_tokens"][1]["rstrip"] = True
own["added_tokens"][2].update(content="a\u030a", normalized=True, special=False)
own["normalizer"] = {"type": "NFC"}
json.dump(own, open("own/tokenizer.json", "w"))'
  echo '{"eos_token": "<|end|>"}' >own/special_tokens_map.json
  printf '%s' '{% for m in messages %}{{ m.role[0] }}{{ m.content }}{{ eos_token }}{% endfor %}' >own/chat_template.jinja
  printf '%s' '{{ tools | tojson }}{{ messages[0].content }}{{ eos_token }}' >own/additional_chat_templates/tool_use.jinja
  printf '%s\n' '{"messages": [{"role": "user", "content": "\u00e5 q<|end|> \n x"}, {"role": "assistant", "content": "a\u030a r"}]}' \
    '{"messages": [{"role": "user", "content": "q"}], "tools": [1]}' >own.jsonl
  run -0 zs-tokenize --tokenizer own --format ids own.jsonl
  [[ $output == "117 258 32 113 257 120 257 97 258 32 114 257"$'\n'"91 49 93 113 257" ]] || complain "own: $output"
  zs-tokenize --tokenizer own --loss_on assistant --output own.bin own.jsonl
  [[ $(said own.bin) == "<258> r<257>" ]] || complain "own: $(said own.bin)"
  verdict
}

@test "chat: training on conversations has one digest from JSON Lines and token files, and counts the targets" {
  talk() {
    timeout "$HANG" mpirun --oversubscribe --bind-to none -n "$1" zs-train --model_name tiny-llama --num_layers 2 --set model.vocab_size=259 --seq_length 64 --packing masked \
      --max_steps 3 --save_final false --output_dir out --gradient_accumulation_steps $((4 / $1)) "${@:2}"
  }
  export ZS_CACHE=$PWD/cache
  talk 1 --zero_stage 0 --dataset talk.jsonl --tokenizer chat --loss_on assistant >one.log
  grep -q 'note: packing masked: 60 documents in [0-9]* sequences of 64 tokens' one.log || complain "no note"
  grep -q 'note: the loss is of [0-9]* of [0-9]* tokens, [0-9.]* %' one.log || complain "no note of the loss"
  talk 4 --zero_stage 3 --dataset shared.jsonl --tokenizer chat --loss_on assistant >four.log
  [[ $(digest one.log) == "$(digest four.log)" ]] || complain "other bits on four ranks, of the other form"
  zs-tokenize --tokenizer chat --loss_on assistant --output talk.bin talk.jsonl
  talk 2 --zero_stage 2 --dataset talk.bin >file.log
  [[ $(digest one.log) == "$(digest file.log)" ]] || complain "a token file gives other bits"
  talk 1 --zero_stage 0 --dataset talk.jsonl --tokenizer chat >all.log
  [[ $(digest all.log) != "$(digest one.log)" ]] || complain "--loss_on is not seen"
  talk 2 --zero_stage 1 --dataset talk.bin --loss_on all >all2.log
  [[ $(digest all.log) == "$(digest all2.log)" ]] || complain "all of a token file gives other bits"
  grep -q 'run: loss_on=assistant' one.log || complain "not recorded"
  run -0 timeout "$HANG" mpirun --oversubscribe --bind-to none -n 2 zs-verify --model_name tiny-llama --num_layers 2 --set model.vocab_size=259 --seq_length 64 --packing masked \
    --dataset talk.bin --iterations 2 --zero_stage 2 --reference apart
  [[ $output == *'verdict: '@(within|exact)* ]] || complain "$output" # whole samples and parts may have the same bits
  # A conversation that is longer than a sequence.
  for how in split cut drop; do
    talk 1 --seq_length 40 --dataset talk.bin --too_long $how >$how.log
    grep -q "note: [0-9]* documents\\? \\(is\\|are\\) longer than a sequence, and .*--too_long" $how.log || complain "$how: $(grep note $how.log)"
  done
  [[ $(cat split.log cut.log drop.log | sed -n 's/^state_digest: //p' | sort -u | wc -l) == 3 ]] || complain "--too_long is not seen"
  verdict
}

@test "chat: a tokenizer that composes letters marks the assistant's text in the composed text" {
  mkdir composing
  cp chat/* composing/
  jq '.normalizer = {type: "NFC"}' chat/tokenizer.json >composing/tokenizer.json
  said() { printf '{"messages": [{"role": "user", "content": "%b?"}, {"role": "assistant", "content": "%b!"}]}\n' "$1" "$2"; }
  said 'cafe\u0301' 'A\u030a e\u0301' >apart.jsonl
  said 'caf\u00e9' '\u00c5 \u00e9' >whole.jsonl
  for name in apart whole; do zs-tokenize --tokenizer composing --loss_on assistant --output $name.bin $name.jsonl; done
  cmp apart.bin whole.bin
  cmp apart.mask whole.mask
  zs-tokenize --tokenizer chat --loss_on assistant --output plain.bin whole.jsonl
  cmp plain.mask whole.mask
  said 'cafe' '\u0301 what?' >within.jsonl
  zs-tokenize --tokenizer composing --loss_on assistant --output within.bin within.jsonl
}

# Folders as Llama's and Mistral's, without and with blanks of old: ids and masks that transformers gave (tests/peers/chat record).
@test "chat: a SentencePiece model with added tokens has transformers' ids and masks" {
  python3 - "$BATS_TEST_DIRNAME/token/bpe.model" <<'END'
import json, os, shutil, sys
for number, line in enumerate(open(sys.argv[1] + ".chat")):
    made, folder = json.loads(line), "llama%d" % number
    os.makedirs(folder)
    shutil.copy(sys.argv[1], folder + "/tokenizer.model")
    json.dump(made["config"], open(folder + "/tokenizer_config.json", "w"))
    open(folder + "/chat_template.jinja", "w").write(made["template"])
    with open(folder + ".jsonl", "w") as out, open(folder + ".want", "w") as want:
        for each in made["conversations"]:
            out.write(json.dumps({"messages": each["messages"]}) + "\n")
            want.write(" ".join("%d%s" % (i, "*" * m) for i, m in zip(each["ids"], each["mask"])) + "\n")
END
  marked() { # marked FILE: of each conversation its ids, a star behind those that the loss counts
    python3 - "$1" <<'END'
import struct, sys
data, marks = open(sys.argv[1], "rb").read()[1024:], open(sys.argv[1].replace(".bin", ".mask"), "rb").read()[40:]
text = ""
for i, mark in zip(struct.unpack("<%dH" % (len(data) // 2), data), marks):
    text += ("\n" if mark & 2 else " ") + "%d%s" % (i, "*" * (mark & 1))
print(text[1:])
END
  }
  for folder in llama0 llama1; do
    zs-tokenize --tokenizer $folder --loss_on assistant --output $folder.bin $folder.jsonl
    marked $folder.bin >$folder.got
    diff $folder.want $folder.got
  done
  run -1 cmp -s llama0.got llama1.got
  # The same tokens as an older folder names them, by added_tokens.json.
  cp -r llama0 older
  jq '.added_tokens_decoder | [to_entries[] | select(.key | tonumber >= 900) | {(.value.content): (.key | tonumber)}] | add' llama0/tokenizer_config.json >older/added_tokens.json
  jq 'del(.added_tokens_decoder)' llama0/tokenizer_config.json >older/tokenizer_config.json
  zs-tokenize --tokenizer older --output older.bin llama0.jsonl
  [ "$(zs-tokenize --decode --tokenizer older older.bin | grep -c '<|assistant|>')" = "$(zs-tokenize --decode --tokenizer llama0 llama0.bin | grep -c '<|assistant|>')" ]
  for stage in 0 3; do
    mpirun -n 2 zs-train --device cpu --model_name tiny-llama --set model.vocab_size=906 --dataset llama0.jsonl --tokenizer llama0 --loss_on assistant --packing masked --seq_length 64 \
      --batch_size 1 --gradient_accumulation_steps 1 --bench_step 2 --zero_stage $stage --output_dir out --run_name spm$stage >spm$stage.log
  done
  [[ $(digest spm0.log) =~ ^[0-9a-f]{32}$ && $(digest spm0.log) == "$(digest spm3.log)" ]] || complain "$(digest spm0.log) $(digest spm3.log)"

  refused() { # refused EXPECTED FILTER: of llama0 with another tokenizer_config.json
    rm -rf bad && cp -r llama0 bad
    jq "$2" llama0/tokenizer_config.json >bad/tokenizer_config.json
    run -2 zs-tokenize --tokenizer bad --output bad.bin llama0.jsonl
    [[ $output == *"$1"* ]] || complain "$2: $output"
  }
  refused "bad/tokenizer_config.json: added_tokens_decoder.903: '<|end|>' stands twice" '.added_tokens_decoder |= with_entries(if .key == "902" then .value.content = "<|end|>" else . end)'
  refused "bad/tokenizer_config.json: added_tokens_decoder.904: '<|system|>' has the id 904, but the next behind the model's pieces is 903" '.added_tokens_decoder |= with_entries(if .value.content == "<|end|>" then .key = "950" else . end)'
  refused "bad/tokenizer_config.json: added_tokens_decoder.7: '</s>' has the id 7, but the model's piece of that name has 2" '.added_tokens_decoder["7"] = .added_tokens_decoder["2"] | del(.added_tokens_decoder["2"])'
  refused 'bad/tokenizer_config.json: added_tokens_decoder.x: is not an id' '.added_tokens_decoder.x = .added_tokens_decoder["2"]'
  refused 'bad/tokenizer_config.json: added_tokens_decoder: expected an object' '.added_tokens_decoder = []'
  refused 'bad/tokenizer_config.json: legacy: expected true or false' '.legacy = "no"'
  refused 'bad/tokenizer_config.json: expected an object' '[.]'
  refused 'bad/tokenizer_config.json: pad_token: expected text, or an object with its content' '.pad_token = 3'
  refused 'bad/tokenizer_config.json: added_tokens_decoder.2: expected an object' '.added_tokens_decoder["2"] = 2'
  refused 'bad/tokenizer_config.json: extra_special_tokens: expected a list' '.extra_special_tokens = "<|x|>"'
  refused "bad/tokenizer_config.json: extra_special_tokens.image_token: '<image>' has no id: give it one in added_tokens_decoder" '.extra_special_tokens = {image_token: "<image>"}'
  refused "bad/tokenizer_config.json: image_token: '<image>' has no id" '.image_token = "<image>"'
  # One that is a piece needs none; the class says whether text gets a blank before it, and add_prefix_space of a Llama.
  ids_with() { # ids_with FILTER
    rm -rf other && cp -r llama0 other
    jq "$1" llama0/tokenizer_config.json >other/tokenizer_config.json
    printf '{{ messages[0].content }}' >other/chat_template.jinja
    echo '{"messages": [{"role": "user", "content": "the<|end|>the"}]}' >other.jsonl
    zs-tokenize --tokenizer other --format ids other.jsonl
  }
  [[ $(ids_with '.image_token = "e"') == "$(ids_with '.extra_special_tokens = ["e"]')" ]] || complain "a piece with a name: $(ids_with '.image_token = "e"')"
  [[ $(ids_with .) == "267 903 859 436" ]] || complain "Llama: $(ids_with .)"
  [[ $(ids_with '.tokenizer_class = "GemmaTokenizer"') == "859 436 903 859 436" ]] || complain "Gemma: $(ids_with '.tokenizer_class = "GemmaTokenizer"')"
  [[ $(ids_with '.add_prefix_space = false') == "859 436 903 859 436" ]] || complain "no blank: $(ids_with '.add_prefix_space = false')"
  cp "$BATS_TEST_DIRNAME/token/unigram.model" llama1/tokenizer.model
  run -2 zs-tokenize --tokenizer llama1 --output bad.bin llama1.jsonl
  [[ $output == *'llama1: is a SentencePiece model that changes text, which chat needs as it is: it removes blanks'* ]] || complain "$output"
  verdict
}

@test "chat: errors have their place" {
  wrong() { # wrong EXPECTED LINE [OPTION...]
    printf '%s\n' "$2" >bad.jsonl
    run -2 zs-tokenize --tokenizer "${4:-chat}" "${@:5}" --output bad.bin bad.jsonl
    [[ $output == *"$1"* ]] || complain "$2: $output"
    [[ ! -e bad.bin && ! -e bad.mask ]] || complain "$2: something is left"
  }
  good='{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}'
  wrong 'bad.jsonl:2: message 1 has no "role"' "$good"$'\n{"messages": [{"content": "q"}]}'
  wrong 'bad.jsonl:1: message 1 has no "content"' '{"messages": [{"role": "user"}]}'
  wrong 'bad.jsonl:1: the conversation is empty' '{"messages": []}'
  wrong 'bad.jsonl:1: "messages" is not a list' '{"messages": 3}'
  wrong 'bad.jsonl:2: has neither "messages" nor "conversations"' "$good"$'\n{"text": "x"}'
  wrong 'bad.jsonl:2: the chat template refuses the conversation: no role judge' "$good"$'\n{"messages": [{"role": "judge", "content": "q"}]}'
  wrong "bad.jsonl:1: message 1: \"from\" is 'judge'" '{"conversations": [{"from": "judge", "value": "q"}]}'
  wrong 'bad.jsonl:2: is not UTF-8' "$good"$'\n{"messages": [{"role": "user", "content": "\xff"}]}'
  wrong 'bad.jsonl:2: is not JSON: parse error at line 1, column 3' "$good"$'\n[1'
  wrong 'bad.jsonl:2: has half of a surrogate pair' "$good"$'\n{"messages": [{"role": "user", "content": "\\udc00"}]}'

  for name in broken none late; do rm -rf $name; mkdir $name; cp chat/tokenizer.json $name; done
  printf '{%% for m in messages %%}\n{{ m.role }\n{%% endfor %%}' >broken/chat_template.jinja
  wrong "broken/chat_template.jinja:2: is not a Jinja template: unexpected '}'" "$good" "" broken
  printf "{{ 'a' * 5000000000 }}" >broken/chat_template.jinja
  wrong 'bad.jsonl:1: the chat template takes more than 2 GiB of memory' "$good" "" broken
  wrong 'none: has no chat template' "$good" "" none
  # A template that writes earlier turns otherwise when more follows, and a part of what is said.
  printf '%s' '{% for m in messages %}{{ loop.revindex }}{{ m.content[:3] }}{% endfor %}' >late/chat_template.jinja
  printf '%s\n' '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "q"}]}' >late.jsonl
  run -2 zs-tokenize --tokenizer late --loss_on assistant --output late.bin late.jsonl
  [[ $output == *'late.jsonl:1: message 2: what of the text the assistant says cannot be told'*'--loss_on all'* ]] || complain "$output"
  run -0 zs-tokenize --tokenizer late --output late.bin late.jsonl
  local loop='{% for i in range(99999) %}' double='{% set n = namespace(x="a") %}{% for i in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}'
  for template in "{{ raise_exception(3) }}~the chat template refuses the conversation: 3" "{{ '\\ud800' }}~the chat template fails: UnicodeEncodeError" \
    "$loop$loop{% endfor %}{% endfor %}~the chat template takes more than 5 s of processor time" "$double{{ n.x }}~the chat template takes more than 2 GiB of memory" \
    "{% for m in messages %}{{ m.role * 5000000000 }}{% endfor %}~the chat template takes more than 2 GiB of memory" \
    "$loop{{ 'x' * 1000 }}{% endfor %}~the chat template takes more than 16777216 letters of text"; do
    printf '%s' "${template%~*}" >late/chat_template.jinja
    wrong "bad.jsonl:1: ${template#*~}" "$good" "" late
  done
  wrong 'bad.jsonl:1: the chat template fails: ValueError: the conversation has the characters that zs uses as marks around' '{"messages": [{"role": "user", "content": "\ue0f1\ue0f2\ue0f1"}]}'
  wrong 'bad.jsonl:2: is JSON that is nested too deeply' "$good"$'\n{"messages": '"$(head -c 300000 /dev/zero | tr '\0' '[')"
  # Nothing takes the place of an earlier file: neither ids nor marks.
  zs-tokenize --tokenizer chat --output kept.bin talk.jsonl
  printf '{{ "" }}' >late/chat_template.jinja
  run -2 zs-tokenize --tokenizer late --output kept.bin talk.jsonl
  [[ $output == *'kept.bin: would hold no id'* ]] || complain "$output"
  zs-tokenize --info kept.bin || complain "the marks of an earlier file are gone"

  run -2 zs-tokenize --tokenizer chat --loss_on all --output x.bin chat/tokenizer_config.json
  [[ $output == *'--loss_on is for conversations'* ]] || complain "$output"
  run -2 zs-tokenize --tokenizer chat talk.jsonl --format llmc
  [[ $output == *'a token file of conversations needs a file of marks'* ]] || complain "$output"
  run -2 zs-train --model_name tiny-llama --dataset talk.jsonl --output_dir out
  [[ $output == *"talk.jsonl: holds conversations, which a tokenizer's chat template makes text of"* ]] || complain "$output"
  run -2 zs-train --model_name tiny-llama --loss_on assistant --output_dir out
  [[ $output == *'holds no conversations, of which --loss_on chooses'* ]] || complain "$output"
  for round in 1 2 3 4; do echo '{"messages": [{"role": "user", "content": "a question that is longer than a sequence, twice"}]}'; done >asked.jsonl
  trained=(zs-train --model_name tiny-llama --set model.vocab_size=259 --seq_length 32 --dataset asked.jsonl --tokenizer chat --output_dir out)
  run -2 "${trained[@]}" --loss_on assistant
  [[ $output == *"asked.jsonl: makes 0 sequences of 32 tokens, and 2 are needed, including held-out documents: name more text; 7 parts of documents have no target, and --loss_on all trains on every token"* ]] || complain "$output"
  run -2 "${trained[@]}" --packing none --too_long drop
  [[ $output == *"makes 0 sequences of 32 tokens, "*"; 4 documents longer than a sequence: --too_long split trains on all of each"* ]] || complain "$output"
  run -2 zs-train --model_name tiny-llama --too_long cut --output_dir out
  [[ $output == *'--too_long has no effect'* ]] || complain "$output"
  # Marks of other tokens, and torn ones.
  zs-tokenize --tokenizer chat --output torn.bin talk.jsonl
  cp late.mask torn.mask
  run -2 zs-tokenize --info torn.bin
  [[ $output == *'torn.mask: has the marks of other tokens than torn.bin'* ]] || complain "$output"
  head -c 41 late.mask >torn.mask
  run -2 zs-tokenize --info torn.bin
  [[ $output == *'torn.mask: has 1 marks, and its header says '* ]] || complain "$output"
  echo x >torn.mask
  run -2 zs-tokenize --info torn.bin
  [[ $output == *'torn.mask: is not a file of marks'* ]] || complain "$output"
  verdict
}
