// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "attribute/difference.hpp"

namespace zs::attribute {
namespace {

/// A run that says everything.
Facts whole_run() {
  Facts facts;
  for (const Attribute& row : table()) {
    if (!row.name.ends_with('*')) facts[std::string(row.name)] = row.type == Type::text ? "word" : "4";
  }
  return facts;
}

Bits bits_of(const Facts& a, const Facts& b) { return expected_bits(differences({&a, &b})); }

}  // namespace

TEST_CASE("every name belongs to one attribute, and what it points to exists") {
  std::set<std::string_view> names;
  for (const Attribute& row : table()) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(find(row.name) == &row);
    CHECK(!row.label.empty());
    if (!row.key.empty()) CHECK(find(row.key) == &row);
    if (!row.column.empty()) CHECK(find(row.column) == &row);
    if (!row.through.empty()) {
      REQUIRE(find(row.through));
      CHECK(find(row.through)->name == row.through);
    }
    std::string alias;
    for (const char c : std::string(row.aliases) + " ") {
      if (c != ' ') {
        alias += c;
        continue;
      }
      INFO(alias);
      if (!alias.empty()) CHECK(find(alias) == &row);
      alias.clear();
    }
  }
}

TEST_CASE("an attribute is found by any of its names, and an unknown one decides") {
  CHECK(find("training.learning_rate") == find("learning_rate"));
  CHECK(find("num_layers")->name == "model.num_layers");
  CHECK(find("bench_step")->name == "max_steps");
  CHECK(column(*find("zero_stage")) == "zero.stage");
  CHECK(column(*find("peak_mem")) == "peak_memory");
  CHECK(role("source_sha256.2") == Role::identity);
  CHECK(role("wandb.summary.train/loss") == Role::measurement);
  CHECK(find("never_heard_of") == nullptr);
  CHECK(role("never_heard_of") == Role::decides);
}

TEST_CASE("the roles that verdicts stand on") {
  const auto all_are = [](Role expected, std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      INFO(name);
      REQUIRE(find(name));
      CHECK(role(name) == expected);
    }
  };
  all_are(Role::decides,
          {"model.name", "model.num_layers", "seq_length", "dropout", "init_std", "dataset_sha256", "global_batch_size",
           "expected_steps", "learning_rate", "scheduler", "lr_warmup_steps", "weight_decay", "decay", "beta1", "beta2",
           "epsilon", "correct_bias", "max_grad_norm", "seed"});
  all_are(Role::arithmetic, {"dtype", "kernels", "compile", "device", "instruction_set", "torch", "blas", "threads",
                             "cpu", "gpu", "revision", "reduction", "use_torch_adam"});
  all_are(Role::layout, {"zero_stage", "world_size", "batch_size", "gradient_accumulation_steps", "deepcompile",
                         "passes", "offload", "activation_checkpointing", "eval_steps", "save_steps"});
  all_are(Role::measurement, {"loss", "iteration_time", "peak_mem", "state_digest", "throughput", "exit_code"});
  all_are(Role::identity, {"run_id", "run_name", "host", "command", "log_interval", "slurm_job_id", "source"});
}

TEST_CASE("facts settle: one name, one spelling, one effect") {
  const Facts facts = settled({{"training.learning_rate", "1e-3"},
                               {"num_layers", "0"},
                               {"model.num_layers", "4"},
                               {"world_size", "2"},
                               {"batch_size", "3"},
                               {"gradient_accumulation_steps", "4"},
                               {"dataset", "/a"},
                               {"dataset_sha256", "ff"},
                               {"compile", "True"},
                               {"empty", ""}});
  CHECK(facts.at("learning_rate") == "0.001");
  CHECK(facts.at("model.num_layers") == "4");
  CHECK(facts.at("global_batch_size") == "24");
  CHECK(facts.at("world_size") == "2");
  CHECK(facts.at("compile") == "true");
  CHECK(facts.count("dataset") == 0);
  CHECK(facts.count("empty") == 0);
}

TEST_CASE("another way to one global batch is layout, another global batch is another training") {
  const Facts two = {{"world_size", "2"}, {"batch_size", "1"}, {"gradient_accumulation_steps", "2"}};
  const Facts four = {{"world_size", "4"}, {"batch_size", "1"}, {"gradient_accumulation_steps", "1"}};
  const Facts more = {{"world_size", "4"}, {"batch_size", "1"}, {"gradient_accumulation_steps", "2"}};
  CHECK(bits_of(two, four) == Bits::same);
  CHECK(bits_of(two, more) == Bits::other_training);
  // Where the batch is not known, ranks may change it.
  CHECK(bits_of({{"world_size", "2"}}, {{"world_size", "4"}}) == Bits::other_training);
  // The tree of sums has micro-batches for leaves: how large they are rounds.
  const Facts larger = {{"world_size", "2"}, {"batch_size", "2"}, {"gradient_accumulation_steps", "1"}};
  CHECK(bits_of(two, larger) == Bits::other_arithmetic);
}

TEST_CASE("what only one run says is a difference") {
  const auto found = differences({});
  CHECK(found.empty());
  const Facts one = {{"weight_decay", "0.1"}}, other = {};
  CHECK(bits_of(one, other) == Bits::other_training);
  CHECK(reason(differences({&one, &other})) ==
        "train different things: they differ in weight decay (0.1 and not recorded)");
}

TEST_CASE("the reason names what differs, and counts the rest") {
  const Facts a = {{"model.num_layers", "2"}, {"dtype", "float32"}, {"zero_stage", "1"}};
  Facts b = a;
  b["zero_stage"] = "3";
  CHECK(reason(differences({&a, &b})).empty());
  b["dtype"] = "bfloat16";
  CHECK(reason(differences({&a, &b})) ==
        "are not expected to be the same bits, because they differ in number format (float32 and bfloat16)");
  b["model.num_layers"] = "4";
  CHECK(reason(differences({&a, &b})) == "train different things: they differ in layers (2 and 4)");
  const Facts c = {{"a", "1"}, {"b", "1"}, {"c", "1"}}, d = {{"a", "2"}, {"b", "2"}, {"c", "2"}};
  const Facts e = {{"dataset_sha256", std::string(64, 'a')}}, f = {{"dataset_sha256", std::string(64, 'b')}};
  CHECK(text(differences({&e, &f}), 2) == "checksum of the data (aaaaaaaaaaaa and bbbbbbbbbbbb)");
  CHECK(text(differences({&c, &d}), 2) == "a (1 and 2) and 2 more");
}

TEST_CASE("changing one attribute of a run has the consequence of its role") {
  const Facts run = whole_run();
  std::size_t changed = 0;
  for (const Attribute& row : table()) {
    if (row.name.ends_with('*')) continue;
    Facts other = run, without = run;
    other[std::string(row.name)] = row.type == Type::text ? "other" : "8";
    const bool through = !row.through.empty();
    if (through) without.erase(std::string(row.through)), other.erase(std::string(row.through));
    // Its three factors would give the global batch again.
    const char* const factor = row.name == "world_size" ? "batch_size" : "world_size";
    if (row.through == "global_batch_size") without.erase(factor), other.erase(factor);
    const Bits bits = bits_of(without, other);
    INFO(row.name);
    const bool splits = row.role == Role::layout && through;
    const Bits expected = row.role == Role::decides || splits ? Bits::other_training
                          : row.role == Role::arithmetic      ? Bits::other_arithmetic
                                                              : Bits::same;
    CHECK(bits == expected);
    if (through) {  // the attribute that it acts through is known, and the same
      Facts known = run;
      known[std::string(row.name)] = row.type == Type::text ? "other" : "8";
      CHECK(bits_of(run, known) == (row.rounds ? Bits::other_arithmetic : Bits::same));
    }
    ++changed;
  }
  CHECK(changed > 100);
}

}  // namespace zs::attribute
