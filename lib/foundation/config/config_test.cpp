// SPDX-License-Identifier: Apache-2.0
#include "config/config.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/secret.hpp"
#include "config/known.hpp"

using zs::config::Config;
using zs::config::Kind;

namespace {

/// What parsing `yaml`, and then `use`, throws.
template <typename Use>
std::string complaint_of(const std::string& yaml, Use use) {
  try {
    use(Config::parse(yaml, "c.yaml"));
  } catch (const zs::Error& error) {
    return error.what();
  }
  return "no error";
}
std::string complaint_of(const std::string& yaml) {
  return complaint_of(yaml, [](const Config& config) { config.check(); });
}

}  // namespace

TEST_CASE("config: no setting has a name that would have its value withheld") {
  for (const zs::config::Known& known : zs::config::known()) CHECK_MESSAGE(!zs::names_secret(known.key), known.key);
}

TEST_CASE("config: a file whose name has a line end gives YAML that is read back") {
  const Config c = Config::parse("training: {seed: 7}\n", "a\nb: c.yaml");
  const Config again = Config::parse(c.to_yaml(), "again.yaml");
  CHECK(again.entries().size() == 1);
  CHECK(again.text("training.seed") == "7");
}

TEST_CASE("config: sections become dotted keys in order, each with its line") {
  const Config c =
      Config::parse("model:\n  name: gpt2\n# blank\ntraining:\n  batch_size: 8\n  learning_rate: 6e-4\n", "c.yaml");
  REQUIRE(c.entries().size() == 3);
  CHECK(c.entries()[1].key == "training.batch_size");
  CHECK(c.entries()[1].origin == "c.yaml:5");
  CHECK(c.integer("training.batch_size") == 8);
  CHECK(c.real("training.learning_rate") == 6e-4);
  CHECK(c.text("model.name") == "gpt2");
  CHECK(c.integer("training.log_interval") == 10);  // the default
  CHECK(c.warnings().empty());
}

TEST_CASE("config: a dotted key, an alias and a section are the same key") {
  const Config c = Config::parse("model.seq_length: 64\n", "c.yaml");
  CHECK(c.integer("model.context_length") == 64);
  CHECK(c.entries()[0].key == "model.context_length");
  CHECK(complaint_of("model: {context_length: 1}\nmodel.seq_length: 2\n") ==
        "c.yaml:2: 'model.seq_length' is given twice, first as 'model.context_length' in c.yaml:1");
}

TEST_CASE("config: null is not set, an empty section is none") {
  Config c = Config::parse("run: {checkpoint: null}\ntraining:\ndata: {dataset_path: ~}\n", "c.yaml");
  CHECK_FALSE(c.has("run.checkpoint"));
  CHECK(c.text("run.checkpoint") == "");
  c.set("training.seed", "7", "--seed");
  CHECK(c.integer("training.seed") == 7);
  CHECK(c.to_yaml().find("training:\n  seed: 7") != std::string::npos);
}

TEST_CASE("config: numbers that other tools wrote are read, others are refused with their place") {
  CHECK(Config::parse("training.batch_size: 32.0\n", "c.yaml").integer("training.batch_size") == 32);
  CHECK(Config::parse("data.dataset_size: 1.5M\n", "c.yaml").integer("data.dataset_size") == 1500000);
  CHECK(complaint_of("training:\n  batch_size: 8.5\n") ==
        "c.yaml:2: training.batch_size: '8.5' is not a whole number from 1 to 1000000000");
  CHECK(complaint_of("training: {learning_rate: nan}\n") ==
        "c.yaml:1: training.learning_rate: 'nan' is not a number of at least 0");
  CHECK(complaint_of("training: {learning_rate: .inf}\n") ==
        "c.yaml:1: training.learning_rate: '.inf' is not a number of at least 0");
  CHECK(complaint_of("training: {max_grad_norm: -1}\n") ==
        "c.yaml:1: training.max_grad_norm: '-1' is not a number of at least 0");
  CHECK(complaint_of("data: {dataset_percentage: 0}\n") ==
        "c.yaml:1: data.dataset_percentage: '0' is not a number from more than 0 to 100");
  CHECK(complaint_of("training: {batch_size: [1]}\n") ==
        "c.yaml:1: training.batch_size: '[1]' is not a whole number from 1 to 1000000000");
  CHECK(complaint_of("zero: {backend: fdsp}\n") ==
        "c.yaml:1: zero.backend: 'fdsp' is not one of zero, deepspeed, fsdp, ddp, single, singlegpu, did you mean "
        "'fsdp'?");
  CHECK(complaint_of("data: {dataset_path: ''}\n") ==
        "c.yaml:1: data.dataset_path: is empty: leave it out, or write null");
  CHECK(complaint_of("zero: {compile: maybe}\n") == "c.yaml:1: zero.compile: 'maybe' is not true or false");
  Config c;
  c.set("zero.stage", "4", "--zero_stage");
  CHECK_THROWS_WITH_AS(c.check(), "--zero_stage: '4' is not a whole number from 0 to 3", zs::Error);
  CHECK_THROWS_WITH_AS(c.integer("my.key"), "my.key is not set", zs::Error);
}

TEST_CASE("config: what is not YAML is located by line and column") {
  CHECK(complaint_of("model:\n  name: gpt2\n bad: 1\n").starts_with("c.yaml:3:"));
  CHECK(complaint_of("a: [1, 2\n").starts_with("c.yaml:"));
  CHECK(complaint_of("training:\n  batch_size 8\n  seed: 1\n").starts_with("c.yaml:3:7: "));
  CHECK(complaint_of("") == "c.yaml: is empty, expected YAML");
  CHECK(complaint_of("- 1\n") == "c.yaml:1:1: a configuration must be a mapping of keys to values");
  CHECK(complaint_of("a: 1\n---\nb: 2\n").starts_with("c.yaml:3: a second document"));
  CHECK(complaint_of("a: &x [*x]\n") != "no error");
  CHECK(complaint_of("a: 1\nb:\n  c: 1\n  c: 2\n") == "c.yaml:4:3: 'c' is given twice, first in line 3");
  CHECK(complaint_of("a: 1\na.b: 2\n") == "c.yaml:2: 'a.b': 'a' has a value already (c.yaml:1), it is not a section");
  CHECK(complaint_of("a.: 2\n") == "c.yaml:1: 'a.' is not a key: expected words joined by dots");
}

TEST_CASE("config: a key of a zs section that nothing reads is an error, one that looks like a setting a warning") {
  const Config c = Config::parse(
      "learning_rate: 1\nepochs: 2\nmine: {lr: 1, batchsize: 2}\nthing: 3\nbetas_of_mine: [1]\nsweep_name: s\n",
      "c.yaml");
  CHECK(c.warnings() == std::vector<std::string>{
                            "c.yaml:1: nothing reads 'learning_rate', did you mean 'training.learning_rate'?",
                            "c.yaml:2: nothing reads 'epochs', did you mean 'training.num_epochs'?",
                        });
  for (const auto& [text, error] : {
           std::pair{"training: {batchsize: 8}", "'training.batchsize', did you mean 'training.batch_size'?"},
           std::pair{"training: {note: x}", "'training.note'"},
           std::pair{"training: {lr: 3}", "'training.lr', did you mean 'training.learning_rate'?"},
           std::pair{"training: {lerning_rte: 5}", "'training.lerning_rte', did you mean 'training.learning_rate'?"},
           std::pair{"modle: {name: tiny}", "'modle.name', did you mean 'model.name'?"},
           std::pair{"run: {eval: true}", "'run.eval', did you mean 'training.eval'?"},
           std::pair{"zero.batch_size: 3", "'zero.batch_size', did you mean 'training.batch_size'?"},
       })
    CHECK_THROWS_WITH_AS(Config::parse(text, "c.yaml").warnings(),
                         (std::string("c.yaml:1: nothing reads ") + error).c_str(), zs::Error);
  for (const char* const known : {"training.seed", "model.seq_length", "sweep_name", "run.init_type"})
    CHECK_MESSAGE(zs::config::unread(known).empty(), known);
  std::string many = "training:\n";
  for (int i = 0; i < 30; ++i) many += "  mine" + std::to_string(i) + ": 1\n";
  CHECK_THROWS_WITH_AS(Config::parse(many, "c.yaml").warnings(), doctest::Contains(" and 25 more"), zs::Error);
}

TEST_CASE("config: the words of other trainers are known, and none of them is a word of zs that means another key") {
  for (const auto& row : zs::config::known()) {
    for (const std::string& word : zs::config::words(row.synonyms)) {
      CHECK_MESSAGE(!zs::config::known(word), word);
      const auto* const option = zs::config::known_option(word);
      CHECK_MESSAGE((!option || option == &row), word);
      CHECK_MESSAGE(
          zs::config::unread(word) == "nothing reads '" + word + "', did you mean '" + std::string(row.key) + "'?",
          word);
    }
  }
}

TEST_CASE("config: a few lines of aliases that stand for more values than fit anywhere are an error") {
  std::string lists = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", maps = "a0: &a0 {x: 1}\n", merges = maps;
  for (int i = 1; i < 30; ++i) {
    const std::string anchor = "a" + std::to_string(i) + ": &a" + std::to_string(i),
                      before = "*a" + std::to_string(i - 1);
    lists += anchor + " [" + before + ", " + before + ", " + before + "]\n";
    maps += anchor + " {p: " + before + ", q: " + before + ", r: " + before + "}\n";
    merges += anchor + " {<<: [" + before + ", " + before + ", " + before + "]}\n";
  }
  for (const std::string& bomb : {lists, maps, merges})
    CHECK(complaint_of(bomb).find(": too many values: aliases repeat one far more often than it is written") !=
          std::string::npos);
  std::string plain = "mine:\n";  // as many values, all of them written
  for (int i = 0; i < 30000; ++i) plain += "  key" + std::to_string(i) + ": [1, 2, 3]\n";
  const Config config = Config::parse(plain, "c.yaml");
  CHECK(config.entries().size() == 30000);
  CHECK(Config::parse(config.to_yaml(), "again").entries().size() == 30000);
}

TEST_CASE("config: keys and values may nest only so deep") {
  CHECK(complaint_of("a: " + std::string(100, '[') + std::string(100, ']') + "\n") ==
        "c.yaml:1:68: nested deeper than 64 levels");
  std::string key = "a";
  for (int i = 0; i < 100; ++i) key += ".a";
  CHECK(complaint_of(key + ": 1\n").find("is not a key: too many words") != std::string::npos);
}

TEST_CASE("config: an anchor merges, and what stands beside it wins") {
  const Config c = Config::parse("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n", "c.yaml");
  CHECK(c.integer("mine.x") == 1);
  CHECK(c.integer("mine.y") == 3);
}

TEST_CASE("config: written back, it reads the same, and says where each value came from") {
  Config c = Config::parse(
      "run: {name: \"a # b: c\", note: \"1e5\", empty: '', tabbed: \"x\\ty\\n\"}\n"
      "list: [0.9, \"x, y\", {a: b}]\nodd key: -1\ntraining: {seed: 3, checkpoint: null}\nneg: -x\ndash: '- a'\n",
      "c.yaml");
  c.set("training.learning_rate", "0.5", "--learning_rate");
  c.set("run.name", "b", "--set");
  c.set("my.list", "[1, 2]", "--set");
  c.set("my.url", "http://x/#y", "--set");
  c.add_defaults();
  const std::string yaml = c.to_yaml();
  CHECK(yaml.find("learning_rate: 0.5") != std::string::npos);
  CHECK(yaml.find("# --learning_rate\n") != std::string::npos);
  CHECK(yaml.find("# c.yaml:3\n") != std::string::npos);
  CHECK(yaml.find("# default\n") != std::string::npos);
  const Config again = Config::parse(yaml, "config.yaml");
  REQUIRE(again.entries().size() == c.entries().size());
  for (const auto& entry : c.entries()) {
    const auto same =
        std::find_if(again.entries().begin(), again.entries().end(), [&](const auto& e) { return e.key == entry.key; });
    REQUIRE(same != again.entries().end());
    INFO(yaml, entry.key);
    CHECK(same->value == entry.value);
    CHECK((same->kind == Kind::null) == (entry.kind == Kind::null));
    CHECK((same->kind == Kind::list) == (entry.kind == Kind::list));
  }
  CHECK(again.find("run.note")->kind == Kind::quoted);
}

TEST_CASE("config: any text reads back the same, as a value, in a list, and as a key") {
  for (const std::string text :
       {"/data/what?", "?",         "a, b",       "it's \"so\"", "- x",         "--x", "x: y", ":x",    "x:",    "a #b",
        "<<",          "=",         "---",        "...",         "[x",          "~",   "null", "No",    "1e-05", "",
        " x ",         "tab\there", "two\nlines", "\x1b[3m",     "caf\xc3\xa9", "%x",  "@x",   "C:\\x", "{}"}) {
    CAPTURE(text);
    Config config;
    config.set({"value", text, "test", Kind::quoted});
    std::string quoted;
    for (const char c : text)
      quoted += c == '"' || c == '\\' ? std::string("\\") + c
                : c == '\n'           ? "\\n"
                : c == '\x1b'         ? "\\e"
                                      : std::string(1, c);
    config.set(Config::parse("list: [\"" + quoted + "\", x]\n", "test").entries().front());
    const bool key = !text.empty() && text.find_first_of(".: ") != 0 && text.find('.') == std::string::npos;
    if (key) config.set({"mine." + text, "v", "test", Kind::plain});
    const Config back = Config::parse(config.to_yaml(), "back");
    CHECK(back.text("value") == text);
    CHECK(back.find("list")->value == config.find("list")->value);
    if (key) CHECK(back.text("mine." + text) == "v");
  }
}

TEST_CASE("config: the name of a file cannot write into the configuration that is kept") {
  const Config c = Config::parse("training: {seed: 3}\n", "a\ntraining:\n  seed: 4 #.yaml");
  const Config again = Config::parse(c.to_yaml(), "again");
  CHECK(again.entries().size() == 1);
  CHECK(again.integer("training.seed") == 3);
}

TEST_CASE("config: a list is words joined by commas, or a YAML list") {
  CHECK(Config::parse("zero.passes: prefetch,selective_gather\n", "c").list("zero.passes") ==
        std::vector<std::string>{"prefetch", "selective_gather"});
  CHECK(Config::parse("zero.passes: [prefetch]\n", "c").list("zero.passes") == std::vector<std::string>{"prefetch"});
  CHECK(Config().list("zero.passes").empty());
  CHECK_THROWS_AS(Config::parse("zero.passes: a,,b\n", "c").list("zero.passes"), zs::Error);
}

TEST_CASE("config: every default of the table is of its type, within its range, and every option names one key") {
  Config c;
  c.add_defaults();
  CHECK_NOTHROW(c.check());
  CHECK(c.warnings().empty());
  for (const auto& row : zs::config::known()) {
    CHECK(zs::config::known(row.key) == &row);
    for (const std::string& option : zs::config::words(row.options)) CHECK(zs::config::known_option(option) == &row);
    for (const std::string& alias : zs::config::words(row.aliases)) CHECK(zs::config::known(alias) == &row);
  }
}

TEST_CASE("config: counts have suffixes") {
  using zs::config::parse_count;
  CHECK(parse_count("10M") == 10000000);
  CHECK(parse_count("1.1M") == 1100000);
  CHECK(parse_count("64k") == 64000);
  CHECK(parse_count("0.3G") == 300000000);
  CHECK(parse_count("512") == 512);
  for (const char* const bad : {"", "M", "-1", "1.5", "nan", "inf", "0.0001k", "1e30", "10MB", "1 M"})
    CHECK_MESSAGE(!parse_count(bad), bad);
}

TEST_CASE("config: the table of attributes knows every key, every option and every alias of a configuration") {
  for (const zs::config::Known& row : zs::config::known()) {
    INFO(row.key);
    const zs::attribute::Attribute* const found = zs::attribute::find(row.key);
    REQUIRE(found != nullptr);
    CHECK(found->key == row.key);
    for (const std::string_view field : {row.options, row.aliases}) {
      for (const std::string& name : zs::config::words(field)) {
        INFO(name);
        CHECK(zs::attribute::find(name) == found);
      }
    }
  }
}
