// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a small model: written, read by other ranks and stages, damaged in each way that a disk or a user can.
#include "checkpoint/checkpoint.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoints/sums.hpp"
#include "device/tensor.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

constexpr int kLeaves = 4;

/// x W + b, and as the last unit the mean square of its distance from the targets.
class Linear final : public unit::Unit {
 public:
  Linear(const std::string& name, std::int64_t from, std::int64_t to, bool last)
      : unit::Unit(name, {{name + ".weight", {from, to}, unit::Parameter::Init::normal, 0, 0.5},
                          {name + ".bias", {to}, unit::Parameter::Init::zeros}}),
        last_(last) {}
  at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> owned, std::span<const at::Tensor>,
                     const unit::ForwardContext& context) const override {
    const at::Tensor y = (x.defined() ? x : context.batch.inputs).matmul(owned[0]).add(owned[1]);
    return last_ ? y.sub(context.batch.targets).square().mean() : y;
  }

 private:
  bool last_;
};

unit::Units model(std::int64_t width = 7) {
  unit::Units units;
  units.push_back(std::make_unique<Linear>("first", 5, width, false));
  units.push_back(std::make_unique<Linear>("second", width, 3, true));
  return units;
}

unit::Batch batch(std::int64_t step, std::int64_t leaf) {
  const auto values = [&](std::int64_t columns, double phase) {
    const at::Tensor i = at::arange(2 * columns, at::kDouble);
    return at::sin(i.mul(1.7).add(static_cast<double>(10 * step + leaf) + phase)).to(at::kFloat).view({2, columns});
  };
  return {values(5, 0), values(3, 0.5)};
}

struct Layout {
  int stage = 0, ranks = 1;
};

/// Calls `body` on each rank with an engine of its own, whose parameters follow from the seed.
void with_engine(const Layout& layout, const std::function<void(comm::Group&, zero::Engine&)>& body,
                 std::uint64_t seed = 1, std::int64_t width = 7) {
  comm::run_in_process(layout.ranks, [&](comm::Group& group) {
    const unit::Units units = model(width);
    zero::Engine engine(group, units, {{.stage = layout.stage, .micro_steps = kLeaves / layout.ranks}}, {.seed = seed});
    body(group, engine);
  });
}

void train(zero::Engine& engine, std::int64_t from, std::int64_t to) {
  for (std::int64_t step = from; step <= to; ++step)
    engine.step(step, 0.1, [step](std::int64_t leaf) { return batch(step, leaf); });
}

Progress progress(std::int64_t step) {
  return {.step = step,
          .leaves = kLeaves,
          .batch_size = 2,
          .seq_length = 1,
          .seed = 1,
          .sampler_position = step * 2 * kLeaves,
          .learning_rate = 0.1,
          .dataset_sha256 = "d5"};
}

/// Two steps in that layout, saved.
void save(const Layout& layout, const std::string& folder) {
  with_engine(layout, [&](comm::Group& group, zero::Engine& engine) {
    train(engine, 1, 2);
    Writer(group, engine, folder, {"{}"}).commit(progress(2));
  });
}

/// The digest after `to` steps, of which those behind `folder`'s are trained, or all where it is "".
std::string digest_after(std::int64_t to, const Layout& layout, const std::string& folder = "") {
  std::string digest;
  with_engine(
      layout,
      [&](comm::Group& group, zero::Engine& engine) {
        const auto done = folder.empty() ? std::nullopt : load(group, engine, folder);
        train(engine, done ? done->step + 1 : 1, to);
        const std::string found = engine.digest();
        if (group.rank() == 0) digest = found;
      },
      folder.empty() ? 1 : 2);  // other parameters to begin with, which the checkpoint replaces
  return digest;
}

/// What loading says, "" if it loads.
std::string refused(const std::string& folder, const Layout& layout = {}, std::int64_t width = 7) {
  std::string said;
  try {
    with_engine(
        layout, [&](comm::Group& group, zero::Engine& engine) { load(group, engine, folder); }, 1, width);
  } catch (const Error& error) {
    said = error.what();
  }
  return said;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void write_sums(const std::string& folder) {
  std::string sums;
  for (const std::string& file : checkpoints::files(folder)) {
    if (file != "SHA256SUMS") sums += sha256(Input(folder + "/" + file).read_all()) + "  " + file + "\n";
  }
  write_file(folder + "/SHA256SUMS", sums);
}

TEST_CASE("checkpoint: it is written whole: every file with its checksum, and nothing beside it") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2");
  save({2, 2}, folder);
  CHECK(checkpoints::files(folder) == Names{"SHA256SUMS", "accelerator_states/optimizer_00000.pt",
                                            "accelerator_states/optimizer_00001.pt", "accelerator_states/state.json",
                                            "config.json", "pytorch_model.bin"});
  const auto sums = checkpoints::read_sums(folder);
  CHECK(sums.size() == 5);
  for (const auto& [file, digest] : sums) CHECK_NOTHROW(checkpoints::require_sum(folder, file, digest));
  CHECK(std::distance(fs::directory_iterator(run.path()), {}) == 1);
}

TEST_CASE("checkpoint: what is read is what was written: parameters, progress, counters") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2");
  save({0, 1}, folder);
  with_engine(
      {0, 1},
      [&](comm::Group& group, zero::Engine& engine) {
        const auto read = load(group, engine, folder);
        REQUIRE(read);
        CHECK(read->step == 2);
        CHECK(read->leaves == kLeaves);
        CHECK(read->batch_size == 2);
        CHECK(read->sampler_position == 16);
        CHECK(read->learning_rate == 0.1);
        CHECK(read->dataset_sha256 == "d5");
        CHECK(engine.updates() == 2);
      },
      2);
  CHECK(digest_after(2, {0, 1}, folder) == digest_after(2, {0, 1}));
  CHECK(digest_after(2, {0, 1}) != digest_after(3, {0, 1}));
}

TEST_CASE("checkpoint: any stage and number of ranks goes on from it with the bits of the undisturbed training") {
  const std::string undisturbed = digest_after(4, {0, 1});
  for (const Layout& wrote : {Layout{0, 1}, Layout{1, 2}, Layout{2, 2}, Layout{3, 4}}) {
    const TemporaryFolder run;
    const std::string folder = run.file("checkpoint_2");
    save(wrote, folder);
    for (const int stage : {0, 1, 2, 3}) {
      for (const int ranks : {1, 2, 4}) {
        CAPTURE(wrote.stage);
        CAPTURE(stage);
        CAPTURE(ranks);
        CHECK(digest_after(4, {stage, ranks}, folder) == undisturbed);
      }
    }
  }
}

TEST_CASE("checkpoint: the gradients in it are the mean gradient of its step") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_1");
  at::Tensor expected;
  for (const int ranks : {1, 2}) {
    with_engine({ranks == 1 ? 0 : 3, ranks}, [&](comm::Group& group, zero::Engine& engine) {
      Writer writer(group, engine, folder, {"{}"});
      engine.observe({.reduced = [&] {
        const at::Tensor whole = engine.states()[1].gather_gradient().mul(engine.gradient_scale());
        if (ranks == 1) expected = whole.narrow(0, 0, 21);
        writer.gradients();
      }});
      train(engine, 1, 1);
      writer.commit(progress(1));
    });
    const tensorfile::Value root = tensorfile::read_torch(folder + "/gradients.pt");
    const tensorfile::Tensor* const tensor = root.find("second.weight")->get<tensorfile::Tensor>();
    REQUIRE(tensor);
    std::vector<float> values(21);
    tensorfile::read_f32(*tensor, values);
    CHECK(std::equal(values.begin(), values.end(), device::floats(expected.contiguous()).begin()));
    CHECK(expected.abs().max().item<float>() > 0);
  }
}

TEST_CASE("checkpoint: a file that is cut short or has one byte changed is named") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2");
  save({1, 2}, folder);
  for (const std::string& file : checkpoints::files(folder)) {
    if (file == "SHA256SUMS") continue;
    const std::string path = folder + "/" + file, content = Input(path).read_all();
    std::string changed = content;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    for (const std::string& torn : {content.substr(0, content.size() / 2), changed}) {
      write_file(path, torn);
      for (const int ranks : {1, 2}) {
        const std::string said = refused(folder, {1, ranks});
        CAPTURE(said);
        CHECK(has(said, path + ": does not have the checksum that SHA256SUMS gives"));
      }
    }
    write_file(path, content);
  }
  CHECK(refused(folder).empty());
}

TEST_CASE("checkpoint: a rank's file that is missing, or there twice, is told, listed or not") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2"), states = folder + "/accelerator_states";
  save({2, 2}, folder);
  const std::string second = states + "/optimizer_00001.pt";
  fs::rename(second, run.file("aside"));
  CHECK(has(refused(folder), second));
  write_sums(folder);
  CHECK(has(refused(folder, {3, 2}), "is not complete: a rank's file is missing"));
  fs::copy_file(states + "/optimizer_00000.pt", second);
  write_sums(folder);
  CHECK(has(refused(folder), "two files have the optimizer state of the same elements of first.weight"));
  fs::remove(second), fs::rename(run.file("aside"), second);
  write_sums(folder);
  CHECK(refused(folder).empty());
}

TEST_CASE("checkpoint: a list of checksums that is missing, torn or not whole is no list") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2"), sums = folder + "/SHA256SUMS";
  save({0, 1}, folder);
  const std::string content = Input(sums).read_all();
  write_file(folder + "/README.md", "mine");  // no file that anyone reads as the checkpoint's
  CHECK(refused(folder).empty());
  write_file(folder + "/model.safetensors", "mine");
  CHECK(has(refused(folder), sums + ": does not list model.safetensors"));
  fs::remove(folder + "/model.safetensors");
  write_file(sums, content + content);
  CHECK(has(refused(folder), ":5: lists accelerator_states/optimizer_00000.pt a second time"));
  write_file(sums, content.substr(0, content.size() - 20));
  CHECK(has(refused(folder), "SHA256SUMS:4: "));
  fs::remove(sums);
  CHECK(has(refused(folder), sums));
}

TEST_CASE("checkpoint: state.json: each number has its range, and each error its place") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2"), path = folder + "/accelerator_states/state.json";
  save({0, 1}, folder);
  const std::string content = Input(path).read_all();
  struct Change {
    std::string from, to, says;
  };
  for (const Change& change :
       {Change{"\"step\": 2", "\"step\": 0", "step is 0, expected a whole number from 1 to "},
        Change{"\"step\": 2", "\"step\": \"2\"", "step is \"2\", expected a whole number"},
        Change{"\"step\": 2", "\"steps\": 2", "has no step"},
        Change{"\"leaves\": 4", "\"leaves\": 1e99", "leaves is 1e+99, expected a whole number"},
        Change{"\"position\": 16", "\"position\": -1", "sampler/position is -1, expected"},
        Change{"\"learning_rate\": 0.1", "\"learning_rate\": null", "learning_rate is null, expected a number"},
        Change{"zs-checkpoint 1", "zs-checkpoint 2", "is of another format than this zs reads"},
        Change{"{", "[", "parse error"}}) {
    CAPTURE(change.to);
    std::string text = content;
    const std::size_t at = text.find(change.from);
    REQUIRE(at != std::string::npos);
    write_file(path, text.replace(at, change.from.size(), change.to));
    std::string said;
    try {
      peek(folder);
    } catch (const Error& error) {
      said = error.what();
    }
    CAPTURE(said);
    CHECK(said.starts_with(path + ": "));
    CHECK(has(said, change.says));
  }
  CHECK_THROWS_WITH_AS(peek(run.file("none")), (run.file("none") + ": there is no such checkpoint").c_str(), Error);
}

TEST_CASE("checkpoint: weights of another model are refused, and weights alone are parameters without progress") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2");
  save({0, 1}, folder);
  CHECK(has(refused(folder, {}, 8), "it is a checkpoint of another model"));
  fs::remove_all(folder + "/accelerator_states");
  CHECK(has(refused(folder), "is missing, and SHA256SUMS lists it"));
  fs::remove(folder + "/SHA256SUMS");
  CHECK_FALSE(peek(folder));
  CHECK(digest_after(0, {3, 2}, folder) == digest_after(2, {0, 1}));
}

TEST_CASE("checkpoint: a writer that is dropped leaves nothing; one of the same name replaces the whole folder") {
  const TemporaryFolder run;
  const std::string folder = run.file("checkpoint_2");
  with_engine({0, 2},
              [&](comm::Group& group, zero::Engine& engine) { const Writer writer(group, engine, folder, {"{}"}); });
  CHECK(fs::is_empty(run.path()));
  save({2, 4}, folder);
  CHECK(fs::exists(folder + "/accelerator_states/optimizer_00003.pt"));
  save({1, 1}, folder);
  CHECK_FALSE(fs::exists(folder + "/accelerator_states/optimizer_00003.pt"));
  CHECK(refused(folder).empty());
  CHECK(std::distance(fs::directory_iterator(run.path()), {}) == 1);
}

TEST_CASE("checkpoint: the newest of a run, what is pruned, and what killed writers left") {
  const TemporaryFolder run;
  for (const char* const name : {"checkpoint_9", "checkpoint_10", "checkpoint_x", ".removed_3",
                                 ".checkpoint_11.tmp.host-1", ".checkpoint_9.old", ".checkpoint_8.old"})
    fs::create_directory(run.file(name));
  write_file(run.file("checkpoint_12"), "a file");
  CHECK(steps(run.path()) == std::vector<std::int64_t>{9, 10});
  CHECK(latest(run.path()) == run.file("checkpoint_10"));
  remove_leftovers(run.path());  // checkpoint_8 was about to be replaced: it comes back
  CHECK(steps(run.path()) == std::vector<std::int64_t>{8, 9, 10});
  for (const char* const name : {".removed_3", ".checkpoint_11.tmp.host-1", ".checkpoint_9.old", ".checkpoint_8.old"})
    CHECK_FALSE(fs::exists(run.file(name)));
  prune(run.path(), 1);
  CHECK(steps(run.path()) == std::vector<std::int64_t>{10});
  save({0, 1}, run.file("final_checkpoint"));  // after 2 steps: an older training's
  CHECK(latest(run.path()) == run.file("checkpoint_10"));
  prune(run.path(), 0);
  CHECK(latest(run.path()) == run.file("final_checkpoint"));
}

}  // namespace
}  // namespace zs::checkpoint
