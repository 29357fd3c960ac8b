// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "rolloutfile/rows.hpp"
#include "tensorfile/torch.hpp"

namespace zs::rolloutfile {
namespace {

using namespace std::string_literals;
using tensorfile::Dict;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tuple;
using tensorfile::Value;
using Ids = std::vector<std::int64_t>;

TEST_CASE("dump: its form is known from its name and its first bytes") {
  struct Row {
    std::string path, bytes, system;
  };
  const std::string wide = "{" + std::string(1 << 16, ' ');
  for (const auto& [path, bytes, system] :
       std::vector<Row>{{"any.jsonl", R"({"zs_rollout": 1})", "zs"},
                        {"any.jsonl", R"({"token_ids": [1], "generation_logprobs": [0]})", "NeMo-RL"},
                        {"train_data_step1.jsonl", wide, "NeMo-RL"},  // the mark may be behind the first bytes
                        {"any.jsonl", wide, ""},
                        {"any.jsonl",
                         "{}\n"
                         R"({"zs_rollout": 1})",
                         ""},  // the mark counts on the first line
                        {"any.jsonl", R"(["zs_rollout"])", ""},
                        {"rollout_samples.jsonl", R"({"turns": [{"completion_token_ids": [1]}]})", "torchtitan"},
                        {"rollout.h5", "\x89HDF zs_rollout", "zs"},
                        {"3.pt", "PK rollout_id", "slime"},
                        {"3.bin", "PK rollout_id", ""},
                        {"global_step_1_training_input.pkl", "\x80 TrainingInputBatch", "SkyRL"},
                        {"rank_0.bin", "\x91\x91\x91", "prime-rl"},
                        {"rank_0.bin", "\x91\xdc\0\1\xdd\0\0\0\1"s, "prime-rl"},
                        {"rank_0.bin", "\x91\x91", ""},
                        {"rank_0.bin", "\x91\x81\x91", ""},
                        {"other.bin", "\x91\x91\x91", ""}}) {
    CAPTURE(path);
    CAPTURE(system);
    const Form* const form = form_of(path, bytes);
    CHECK((form ? form->system : ""s) == system);
  }
}

TEST_CASE("dump: the step is the last number of the file's name, else of its folder's") {
  CHECK(last_number("a/train_data_step12.jsonl") == 12);
  CHECK(last_number("rollout_data/7.pt") == 7);
  CHECK(last_number("step_3/rank_0.bin") == 3);
  CHECK(last_number("a/rollout-0.jsonl") == -1);
  CHECK(last_number("dump.jsonl") == -1);
}

/// The dump of a file with these bytes, or the error without the folder.
struct Read {
  Dump dump{};
  std::string error{};
  const Sequence& first() const { return dump.sequences.at(0); }
};
Read read_of(const std::string& name, const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder.file(name), bytes);
  try {
    return {.dump = read(folder.file(name))};
  } catch (const Error& error) {
    return {.error = std::string(error.what()).substr(folder.path().size() + 1)};
  }
}

std::string nemo(const std::string& counts) {
  return R"({"token_ids": [[5, 6, 7, 8, 0]], "input_lengths": [4], "token_loss_mask": [[0, 0, 1, 1, 0]], "sample_loss_mask": [)" +
         counts + R"(], "generation_logprobs": [[0, 0, -1, -2, 0]], "prev_logprobs": [[0, 0, -3, -4, 0]], "idx": 3})" +
         "\n";
}

TEST_CASE("dump: a padded row is cut to its length, and its completion begins where tokens count") {
  const Sequence one = read_of("train_data_step12.jsonl", nemo("1.0")).first();
  CHECK(one.ids == Ids{5, 6, 7, 8});
  CHECK(one.prompt == 2);
  CHECK(one.gen == Numbers{-1, -2});
  CHECK(one.train == Numbers{-3, -4});
  CHECK(one.sample == "3");
  CHECK(one.step == 12);
  CHECK(one.counts(1));
  CHECK_FALSE(read_of("train_data_step12.jsonl", nemo("0.0")).first().counts(1));
}

TEST_CASE("dump: each turn of a conversation is a sequence with its prompt and version") {
  const std::string line =
      R"({"group_id": 4, "rollout_id": 2, "turns": [{"prompt_token_ids": [9, 8], "completion_token_ids": [7], )"
      R"("completion_logprobs": [-1], "max_policy_version": 5}, {"prompt_token_ids": [9], )"
      R"("completion_token_ids": [6, 5], "completion_logprobs": [-1, -2]}]})";
  const Dump dump = read_of("rollout_samples.jsonl", line + "\n").dump;
  REQUIRE(dump.sequences.size() == 2);
  CHECK(dump.sequences[0].sample == "4/2");
  CHECK(dump.sequences[0].prompt == 2);
  CHECK(dump.sequences[0].versions == decltype(Sequence::versions){{1, "5"}});
  CHECK(dump.sequences[1].ids == Ids{9, 6, 5});
  CHECK(dump.sequences[1].versions.empty());
  CHECK(read_of("rollout_samples.jsonl", line).error == "rollout_samples.jsonl:1: the last line is cut");
}

TEST_CASE("dump: slime's samples of either side have the same columns") {
  const TemporaryFolder folder;
  const auto read_sample = [&](Dict sample) {
    tensorfile::write_torch(folder.file("7.pt"), Dict{{{"rollout_id", 7}, {"samples", List{{std::move(sample)}}}}},
                            tensorfile::Reals::plain);
    return read(folder.file("7.pt")).sequences.at(0);
  };
  const Value tokens = List{{1, 2, 3}}, mask = List{{1, 0}}, numbers = List{{-1.0, -2.0}};
  const Sequence gen = read_sample(Dict{{{"index", 5},
                                         {"tokens", tokens},
                                         {"response_length", 2},
                                         {"loss_mask", mask},
                                         {"rollout_log_probs", numbers},
                                         {"weight_versions", List{{"3", "4"}}}}});
  const Sequence train = read_sample(Dict{{{"sample_index", 5},
                                           {"tokens", tokens},
                                           {"response_lengths", 2},
                                           {"loss_masks", mask},
                                           {"log_probs", numbers}}});
  for (const Sequence* const one : {&gen, &train}) {
    CHECK(one->step == 7);
    CHECK(one->sample == "5");
    CHECK(one->prompt == 1);
    CHECK_FALSE(one->counts(1));
  }
  CHECK(gen.gen == Numbers{-1, -2});
  CHECK(gen.versions == decltype(Sequence::versions){{2, "4"}});
  CHECK(train.train == Numbers{-1, -2});
  CHECK_THROWS_WITH(read_sample(Dict{{{"tokens", tokens}, {"response_length", 4}, {"log_probs", numbers}}}),
                    doctest::Contains("has a completion longer than the sequence"));
}

/// An array of SkyRL, 2 rows. The numbers' bytes must be text here.
template <typename Number>
Value array(const std::string& type, const std::vector<Number>& numbers) {
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
  const auto columns = static_cast<std::int64_t>(numbers.size() / 2);
  return Dict{{{"data", bytes}, {"shape", Tuple{{2, columns}}}, {"dtype", type}}};
}

TEST_CASE("dump: SkyRL's rows lose what is padded on either side") {
  const auto bytes_of = [](const std::vector<std::int64_t>& attention) {
    const Dict batch{{{"sequences", array<std::int64_t>("int64", {0, 4, 5, 6, 0, 0, 7, 8})},
                      {"attention_mask", array("int64", attention)},
                      {"response_mask", array<std::int64_t>("int64", {1, 1, 1, 0})},
                      {"rollout_logprobs", array<float>("float32", {0.5F, 2, 3, 8})},
                      {"action_log_probs", array<float>("float32", {9, 8, 2, 3})}}};
    std::vector<tensorfile::StoragePtr> none;
    return tensorfile::pickle(Object("m.rebuild", {Object("m.TrainingInputBatch"), Dict{{{"batch_dict", batch}}}}),
                              none);
  };
  const Dump dump = read_of("1_training_input.pkl", bytes_of({0, 1, 1, 1, 0, 0, 1, 1})).dump;
  REQUIRE(dump.sequences.size() == 2);
  CHECK(dump.sequences[0].ids == Ids{4, 5, 6});
  CHECK(dump.sequences[0].padded == 1);
  CHECK(dump.sequences[0].gen == Numbers{0.5, 2});
  CHECK(dump.sequences[1].ids == Ids{7, 8});
  CHECK(dump.sequences[1].padded == 2);
  CHECK(dump.sequences[1].prompt == 1);
  CHECK(dump.sequences[1].train == Numbers{2});
  CHECK(read_of("1_training_input.pkl", bytes_of({0, 1, 1, 1})).error ==
        "1_training_input.pkl: lacks sequences, attention_mask or response_mask of one size");
}

TEST_CASE("dump: prime-rl's packed sequences are cut by their lengths") {
  using Json = nlohmann::json;
  const auto bytes_of = [](const std::vector<int>& lengths) {
    const Json ids = {4, 5, 6, 7, 8}, mask = {false, true, false, true, true}, numbers = {0.0, -1.0, 0.0, -2.0, -3.0};
    const Json batch = {ids, mask, numbers, numbers, ids, lengths, {1.0, 1.0, 0.5, 0.5, 0.5}, {"e"}, lengths, numbers};
    const std::vector<std::uint8_t> bytes = Json::to_msgpack(Json::array({batch}));
    return std::string(bytes.begin(), bytes.end());
  };
  const Dump dump = read_of("rank_0.bin", bytes_of({2, 3})).dump;
  REQUIRE(dump.sequences.size() == 2);
  CHECK(dump.sequences[0].ids == Ids{4, 5});
  CHECK(dump.sequences[1].ids == Ids{6, 7, 8});
  CHECK(dump.sequences[1].prompt == 1);
  CHECK(dump.sequences[1].gen == Numbers{-2, -3});
  CHECK(dump.sequences[1].temperature == 0.5);
  CHECK(read_of("rank_0.bin", bytes_of({2, 4})).error == "rank_0.bin: has sequences longer than its tokens");
}

TEST_CASE("dump: a damaged row is an error with its line") {
  const std::string head = R"({"zs_rollout": 1})"
                           "\n",
                    whole = R"({"ids": [5, 6], "prompt": 1, "gen": [-1]})"
                            "\n";
  const auto error = [&](const std::string& lines) { return read_of("rollout-0.jsonl", lines).error; };
  CHECK(error(head + whole) == "");
  CHECK(error(R"({"zs_rollout": 2})"
              "\n") == "rollout-0.jsonl:1: is a dump of another version: record again");
  CHECK(error(head + "[1]\n") == "rollout-0.jsonl:2: is no line of a dump");
  CHECK(error(head + std::string(1000, '[') + "\n") == "rollout-0.jsonl:2: is no line of a dump");
  CHECK(error(head + whole + "{\n").starts_with("rollout-0.jsonl:3: is damaged: "));
  CHECK(error(head + R"({"ids": [5, 6, 7], "prompt": 1, "gen": [-1]})"
                     "\n") == "rollout-0.jsonl:2: gen has 1 values for 2 tokens of the completion");
  CHECK(error(head + R"({"ids": [5, 6], "prompt": 1, "gen": "abc"})"
                     "\n")
            .starts_with("rollout-0.jsonl:2: "));
  CHECK(error(head + R"({"ids": [5, 6], "prompt": 1, "gen": [-1], "replays": {"x": [1, 2]}})"
                     "\n") == "rollout-0.jsonl:2: replay 'x' has another length than the completion");
  CHECK(error(head) == "rollout-0.jsonl: holds no log-probabilities: record both sides with zs_probe");
}

TEST_CASE("dump: a folder's files are read in the order of their steps, also of the folders that systems make") {
  const TemporaryFolder folder;
  CHECK_FALSE(has_dumps(folder.path()));
  std::filesystem::create_directory(folder.file("other"));
  write_file(folder.file("other/train_data_step1.jsonl"), nemo("1.0"));
  CHECK_FALSE(has_dumps(folder.path()));
  std::filesystem::create_directory(folder.file("step_10"));
  write_file(folder.file("step_10/train_data_step10.jsonl"), nemo("1.0"));
  write_file(folder.file("train_data_step2.jsonl"), nemo("1.0"));
  CHECK(has_dumps(folder.path()));
  const Dump dump = read(folder.path());
  REQUIRE(dump.sequences.size() == 2);
  CHECK(dump.sequences[0].step == 2);
  CHECK(dump.sequences[1].step == 10);
}

TEST_CASE("dump: one of text alone says how to record numbers") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& name, const std::string& bytes) {
    write_file(folder.file(name), bytes);
    return text_alone(folder.file(name));
  };
  CHECK(said("3.jsonl", R"({"input": "a", "output": "b", "gts": "c"})").starts_with("is verl's dump of text"));
  CHECK(said("a.jsonl", R"({"head_version": 1, "completion": "b"})").starts_with("is AReaL's dump of text"));
  CHECK(said("completions_1.parquet", "PAR1...").starts_with("is TRL's dump of text"));
  CHECK(said("b.jsonl", R"({"output": "b"})") == "");
  CHECK(said("c.parquet", "PAR1...") == "");
}

}  // namespace
}  // namespace zs::rolloutfile
