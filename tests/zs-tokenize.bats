# SPDX-License-Identifier: Apache-2.0
# zs-tokenize: the ids of the Python packages (recorded by tests/peers/token.py), token files, and errors.
setup() {
  load helper
  data=$ROOT/tests/token
  cd "$BATS_TEST_TMPDIR"
}

# edited FILTER: llama3.json, changed by jq, as x.json.
edited() { jq -c "$1" "$data/llama3.json" >x.json; }

@test "zs-tokenize: ids are those of the package tokenizers: GPT-2's and Llama 3's expressions, added tokens, broken UTF-8" {
  for name in gpt2 llama3; do
    zs-tokenize --tokenizer "$data/$name.json" "$data/sample.txt" >ids
    cmp ids "$data/$name.json.ids"
    zs-tokenize --tokenizer "$data/$name.json" --threads 7 <"$data/sample.txt" | cmp - "$data/$name.json.ids"
  done
  [ "$(wc -w <ids)" -gt 3000 ]
}

@test "zs-tokenize: vocab.json with merges.txt, and merges written as text, give the same ids" {
  zs-tokenize --tokenizer "$data/vocab.json" "$data/sample.txt" | cmp - "$data/gpt2.json.ids"
  mkdir folder
  cp "$data/vocab.json" "$data/merges.txt" folder
  zs-tokenize --tokenizer folder "$data/sample.txt" | cmp - "$data/gpt2.json.ids"
  edited '.model.merges |= map(join(" "))'
  zs-tokenize --tokenizer x.json "$data/sample.txt" | cmp - "$data/llama3.json.ids"
}

@test "zs-tokenize: ids are those of the package sentencepiece: Unigram and BPE with byte fallback" {
  for name in unigram bpe; do
    zs-tokenize --tokenizer "$data/$name.model" "$data/sample.txt" | cmp - "$data/$name.model.ids"
  done
}

@test "zs-tokenize: a text that is cut for many threads has the ids of the whole, for any text at the cuts" {
  for ((i = 0; i < 90; i++)); do cat "$data/sample.txt"; done >large
  { head -c 600000 /dev/zero | tr '\0' ' '; head -c 600000 /dev/zero | tr '\0' 'x'; } >>large
  python3 - "$data/llama3.json" <<'END'
import json
text = open("large", "rb").read().decode(errors="replace")
# The same text in one piece for each thread: what stands before a piece that cannot be cut is one document.
open("once.jsonl", "w").write(json.dumps({"text": text}) + "\n")
END
  zs-tokenize --tokenizer "$data/llama3.json" large >ids
  zs-tokenize --tokenizer "$data/llama3.json" --threads 8 once.jsonl | cmp - ids
  # A first step after which no text can be cut makes the whole one piece.
  edited '.pre_tokenizer.pretokenizers |= [.[0] + {behavior: "Contiguous", pattern: {String: "\u0001"}}] + .'
  zs-tokenize --tokenizer x.json large | cmp - ids
}

@test "zs-tokenize: broken UTF-8 is what errors=replace makes of it" {
  python3 -c '
import sys, random
draw = random.Random(5)
text = b"".join(draw.choice([b"\xe2\x82\xac", b"a", b"\xf0\x9f\x98\x80", b"\xc3\xa9"])[:draw.randint(1, 4)] for _ in range(20000))
text += bytes(draw.randrange(256) for _ in range(20000)) + b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\xe0\x80\xf0\x9f"
open("broken", "wb").write(text)
open("replaced", "w").write(text.decode(errors="replace"))'
  zs-tokenize --tokenizer "$data/gpt2.json" broken >a
  zs-tokenize --tokenizer "$data/gpt2.json" replaced >b
  cmp a b
  zs-tokenize --tokenizer "$data/gpt2.json" --decode --format ids a | cmp - replaced
}

@test "zs-tokenize: --decode gives the text back, of ids and of both kinds of token files" {
  python3 -c 'import sys; sys.stdout.write(open(sys.argv[1], "rb").read().decode(errors="replace").replace("<|x|>", ""))' "$data/sample.txt" >text
  zs-tokenize --tokenizer "$data/llama3.json" text | zs-tokenize --tokenizer "$data/llama3.json" --decode --format ids >back
  sed 's/3\.14[[:space:]]*/3.14/g' text >text.stripped # this added token takes the white space behind it
  python3 -c '
import re
strip = lambda name: re.sub(r"3\.14\s+", "3.14", open(name, newline="").read())
assert strip("text") == strip("back")'
  for format in llmc nanogpt; do
    zs-tokenize --tokenizer "$data/gpt2.json" text -o x.bin --format $format
    [ "$(zs-tokenize --tokenizer "$data/gpt2.json" --decode x.bin)" = "$(cat text)<|endoftext|>" ]
  done
  zs-tokenize --tokenizer "$data/bpe.model" text -o x.bin
  zs-tokenize --tokenizer "$data/bpe.model" --decode x.bin | cmp - text
}

@test "zs-tokenize: a token file is llm.c's or nanoGPT's, to the byte" {
  printf 'low low' >text
  echo '{"l": 0, "o": 1, "w": 2, "lo": 3, "low": 4, "Ġ": 5, "Ġlow": 6, "<|endoftext|>": 7}' >vocab.json
  printf '#version: 0.2\nl o\nlo w\nĠ low\n' >merges.txt
  zs-tokenize -t vocab.json text -o x.bin
  [ "$(od -An -v -td4 -N 16 x.bin | xargs)" = "20240520 1 3 0" ]
  [ "$(od -An -v -tu2 -j 1024 x.bin | xargs)" = "4 6 7" ]
  [ "$(zs-tokenize --info x.bin)" = "x.bin: llmc, 2 bytes an id, 3 ids, the largest 7" ]
  zs-tokenize -t vocab.json text text -o y.bin --format nanogpt --separator w
  [ "$(od -An -v -tu2 y.bin | xargs)" = "4 6 2 4 6 2" ]
  [ "$(zs-tokenize --info y.bin)" = "y.bin: nanogpt, 2 bytes an id, 6 ids, the largest 6" ]
  zs-tokenize -t vocab.json text -o z.bin --no_separator
  [ "$(zs-tokenize --info z.bin)" = "z.bin: llmc, 2 bytes an id, 2 ids, the largest 6" ]
  jq -c '. + ([range(70000)] | map({key: "t\(.)", value: (. + 8)}) | from_entries)' vocab.json >large.json
  mkdir large
  mv large.json large/vocab.json
  cp merges.txt large
  zs-tokenize -t large text -o x.bin
  [ "$(od -An -v -td4 -N 16 x.bin | xargs)" = "20240801 7 3 0" ]
  [ "$(od -An -v -tu4 -j 1024 x.bin | xargs)" = "4 6 7" ]
  refuses_with "zs-tokenize: n.bin: nanoGPT's files hold ids below 65536, and the tokenizer has 70008: choose --format llmc" zs-tokenize -t large text -o n.bin --format nanogpt
  [ ! -e n.bin ]
}

@test "zs-tokenize: documents are lines of JSON, whole files, gzip or Zstandard; each ends with the end of text" {
  printf '{"text": "one\\ntwo", "id": 1}\n\n{"id": 2, "text": ""}\n{"text": "\\u00e9t\\u00e9"}' >d.jsonl
  zs-tokenize -t "$data/gpt2.json" d.jsonl >plain
  [ "$(wc -l <plain)" = 3 ]
  [ "$(sed -n 2p plain)" = "" ]
  gzip -k d.jsonl
  zstd -q d.jsonl
  { printf '\x50\x2a\x4d\x18\x04\0\0\0abcd' && cat d.jsonl.zst; } >skipped.jsonl.zst # as pzstd writes
  for file in d.jsonl.gz d.jsonl.zst skipped.jsonl.zst; do zs-tokenize -t "$data/gpt2.json" $file | cmp - plain; done
  sed 's/"text"/"body"/' d.jsonl | zs-tokenize -t "$data/gpt2.json" --text_key body | cmp - plain
  zs-tokenize -t "$data/gpt2.json" d.jsonl -o d.bin
  [ "$(zs-tokenize -t "$data/gpt2.json" --decode d.bin)" = $'one\ntwo<|endoftext|><|endoftext|>été<|endoftext|>' ]
  mkdir folder
  echo '{"eos_token": {"content": "<|x|>"}}' >folder/tokenizer_config.json
  cp "$data/llama3.json" folder/tokenizer.json
  zs-tokenize -t folder d.jsonl -o d.bin
  [ "$(zs-tokenize -t folder --decode d.bin)" = $'one\ntwo<|x|><|x|>été<|x|>' ]
}

@test "zs-tokenize: a divided folder gives train.bin, val.bin and test.bin; others are named" {
  mkdir -p wiki/valid plain
  printf 'a b' >wiki/wiki.train.raw
  printf 'c' >wiki/valid/1.txt
  printf 'd' >wiki/valid/2.txt
  printf '{"text": "e"}' >wiki/test.jsonl
  echo hello >wiki/README.md
  run -0 --separate-stderr zs-tokenize -t "$data/gpt2.json" wiki -o out
  [ "$stderr" = "zs-tokenize: warning: wiki/README.md: is named for no division, and left out" ]
  [ "$(ls out | xargs)" = "test.bin train.bin val.bin" ]
  [ "$(zs-tokenize -t "$data/gpt2.json" --decode out/train.bin out/val.bin out/test.bin)" = 'a b<|endoftext|>c<|endoftext|>d<|endoftext|>e<|endoftext|>' ]
  refuses_with "zs-tokenize: wiki: holds train, val or test: name a folder for them by --output (see zs-tokenize --help)" zs-tokenize -t "$data/gpt2.json" wiki
  printf 'x' >plain/1
  printf 'y' >plain/2
  zs-tokenize -t "$data/gpt2.json" plain -o plain.bin
  [ "$(zs-tokenize -t "$data/gpt2.json" --decode plain.bin)" = 'x<|endoftext|>y<|endoftext|>' ]
}

@test "zs-tokenize: a tokenizer that composes letters gives the ids of the composed text, but finds added tokens first" {
  printf 'cafe\u0301 A\u030a \u1112\u1161\u11ab <|begin_of_text|>\u0338 a\u0323\u0307' >apart
  printf 'caf\u00e9 \u00c5 \ud55c <|begin_of_text|>\u0338 \u1ea1\u0307' >whole
  for normalizer in '{type: "NFC"}' '{type: "Sequence", normalizers: [{type: "NFC"}]}'; do
    edited ".normalizer = $normalizer"
    [ "$(zs-tokenize -t x.json apart)" = "$(zs-tokenize -t "$data/llama3.json" whole)" ]
    [ "$(zs-tokenize -t x.json apart | zs-tokenize -t x.json --decode --format ids)" = "$(cat whole)" ]
  done
  [ "$(zs-tokenize -t "$data/llama3.json" apart)" != "$(zs-tokenize -t "$data/llama3.json" whole)" ]
  zs-tokenize -t x.json apart | grep -qw 1500
}

@test "zs-tokenize: what a tokenizer.json asks for and zs does not know is an error with key and value" {
  while IFS='~' read -r filter message; do
    edited "$filter"
    status=0
    zs-tokenize -t x.json "$data/sample.txt" >out 2>err || status=$?
    [[ $status == 2 && ! -s out && $(cat err) == "zs-tokenize: x.json: $message" ]] || complain "$filter: $status $(cat err)"
  done <<'END'
.normalizer = {type: "NFKC"}~normalizer.type: "NFKC" is not known to zs
.normalizer = {type: "Sequence", normalizers: [{type: "Lowercase"}]}~normalizer.normalizers[0].type: "Lowercase" is not known to zs
.pre_tokenizer.pretokenizers[0].type = "Punctuation"~pre_tokenizer.pretokenizers[0].type: "Punctuation" is not known to zs
.pre_tokenizer.pretokenizers[0].behavior = "Sideways"~pre_tokenizer.pretokenizers[0].behavior: "Sideways" is not known to zs
.pre_tokenizer.pretokenizers[0].pattern.Regex = "\\w+"~pre_tokenizer.pretokenizers[0].pattern.Regex: '\w+': '\w' is not known to zs
.pre_tokenizer.pretokenizers[0].pattern.Regex = "a*"~pre_tokenizer.pretokenizers[0].pattern.Regex: 'a*' may match nothing at all, which splits nothing
.pre_tokenizer.pretokenizers |= reverse~pre_tokenizer.pretokenizers[1]: follows ByteLevel, where zs supports nothing
.pre_tokenizer.pretokenizers |= .[:1]~pre_tokenizer: does not end with ByteLevel: zs knows byte-level BPE here
.pre_tokenizer = null~pre_tokenizer: is null: zs knows byte-level BPE here; of a SentencePiece model name tokenizer.model
.model.type = "WordPiece"~model.type: "WordPiece" is not known to zs
.model.byte_fallback = true~model.byte_fallback: true is not known to zs
.model.dropout = 0.1~model.dropout: 0.1 is not known to zs
.model.end_of_word_suffix = "</w>"~model.end_of_word_suffix: "</w>" is not known to zs
.model.magic = 1~model.magic: 1 is not known to zs
.model.vocab["!"] = -1~model.vocab.!: expected an id, from 0 on
.model.vocab["!"] = 5~model.vocab.&: has the id 5, as '!' has
.model.merges[2] = ["a"]~model.merges[2]: expected two tokens
.model.merges[2] = ["a", "zzz"]~model.merges[2]: 'zzz' is not in the vocabulary
.decoder.type = "WordPiece"~decoder.type: "WordPiece" is not known to zs
.post_processor.type = "Other"~post_processor.type: "Other" is not known to zs
.truncation = {max_length: 5}~truncation: changes the ids of a text: set it to null
.version = "2.0"~version: "2.0" is not known to zs
.surprise = 1~surprise: 1 is not known to zs
.added_tokens[1].id = 9999~added_tokens[1].id: 9999, but the place of '<|endoftext|>' in the vocabulary gives it 1501
.added_tokens[0].lstrip = "yes"~added_tokens[0].lstrip: expected true or false
.added_tokens[0].wide = true~added_tokens[0].wide: true is not known to zs
END
  verdict
}

@test "zs-tokenize: damaged files are located errors, and nothing is written" {
  head -c 3000 "$data/llama3.json" >cut.json
  run -2 zs-tokenize -t cut.json "$data/sample.txt" -o x.bin
  [[ $output == "zs-tokenize: cut.json: is not JSON: parse error at line 1, column "* ]]
  head -c 3000 "$data/bpe.model" >cut.model
  run -2 zs-tokenize -t cut.model "$data/sample.txt" -o x.bin
  [[ $output == "zs-tokenize: cut.model: SentencePiece: "* ]]
  { cat "$data/bpe.model"; printf '\x12\x02\x1a\x00'; } >wrong.model
  refuses_with "zs-tokenize: wrong.model: is a damaged SentencePiece model: a field of another type" zs-tokenize -t wrong.model "$data/sample.txt" -o x.bin
  cp "$data/vocab.json" .
  { head -n 3 "$data/merges.txt"; echo "a b c"; } >merges.txt
  refuses_with "zs-tokenize: merges.txt:4: expected two tokens with a blank between them" zs-tokenize -t vocab.json "$data/sample.txt" -o x.bin
  { head -n 3 "$data/merges.txt"; echo "q zz"; } >merges.txt
  refuses_with "zs-tokenize: merges.txt:4: 'zz' is not in the vocabulary" zs-tokenize -t vocab.json "$data/sample.txt" -o x.bin
  echo '{"pad": 1}' >added_tokens.json
  refuses_with "zs-tokenize: ./added_tokens.json: adds tokens that vocab.json does not know: name the tokenizer.json that has them, or take this file away" zs-tokenize -t . "$data/sample.txt" -o x.bin
  edited 'del(.model.vocab["a"]) | .model.merges = [] | .added_tokens = []'
  printf 'cab' >text
  refuses_with "zs-tokenize: text: the byte 0x61 has no token, and the tokenizer has no token for unknown text" zs-tokenize -t x.json text -o x.bin --no_separator
  printf '{"text": "a"}\n{"txt": "b"}\n' >d.jsonl
  refuses_with "zs-tokenize: d.jsonl:2: has no \"text\": name the field of the text by --text_key" zs-tokenize -t "$data/gpt2.json" d.jsonl -o x.bin
  printf '{"text": "a"}\n{"text": 1}\n' >d.jsonl
  refuses_with "zs-tokenize: d.jsonl:2: \"text\" is not text" zs-tokenize -t "$data/gpt2.json" d.jsonl -o x.bin
  printf '{"text": "a"}\n{"text": "' >d.jsonl
  refuses_with "zs-tokenize: d.jsonl:2: is not JSON: parse error at line 1, column 11: syntax error while parsing value - invalid string: missing closing quote; last read: '\"'" zs-tokenize -t "$data/gpt2.json" d.jsonl -o x.bin
  printf '{"text": "a"}\n{"text": "\\ud83d x"}' >d.jsonl
  run -2 zs-tokenize -t "$data/gpt2.json" d.jsonl -o x.bin
  [[ $output == "zs-tokenize: d.jsonl:2: has half of a surrogate pair, which is no character: parse error at line 1, column 17: "* ]]
  printf '{"text": "a"}\n["text"]' >d.jsonl
  refuses_with "zs-tokenize: d.jsonl:2: is not a JSON object" zs-tokenize -t "$data/gpt2.json" d.jsonl -o x.bin
  zstd -q <"$data/sample.txt" | head -c 2000 >cut.zst
  refuses_with "zs-tokenize: cut.zst: truncated zstd data" zs-tokenize -t "$data/gpt2.json" cut.zst -o x.bin
  : >empty
  refuses_with "zs-tokenize: x.bin: would hold no id: the input has no text" zs-tokenize -t "$data/gpt2.json" empty --no_separator -o x.bin
  [ ! -e x.bin ]
}

@test "zs-tokenize: a token file that was cut, is too long or of another kind is refused, and so is an id past the vocabulary" {
  zs-tokenize -t "$data/llama3.json" "$data/sample.txt" -o x.bin
  size=$(stat -c %s x.bin)
  ids=$(((size - 1024) / 2))
  head -c $((size - 2)) x.bin >cut.bin
  refuses_with "zs-tokenize: cut.bin: is cut short: its header says $ids ids, which are $size bytes with the header; it has $((size - 2)) bytes" zs-tokenize --info cut.bin
  { cat x.bin; printf ab; } >long.bin
  refuses_with "zs-tokenize: long.bin: is longer than its header says: $ids ids, which are $size bytes with the header; it has $((size + 2)) bytes" zs-tokenize --info long.bin
  head -c 1000 x.bin >header.bin
  refuses_with "zs-tokenize: header.bin: is cut short: it has 1000 bytes of its header's 1024" zs-tokenize --info header.bin
  { head -c 4 x.bin; printf '\2'; tail -c +6 x.bin; } >version.bin
  refuses_with "zs-tokenize: version.bin: has version 2 of magic 20240520, of which zs knows 1" zs-tokenize --info version.bin
  { printf '\212\330\064\001'; tail -c +5 x.bin; } >eval.bin
  refuses_with "zs-tokenize: eval.bin: is an evaluation set of llm.c, expected a token file" zs-tokenize --info eval.bin
  printf '\1\0\1' >odd.bin
  refuses_with "zs-tokenize: odd.bin: is not a token file: it has no magic of llm.c, and an odd number of bytes is not a row of uint16" zs-tokenize --info odd.bin
  printf '\1\0\377\377' >raw.bin
  refuses_with "zs-tokenize: raw.bin: holds the id 65535 at 1, but the vocabulary has 1000: it is of another tokenizer, or no token file" zs-tokenize -t "$data/gpt2.json" --decode raw.bin
  echo 1 2 x >ids
  refuses_with "zs-tokenize: ids:1: 'x' is not an id below 1000" zs-tokenize -t "$data/gpt2.json" --decode --format ids ids
}

@test "zs-tokenize: options that make no sense are refused" {
  refuses_with "zs-tokenize: expected --tokenizer PATH (see zs-tokenize --help)" zs-tokenize "$data/sample.txt"
  refuses_with "zs-tokenize: --separator: the tokenizer has no token 'none' (see zs-tokenize --help)" zs-tokenize -t "$data/gpt2.json" "$data/sample.txt" -o x.bin --separator none
  mkdir empty
  refuses_with "zs-tokenize: empty: holds no tokenizer: neither tokenizer.model nor tokenizer.json nor vocab.json" zs-tokenize -t empty "$data/sample.txt"
  refuses_with "zs-tokenize: empty: holds no file" zs-tokenize -t "$data/gpt2.json" empty
}
