// SPDX-License-Identifier: Apache-2.0
#include "compare/pairs_test.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "metric/file.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"
#include "verify/operand.hpp"
#include "verify/two_runs.hpp"

namespace zs::verify {
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

bool passes(const Answer& answer) { return compare::status(answer.verdict) == Status::done; }

TEST_CASE("pairs: zs-verify RUN RUN, from folders") {
  const TemporaryFolder folder;
  const std::string a = folder.file("a"), b = folder.file("b");
  compare::Tally tally("zs-verify, two runs");
  for (const compare::RunPair& pair : compare::run_pairs(4, 10)) {
    write_run(a, pair.a), write_run(b, pair.b);
    tally.count(pair.kind, pair.equal, passes(compare_runs(read_recorded(a, "a"), read_recorded(b, "b"), {})));
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
    torch.count(pair.kind, pair.equal, passes(compare_files(a + "/weights.pt", b + "/weights.pt", {})));
    safe.count(pair.kind, pair.equal, passes(compare_files(a + "/checkpoint_3", b + "/checkpoint_3", {})));
    runs.count(pair.kind, pair.equal, passes(compare_runs(read_recorded(a, "a"), read_recorded(b, "b"), {})));
  }
  for (const compare::Tally* const tally : {&torch, &safe, &runs}) {
    MESSAGE(tally->text(false));
    CHECK(tally->wrong() == 0);
  }
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
  CHECK(compare_files(a, b, {}).verdict == compare::Verdict::exact);
  CHECK(compare_files(a, write("c.pt", two, 3), {}).verdict == compare::Verdict::different);
  CHECK(compare_files(a, write("d.pt", one, 4), {}).verdict == compare::Verdict::different);
}

TEST_CASE("operands: what is the same is refused, whatever it is called") {
  const TemporaryFolder folder;
  compare::Random random(7);
  write_run(folder.file("a"), compare::run_of("r", compare::some_rows(random)));
  fs::create_directory_symlink(folder.file("a"), folder.file("link"));
  const Operand a = operand(folder.file("a"), "");
  CHECK(a.is_run);
  for (const char* const other : {"a", "a/", "./a", "link", "a/metrics.h5"})
    CHECK_THROWS_AS(require_two(a, operand(folder.file(other), "")), UsageError);
}

}  // namespace
}  // namespace zs::verify
