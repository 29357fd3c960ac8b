// SPDX-License-Identifier: Apache-2.0
#include "compare/pairs_test.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "base/checksum.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/sums.hpp"
#include "comparison/session.hpp"
#include "comparison/two_runs.hpp"
#include "metric/file.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;

/// The folder of a run with its metrics.
void write_run(const std::string& folder, const metric::Run& run) {
  fs::create_directories(folder);
  metric::Store store;
  store.runs = {run};
  write_file(folder + "/metrics.h5", metric::to_h5(store));
}

tensorfile::Dict dict_of(const std::vector<std::pair<std::string, tensorfile::Tensor>>& tensors) {
  tensorfile::Dict dict;
  for (const auto& [name, tensor] : tensors) dict.items.push_back({name, tensor});
  return dict;
}

input::Named operand(const std::string& path) { return input::named(path, "", "zs-verify"); }
Recorded recorded(const std::string& path) { return read_recorded(operand(path)); }

bool passes(const Answer& answer) { return compare::status(answer.verdict) == Status::done; }

TEST_CASE("pairs: zs-verify RUN RUN, from folders") {
  const TemporaryFolder folder;
  const std::string a = folder.file("a"), b = folder.file("b");
  compare::Tally tally("zs-verify, two runs");
  for (const compare::RunPair& pair : compare::run_pairs(4, 10)) {
    write_run(a, pair.a), write_run(b, pair.b);
    tally.count(pair.kind, pair.equal, passes(compare_runs(recorded(a), recorded(b), {})));
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

TEST_CASE("pairs: zs-verify of files, of folders, and of the checkpoints of runs") {
  const TemporaryFolder folder;
  compare::Random random(5);
  const metric::Run run = compare::run_of("r", compare::some_rows(random));
  for (const char* const side : {"a", "b"}) {
    write_run(folder.file(side), run);
    fs::create_directories(folder.file(side) + "/checkpoint_3");
  }
  compare::Tally torch("zs-verify, .pt files"), safe("zs-verify, safetensors folders"), runs("zs-verify, checkpoints");
  for (const compare::TensorPair& pair : compare::tensor_pairs(6, 4)) {
    for (const bool second : {false, true}) {
      const auto& tensors = second ? pair.b : pair.a;
      const std::string run_folder = folder.file(second ? "b" : "a"), checkpoint = run_folder + "/checkpoint_3";
      tensorfile::write_torch(run_folder + "/weights.pt", dict_of(tensors));
      tensorfile::write_safetensors(checkpoint + "/model.safetensors", tensors);
    }
    const std::string a = folder.file("a"), b = folder.file("b");
    torch.count(pair.kind, pair.equal, passes(compare_states(a + "/weights.pt", b + "/weights.pt", {})));
    safe.count(pair.kind, pair.equal, passes(compare_states(a + "/checkpoint_3", b + "/checkpoint_3", {})));
    runs.count(pair.kind, pair.equal, passes(compare_runs(recorded(a), recorded(b), {})));
  }
  for (const compare::Tally* const tally : {&torch, &safe, &runs}) {
    MESSAGE(tally->text(false));
    CHECK(tally->wrong() == 0);
  }
}

/// A checkpoint as zs-train writes it, of so many ranks: weights of 12 and 6 elements, gradients, moments, documents.
void write_checkpoint(const std::string& folder, int ranks, std::uint64_t seed) {
  compare::Random random(seed);
  fs::remove_all(folder);
  fs::create_directories(folder + "/accelerator_states");
  const auto tensor = [&](std::size_t size) {
    return tensorfile::make_tensor(tensorfile::Dtype::f32, {static_cast<std::int64_t>(size)},
                                   tensorfile::Storage::own(compare::some_bytes(tensorfile::Dtype::f32, size, random)));
  };
  std::map<std::string, tensorfile::Tensor> tensors;
  for (const char* const name : {"weights.w", "weights.b", "gradients.w", "gradients.b", "exp_avg.w", "exp_avg.b",
                                 "exp_avg_sq.w", "exp_avg_sq.b"})
    tensors.emplace(name, tensor(std::string(name).ends_with('w') ? 12 : 6));
  tensorfile::write_torch(folder + "/pytorch_model.bin",
                          dict_of({{"w", tensors.at("weights.w")}, {"b", tensors.at("weights.b")}}));
  tensorfile::write_torch(folder + "/gradients.pt",
                          dict_of({{"w", tensors.at("gradients.w")}, {"b", tensors.at("gradients.b")}}));
  for (int rank = 0; rank < ranks; ++rank) {
    tensorfile::Dict root, offsets;
    for (const char* const moment : {"exp_avg", "exp_avg_sq"}) {
      tensorfile::Dict parts;
      for (const char* const name : {"w", "b"}) {
        tensorfile::Tensor part = tensors.at(std::string(moment) + "." + name);
        const std::int64_t size = part.count() / ranks;
        part.offset += size * rank, part.shape = {size};
        parts.items.push_back({name, part});
        if (std::string(moment) == "exp_avg") offsets.items.push_back({name, size * rank});
      }
      root.items.push_back({moment, parts});
    }
    root.items.push_back({"offset", offsets});
    tensorfile::write_torch(folder + "/accelerator_states/optimizer_0000" + std::to_string(rank) + ".pt", root);
  }
  write_file(folder + "/config.json", R"({"n_layer": 1, "n_head": 2})");
  write_file(folder + "/accelerator_states/state.json",
             R"({"step": 3, "sampler": {"seed": 1, "position": 3}, "world_size": )" + std::to_string(ranks) +
                 R"(, "loss_scaler": {"scale": 1, "skipped": 0}})");
}

void seal(const std::string& folder) {
  std::string sums;
  for (const std::string& file : checkpoints::files(folder)) {
    if (file != "SHA256SUMS") sums += sha256(Input(folder + "/" + file).read_all()) + "  " + file + "\n";
  }
  write_file(folder + "/SHA256SUMS", sums);
}

TEST_CASE("pairs: checkpoints of runs that lack a file, or have one torn, twice, or of another rank") {
  const TemporaryFolder folder;
  compare::Random random(9);
  const metric::Run run = compare::run_of("r", compare::some_rows(random));
  const std::string a = folder.file("a"), b = folder.file("b"), at_a = a + "/checkpoint_3", at_b = b + "/checkpoint_3";
  for (const std::string& side : {a, b}) write_run(side, run);
  compare::Tally tally("zs-verify, checkpoints of runs");
  const std::vector<std::string> files = {"pytorch_model.bin",
                                          "gradients.pt",
                                          "config.json",
                                          "accelerator_states/state.json",
                                          "accelerator_states/optimizer_00000.pt",
                                          "accelerator_states/optimizer_00001.pt"};
  // `seals`: both have checksums, of before the change (-1), of after it (1), or none (0).
  const auto pair = [&](const std::string& kind, bool equal, int ranks_a, int ranks_b, int seals, const auto& change) {
    const std::uint64_t seed = random();
    write_checkpoint(at_a, ranks_a, seed), write_checkpoint(at_b, ranks_b, seed);
    if (seals < 0) seal(at_a), seal(at_b);
    change();
    if (seals > 0 && fs::exists(at_a)) seal(at_a);
    if (seals > 0 && fs::exists(at_b)) seal(at_b);
    bool passes_it = false;
    try {
      passes_it = passes(compare_runs(recorded(a), recorded(b), {}));
    } catch (const Error&) {
    }
    tally.count(kind, equal, passes_it);
  };
  for (int seals = -1; seals <= 1; ++seals) {
    for (const int ranks : {1, 2, 3}) pair("equal: over other numbers of ranks", true, 2, ranks, seals, [] {});
    pair("equal: a number spelt otherwise", true, 2, 2, std::max(0, seals),
         [&] { write_file(at_b + "/config.json", R"({"n_layer": 1.0, "n_head": 2})"); });
    for (const std::string& file : files) {
      pair("one side lacks a file", false, 2, 2, seals, [&] { fs::remove(at_b + "/" + file); });
      if (seals < 0 || file.find("optimizer") != std::string::npos)
        pair("both lack a file of the checksums, or of a rank", false, 2, 2, seals,
             [&] { fs::remove(at_a + "/" + file), fs::remove(at_b + "/" + file); });
      if (seals <= 0 || file.ends_with("json") || file.ends_with("optimizer_00001.pt"))
        pair("torn", false, 2, 2, seals,
             [&] { fs::resize_file(at_b + "/" + file, fs::file_size(at_b + "/" + file) / 2); });
      if (file.ends_with("json")) continue;
      pair("a file of other values", false, 2, 2, seals, [&] {
        const std::string other = folder.file("other");
        write_checkpoint(other, 2, random());
        fs::copy_file(other + "/" + file, at_b + "/" + file, fs::copy_options::overwrite_existing);
      });
    }
    pair("a shard twice", false, 2, 2, seals, [&] {
      fs::copy_file(at_b + "/accelerator_states/optimizer_00000.pt", at_b + "/accelerator_states/optimizer_00002.pt");
    });
    pair("a shard twice in both", false, 2, 2, seals, [&] {
      for (const std::string& at : {at_a, at_b})
        fs::copy_file(at + "/accelerator_states/optimizer_00000.pt", at + "/accelerator_states/optimizer_00002.pt");
    });
    pair("a shard of another rank", false, 2, 2, seals, [&] {
      fs::copy_file(at_b + "/accelerator_states/optimizer_00000.pt", at_b + "/accelerator_states/optimizer_00001.pt",
                    fs::copy_options::overwrite_existing);
    });
    pair("a shard of another rank in both", false, 2, 2, seals, [&] {
      for (const std::string& at : {at_a, at_b})
        fs::copy_file(at + "/accelerator_states/optimizer_00000.pt", at + "/accelerator_states/optimizer_00001.pt",
                      fs::copy_options::overwrite_existing);
    });
    pair("one side lacks all optimizer state", false, 2, 2, seals, [&] {
      for (int rank = 0; rank < 2; ++rank)
        fs::remove(at_b + "/accelerator_states/optimizer_0000" + std::to_string(rank) + ".pt");
    });
    pair("one side lacks the checkpoint", false, 2, 2, seals, [&] { fs::remove_all(at_b); });
    pair("one side lacks a value of state.json", false, 2, 2, seals, [&] {
      write_file(at_b + "/accelerator_states/state.json", R"({"step": 3, "loss_scaler": {"scale": 1, "skipped": 0}})");
    });
    pair("another value of state.json", false, 2, 2, seals, [&] {
      write_file(at_b + "/accelerator_states/state.json",
                 R"({"step": 4, "sampler": {"seed": 1, "position": 3}, "loss_scaler": {"scale": 1, "skipped": 0}})");
    });
    pair("another value of config.json", false, 2, 2, seals,
         [&] { write_file(at_b + "/config.json", R"({"n_layer": 1, "n_head": 4})"); });
    pair("weights of another file beside", false, 2, 2, seals, [&] {
      const tensorfile::Value gradients = tensorfile::read_torch(at_b + "/gradients.pt");
      tensorfile::write_safetensors(at_b + "/model.safetensors",
                                    {{"w", *gradients.find("w")->get<tensorfile::Tensor>()}});
    });
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

TEST_CASE("pairs: nested values of a .pt file are compared too") {
  const TemporaryFolder folder;
  const float one = 1, two = 2;
  const auto write = [&](const std::string& name, const float& moment, std::int64_t step) {
    tensorfile::Dict state, optimizer, root;
    optimizer.items.push_back({"exp_avg", tensorfile::borrow_f32({1}, {&moment, 1})});
    optimizer.items.push_back({"step", step});
    state.items.push_back({"w", tensorfile::borrow_f32({1}, {&one, 1})});
    root.items.push_back({"model", state});
    root.items.push_back({"optimizer", optimizer});
    tensorfile::write_torch(folder.file(name), root);
    return folder.file(name);
  };
  const std::string a = write("a.pt", one, 3), b = write("b.pt", one, 3);
  CHECK(compare_states(a, b, {}).verdict == compare::Verdict::exact);
  CHECK(compare_states(a, write("c.pt", two, 3), {}).verdict == compare::Verdict::different);
  CHECK(compare_states(a, write("d.pt", one, 4), {}).verdict == compare::Verdict::different);
}

TEST_CASE("operands: what is the same is refused, whatever it is called") {
  const TemporaryFolder folder;
  compare::Random random(7);
  write_run(folder.file("a"), compare::run_of("r", compare::some_rows(random)));
  fs::create_directory_symlink(folder.file("a"), folder.file("link"));
  const input::Named a = operand(folder.file("a"));
  CHECK(is_run(a));
  for (const char* const other : {"a", "a/", "./a", "link", "a/metrics.h5"})
    CHECK_THROWS_AS(require_two(a, operand(folder.file(other))), UsageError);
}

}  // namespace
}  // namespace zs::comparison
