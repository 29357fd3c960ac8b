// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "base/compressed.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/folders.hpp"
#include "h5/image.hpp"
#include "input/named.hpp"
#include "input/source.hpp"

namespace zs::input {
namespace {

constexpr const char* kStep = "Epoch 1, Step 1, Loss: 4.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2\n";
constexpr const char* kTrace = R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "a"}]})";

std::string random_bytes(std::size_t count) {
  std::string bytes;
  for (std::uint32_t state = 1; bytes.size() < count;) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

std::string refusal(const std::string& operand, const char* tool) {
  try {
    named(operand, "", tool);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("kinds: a file is what its first bytes say, packed or not, whatever its name") {
  const TemporaryFolder folder;
  const std::string file = folder.file("x"), packed = folder.file("y");
  struct Row {
    std::string bytes;
    Kind kind, packed;
  };
  using enum Kind;
  const std::vector<Row> rows = {
      {"#zs-metrics 1\n", records, records},
      {"\xEF\xBB\xBFrun\tstep\n", records, records},
      {std::string(h5::kSignature) + "rest", hdf5, hdf5},
      {kTrace, trace, trace},
      {R"([{"ph": "X"}])", trace, trace},
      {R"({"zs_profile": 2})", profile, profile},
      {kStep, text, text},
      {R"({"loss": 4.5, "step": 1})", text, text},

      {std::string(1000, 'a') + std::string(20, '\0'), text, text},
      {std::string("\xFF\xFEl\0o\0", 6), text, text},
      {std::string("PK\x03\x04", 4) + random_bytes(100), tensors, unknown},
      {std::string("\x10\0\0\0\0\0\0\0{}              ", 24), tensors, unknown},
      {std::string("\x88\xD8\x34\x01\x01\0\0\0", 8) + random_bytes(100), tokens, unknown},
      {"\x89PNG\r\n\x1a\n" + random_bytes(100), picture, unknown},
      {random_bytes(4096), unknown, unknown},
      {kStep + random_bytes(70000), text, text},
      {"", empty, empty},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes.substr(0, 20));
    write_file(file, row.bytes);
    gzip(file, packed);
    CHECK(kinds_of(file).front() == row.kind);
    CHECK(kinds_of(packed).front() == row.packed);
  }
}

TEST_CASE("kinds: a folder is all that its names say; what a file of JSON or text says beside is no log") {
  const TemporaryFolder folder;
  const auto made = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string path = folder.file("x");
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    for (const auto& [name, content] : files) {
      std::filesystem::create_directories(std::filesystem::path(path + "/" + name).parent_path());
      write_file(path + "/" + name, content);
    }
    return kinds_of(path);
  };
  using enum Kind;
  using Kinds = std::vector<Kind>;
  CHECK(made({}) == Kinds{nothing});
  CHECK(made({{"a.log", kStep}}) == Kinds{logs});
  CHECK(made({{"a.out", kStep}}) == Kinds{logs});
  CHECK(made({{"metadata.json", "{}"}, {"a.log", kStep}}) == Kinds{results, logs});
  CHECK(made({{"metrics.h5", "x"}, {"run.log", kStep}}) == Kinds{run, logs});
  CHECK(made({{"metrics.h5", "x"}, {"rank-0.pt.trace.json", kTrace}, {"checkpoint_2/model.safetensors", "x"}}) ==
        Kinds{run, traces, checkpoints});
  CHECK(made({{"a/metrics.h5", "x"}}) == Kinds{registry});
  CHECK(made({{"rank-0.jsonl", "{}"}}) == Kinds{probe});
  CHECK(made({{"a.json", kTrace}}) == Kinds{traces});
  CHECK(made({{"model.safetensors", "x"}, {"config.json", "{}"}}) == Kinds{checkpoint});
  CHECK(made({{"latest", "global_step3"}, {"global_step3/x", ""}}) == Kinds{checkpoint});
  CHECK(made({{".metadata", "x"}, {"metadata.json", "{}"}, {"common.pt", "x"}}) == Kinds{checkpoint});
  CHECK(made({{"offline-run-20261122_030357-peer0001/run-peer0001.wandb", ":W&B"}, {"debug.log", "x"}}) ==
        Kinds{trackers, logs});
  CHECK(made({{"a.log", kStep}, {"wandb/offline-run-20261122_030357-peer0001/run-peer0001.wandb", ":W&B"}}) ==
        Kinds{logs});
  CHECK(made({{"wandb/offline-run-20261122_030357-peer0001/run-peer0001.wandb", ":W&B"}}) == Kinds{trackers});
}

TEST_CASE("checkpoints: by step, the final one last") {
  const TemporaryFolder folder;
  for (const char* const name : {"checkpoint_10", "checkpoint-9", "final_checkpoint", "checkpoint_x", "step-100"})
    std::filesystem::create_directory(folder.file(name));
  std::string names;
  for (const checkpoints::Checkpoint& one : checkpoints::checkpoints_in(folder.path()))
    names += std::filesystem::path(one.path).filename().string() + " ";
  CHECK(names == "checkpoint-9 checkpoint_10 step-100 final_checkpoint ");
}

TEST_CASE("named: a refusal says what it is, what the tool takes, and which tool takes it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("x");
  write_file(file, kTrace);
  CHECK(
      refusal(file, "zs-parse") ==
      file +
          ": is a profiler trace; zs-parse takes logs, metric records, runs, runs of TensorBoard, W&B and MLflow, and "
          "folders of these; zs-trace, zs-plot trace and zs-report --trace take it");
  CHECK(refusal(file, "zs-trace").empty());
  write_file(file, random_bytes(4096));
  CHECK(refusal(file, "zs-checkpoint") ==
        file + ": is not a file that zs knows; zs-checkpoint takes checkpoints and files of tensors");
  CHECK(refusal(folder.file("z"), "zs-trace") ==
        folder.file("z") + ": No such file or directory; zs-trace takes profiler traces and folders of them");
}

TEST_CASE("run: by its id, its beginning, its name or its folder, in any registry; what is no run is refused") {
  const TemporaryFolder folder;
  const std::string here = folder.file("here"), other = folder.file("other");
  const registry::Run one = registry::Run::create(here, "alpha", {}), two = registry::Run::create(other, "beta", {});
  for (const std::string& name :
       {one.id(), one.id().substr(0, 17), std::string("alpha"), one.folder(), one.folder() + "/"}) {
    const registry::Run found = run(name, here, "zs-runs of a run");
    CHECK(found.id() == one.id());
    CHECK(found.registry() == here);
  }
  CHECK(run(two.folder(), here, "zs-runs of a run").folder() == std::filesystem::canonical(two.folder()));
  const auto refusal_of = [&](const std::string& name) -> std::string {
    try {
      return run(name, here, "zs-runs of a run").id();
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(refusal_of("alpah") == "no run 'alpah', did you mean 'alpha'?");
  CHECK(refusal_of(here).find(": is a folder without anything that zs knows; zs-runs of a run takes runs") !=
        std::string::npos);
  std::filesystem::create_directories(folder.file("bare"));
  write_file(folder.file("bare/metrics.h5"), "");
  CHECK(refusal_of(folder.file("bare")) ==
        folder.file("bare") + ": is the folder of a run that no registry has: it has no record");
}

TEST_CASE("sources: in the order of the operands, the parts of a log where the first of them stands") {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (const char* const name : {"b.log.1", "a.log", "b.log"}) {
    names.push_back(folder.file(name));
    write_file(names.back(), kStep);
  }
  const auto found = jobs(named(names, "", "zs-parse"), "");
  REQUIRE(found.size() == 2);
  CHECK(found[0].run == "b");
  CHECK(found[0].logs.size() == 2);
  CHECK(found[1].run == "a");
  CHECK(jobs(named(names, "", "zs-parse"), "all").size() == 1);
}

TEST_CASE("sources: a folder that is empty, or cannot be listed, when it is read again is an error with its path") {
  const TemporaryFolder folder;
  const std::string empty = folder.file("empty"), loop = folder.file("loop");
  std::filesystem::create_directory(empty);
  std::filesystem::create_symlink("loop", loop);
  for (const Kind kind : {Kind::registry, Kind::results, Kind::trackers, Kind::logs, Kind::run}) {
    for (const std::string& path : {empty, loop}) {
      INFO(name(kind), " ", path);
      CHECK_THROWS_WITH(sources({{path, path, kind}}, Prefer::records), doctest::Contains(path.c_str()));
    }
  }
}

}  // namespace
}  // namespace zs::input
