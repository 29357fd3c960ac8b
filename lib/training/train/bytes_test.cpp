// SPDX-License-Identifier: Apache-2.0
// What a step costs beside its arithmetic: bytes sent and bytes kept, against the formulas of each stage, and against
// the plan's own account, buffer by buffer.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/folder.hpp"
#include "model/model.hpp"
#include "plan/memory.hpp"
#include "plan/profile.hpp"
#include "setup/covering_test.hpp"
#include "zero/accounting.hpp"

namespace zs {
namespace {

struct Cost {
  std::vector<std::int64_t> sent, between_nodes, kept;  // by rank
  double ideal_sent = 0, ideal_kept = 0, planned = 0;
  std::optional<double> ideal_between_nodes;
  std::int64_t parameters = 0, live = 0;  // of all units, and of one of each size: the pool keeps buffers by size
  std::int64_t largest = 0;               // unit
  std::int64_t first = 0;                 // unit
  std::int64_t offloaded = 0;
  std::int64_t collectives = 0, planned_collectives = 0, held = 0;  // of rank 0
};

// The formulas are sums over units: two blocks are as many of one size as it takes to use a buffer again.
model::Model tiny(const char* name = "tiny") { return model::make({.name = name, .num_layers = 2, .seq_length = 8}); }

Cost cost(int stage, int ranks, int micro_steps, at::ScalarType dtype, const zero::Offload& offload,
          const zero::ZeroPlusPlus& zeropp = {}, int ranks_of_host = 0, const zero::Strategy& more = {},
          const optimizer::Settings& optimizer = {}) {
  Cost cost;
  cost.sent.resize(static_cast<std::size_t>(ranks));
  cost.kept = cost.between_nodes = cost.sent;
  comm::run_in_process(
      ranks,
      [&](comm::Group& group) {
        const model::Model model = tiny();
        zero::Strategy strategy = more;
        strategy.stage = stage;
        strategy.micro_steps = micro_steps;
        zero::Engine engine(group, model.units, strategy,
                            {.optimizer = optimizer, .dtype = dtype, .offload = offload, .zeropp = zeropp});
        const at::Tensor tokens = at::arange(9).view({1, 9});
        const unit::Batch batch{tokens.narrow(1, 0, 8).contiguous(), tokens.narrow(1, 1, 8).contiguous()};
        zero::StepResult result;
        for (int step = 1; step <= 2; ++step) result = engine.step(step, 1e-3, [&](std::int64_t) { return batch; });
        const auto rank = static_cast<std::size_t>(group.rank());
        cost.sent[rank] = result.sent;
        cost.between_nodes[rank] = result.sent_between_nodes;
        cost.kept[rank] = zero::state_bytes(engine);
        if (rank != 0) return;
        cost.ideal_sent = zero::ideal_comm_bytes(engine);
        cost.ideal_between_nodes = zero::ideal_bytes_between_nodes(engine);
        cost.ideal_kept = zero::ideal_state_bytes(engine);
        cost.planned = plan::kept_bytes(engine.plan(), static_cast<int>(at::elementSize(dtype)));
        cost.parameters = unit::numel(model.units);
        std::set<std::int64_t> sizes;
        for (const auto& unit : model.units) sizes.insert(unit->numel());
        cost.largest = *sizes.rbegin();
        cost.first = model.units.front()->numel();
        const zero::Memory& memory = engine.memory();
        for (const auto* const store : {&memory.optimizer, &memory.parameters, &memory.inputs})
          cost.offloaded += *store ? (*store)->bytes() : 0;
        cost.collectives = result.collectives;
        cost.planned_collectives = plan::collectives(engine.plan());
        cost.held = result.held;
        cost.live = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
      },
      {.ranks_of_host = ranks_of_host});
  // Of Muon each rank keeps as many numbers as its slice has of them: the plan says the mean.
  if (optimizer.kind != optimizer::Kind::muon) CHECK(static_cast<double>(cost.kept[0]) == cost.planned);
  return cost;
}

/// The same of AdamW on the device, beside which others are compared: each is trained once.
const Cost& cost(int stage, int ranks, int micro_steps, at::ScalarType dtype = at::kFloat) {
  static std::map<std::tuple<int, int, int, at::ScalarType>, Cost> known;
  const auto [place, missing] = known.try_emplace({stage, ranks, micro_steps, dtype});
  if (missing) place->second = cost(stage, ranks, micro_steps, dtype, zero::Offload{});
  return place->second;
}

TEST_CASE("bytes: every rank sends what bandwidth-optimal collectives send, and not one more") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {2, 4, 8}) {
      for (const int micro_steps : {1, 4}) {
        CAPTURE(stage);
        CAPTURE(ranks);
        CAPTURE(micro_steps);
        const Cost c = cost(stage, ranks, micro_steps);
        for (const std::int64_t sent : c.sent) CHECK(static_cast<double>(sent) == c.ideal_sent);
        if (ranks == 8) continue;
        // Gradients of micro-batches and parameters travel in 16 bits; only sums are wider.
        const Cost narrow = cost(stage, ranks, micro_steps, at::kBFloat16);
        for (const std::int64_t sent : narrow.sent) CHECK(static_cast<double>(sent) == narrow.ideal_sent);
        if (stage >= 2) CHECK(narrow.ideal_sent == c.ideal_sent / 2);
      }
    }
  }
}

TEST_CASE("bytes: ranks that share sequences send queries, keys and values and what comes of them, both ways") {
  for (const auto& row : setup::covering({4, 3, 2})) {
    const int stage = row[0];
    const auto [ranks, sequence, chunks] =
        std::array{std::tuple{2, 2, 1}, std::tuple{4, 2, 2}, std::tuple{4, 4, 1}}.at(static_cast<std::size_t>(row[1]));
    const bool checkpointing = row[2] == 1;
    CAPTURE(stage);
    CAPTURE(sequence);
    CAPTURE(checkpointing);
    std::vector<std::int64_t> sent(static_cast<std::size_t>(ranks));
    double ideal = 0, exchanged = 0;
    comm::run_in_process(ranks, [&, ranks = ranks, sequence = sequence, chunks = chunks](comm::Group& group) {
      const model::Model model = tiny();
      zero::Strategy strategy{{.stage = stage, .micro_steps = 2}, checkpointing};
      strategy.sequence = sequence, strategy.chunks = sequence * chunks, strategy.tokens = 8;
      zero::Engine engine(group, model.units, strategy, {});
      const at::Tensor tokens = at::arange(9).view({1, 9});
      const unit::Batch batch{tokens.narrow(1, 0, 8).contiguous(), tokens.narrow(1, 1, 8).contiguous()};
      const std::int64_t total = std::int64_t{sequence} * chunks;
      zero::StepResult result;
      for (int step = 1; step <= 2; ++step)
        result = engine.step(step, 1e-3, [&](std::int64_t leaf) { return batch.chunk(leaf % total, total); });
      sent[static_cast<std::size_t>(group.rank())] = result.sent;
      if (group.rank() > 0) return;
      ideal = zero::ideal_comm_bytes(engine);
      // By hand: 2 blocks, 2 micro-steps, forward and backward (and forward again), 4 C numbers of 4 bytes a token.
      exchanged = 2.0 * 2 * (checkpointing ? 3 : 2) * 8 * 4 * static_cast<double>(model.width) * 4 / sequence *
                  (sequence - 1) / sequence;
      plan::Plan whole = plan::baseline(engine.plan().shape);
      for (plan::Unit& unit : whole.shape.units) unit.exchanged = 0;
      CHECK(ideal - plan::sent_bytes(whole, 4) == doctest::Approx(exchanged));
    });
    for (const std::int64_t bytes : sent) CHECK(static_cast<double>(bytes) == doctest::Approx(ideal));
  }
}

/// What each rank of `ranks` sends in a step, where `experts` of them divide those of tiny-mixtral; and what the plan
/// says of it, without and with the rows of tokens.
struct ExpertsSent {
  std::vector<std::int64_t> sent;
  double beside_rows = 0, planned = 0;
};
ExpertsSent experts_sent(int ranks, const zero::Strategy& strategy, const zero::Settings& settings) {
  ExpertsSent bytes{.sent = std::vector<std::int64_t>(static_cast<std::size_t>(ranks))};
  comm::run_in_process(ranks, [&](comm::Group& group) {
    const model::Model model = tiny("tiny-mixtral");
    zero::Engine engine(group, model.units, strategy, settings);
    const at::Tensor tokens = at::arange(9).view({1, 9});
    const unit::Batch batch{tokens.narrow(1, 0, 8).contiguous(), tokens.narrow(1, 1, 8).contiguous()};
    bytes.sent[static_cast<std::size_t>(group.rank())] = engine.step(1, 1e-3, [&](std::int64_t) { return batch; }).sent;
    if (group.rank() > 0) return;
    plan::Plan whole = engine.plan();
    bytes.planned = plan::sent_bytes(whole, 4);
    for (plan::Unit& unit : whole.shape.units) unit.exchanged = 0;
    bytes.beside_rows = plan::sent_bytes(whole, 4);
  });
  return bytes;
}

TEST_CASE("bytes: ranks that divide experts send the rows of others' experts; the plan has what balanced experts get") {
  // Tokens, experts of each, their numbers, layers.
  constexpr double T = 8, K = 2, C = 128, kLayers = 2;
  for (const auto& one : setup::covering({4, 2, 2})) {
    const int stage = one[0], experts = 2 << one[1];
    const bool checkpointing = one[2] == 1;
    CAPTURE(stage);
    CAPTURE(experts);
    CAPTURE(checkpointing);
    zero::Strategy strategy{{.stage = stage, .micro_steps = 2}, checkpointing};
    strategy.experts = experts, strategy.tokens = 8;
    const double passes = kLayers * 2 * (checkpointing ? 3 : 2), row = C * 4, N = experts;
    // All logits are 0: each token goes to experts 0 and 1, which are rank 0's of 2, and rank 0's and 1's of 4.
    zero::Settings to_first{};
    to_first.begin = [](std::size_t, std::int64_t, std::span<float> values) { std::ranges::fill(values, 0.0F); };
    const ExpertsSent first = experts_sent(4, strategy, to_first);
    CHECK(first.planned - first.beside_rows == doctest::Approx(passes * 2 * K * T * (N - 1) / N * row));
    for (int rank = 0; rank < 4; ++rank) {
      // Rows that leave, and results that go back; of 4, ranks 0 and 1 have one expert of each token.
      const double rows = experts == 2 ? K * T : rank < 2 ? T + 3 * T : 2 * T;
      CHECK(static_cast<double>(first.sent[static_cast<std::size_t>(rank)]) ==
            doctest::Approx(first.beside_rows + passes * rows * row));
    }
    // However the router sends them: the bounds of zs-train(1).
    const ExpertsSent any = experts_sent(4, strategy, {});
    double sum = 0;
    for (const std::int64_t bytes : any.sent) {
      const double rows = static_cast<double>(bytes) - any.beside_rows;
      CHECK(rows <= passes * N * K * T * row);
      sum += rows;
    }
    CHECK(sum > 0);
    CHECK(sum / 4 <= passes * 2 * K * T * row);
  }
}

TEST_CASE("bytes: every rank keeps what the formula says, and the buffers of one unit of each size") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int micro_steps : {1, 2, 4, 8}) {
        if (ranks * micro_steps > 16)
          continue;  // the terms below have met: ranks with micro-steps, each with the largest
        CAPTURE(stage);
        CAPTURE(ranks);
        CAPTURE(micro_steps);
        const Cost c = cost(stage, ranks, micro_steps);
        const std::int64_t shards = stage >= 2 ? ranks : 1;
        // Whole gradients are kept in stages 0 and 1, so one micro-step needs no buffer; gathered parameters are a
        // second one; before a shard is added it is received.
        std::int64_t floats = stage <= 1 && micro_steps == 1 ? 0 : c.live;
        if (stage >= 2 && ranks == 1 && micro_steps == 1) floats = 0;
        if (stage == 3 && ranks > 1) floats += c.live;
        if (stage >= 2 && ranks > 1 && micro_steps > 1) floats += c.live / ranks;
        // The tree of A leaves has log2(A) partial sums; the formula counts one.
        if (micro_steps > 2) floats += (std::bit_width(static_cast<unsigned>(micro_steps)) - 2) * c.parameters / shards;
        for (const std::int64_t kept : c.kept)
          CHECK(static_cast<double>(kept) == c.ideal_kept + 4.0 * static_cast<double>(floats));
      }
    }
  }
}

TEST_CASE(
    "bytes: on nodes, with a secondary partition and as integers, every rank sends what the formulas say by link") {
  struct Case {
    zero::ZeroPlusPlus zeropp;
    int ranks, node;
  };
  for (const auto& [zeropp, ranks, node] :
       {Case{{}, 4, 2}, Case{{2}, 4, 2}, Case{{4}, 8, 4}, Case{{2}, 8, 4}, Case{{4}, 8, 2}, Case{{0, true}, 4, 2},
        Case{{0, false, true}, 4, 2}, Case{{2, true, true}, 8, 2}}) {
    for (const int micro_steps : {1, 2}) {
      const at::ScalarType dtype = micro_steps == 1 ? at::kBFloat16 : at::kFloat;
      CAPTURE(zeropp.secondary);
      CAPTURE(ranks);
      CAPTURE(micro_steps);
      const Cost c = cost(3, ranks, micro_steps, dtype, {}, zeropp, node);
      REQUIRE(c.ideal_between_nodes.has_value());
      for (const std::int64_t sent : c.sent) CHECK(static_cast<double>(sent) == c.ideal_sent);
      for (const std::int64_t sent : c.between_nodes) CHECK(static_cast<double>(sent) == *c.ideal_between_nodes);
      CHECK(*c.ideal_between_nodes > 0);
      if (zeropp.secondary == 0 || zeropp.quantized_weights) continue;
      // The share of a rank is kept once more; gathered copies are as many.
      const Cost flat = cost(3, ranks, micro_steps, dtype);
      const auto again = static_cast<std::int64_t>(at::elementSize(dtype)) * c.parameters / zeropp.secondary;
      CHECK(c.ideal_kept == flat.ideal_kept + static_cast<double>(again));
      CHECK(c.kept[0] == flat.kept[0] + again);
    }
  }
  // Where ranks are dealt to nodes unevenly there is no formula, and it is not made up.
  CHECK_FALSE(cost(3, 4, 1, at::kFloat, {}, {}, 3).ideal_between_nodes.has_value());
}

TEST_CASE(
    "bytes: an optimizer keeps what its rule says, Muon sends directions to owners and back, and plans know of both") {
  using optimizer::Kind;
  struct Case {
    optimizer::Settings settings;
    std::int64_t kept;  // numbers of an element of a block's matrix
  };
  const std::vector<Case> kinds = {{{.kind = Kind::adamw}, 2},
                                   {{.kind = Kind::sgd}, 0},
                                   {{.kind = Kind::sgd, .momentum = 0.9}, 1},
                                   {{.kind = Kind::lion}, 1},
                                   {{.kind = Kind::muon, .momentum = 0.95}, 1}};
  for (const auto& row : setup::covering({5, 4, 3, 2})) {
    const auto& [settings, kept] = kinds[static_cast<std::size_t>(row[0])];
    const int stage = row[1], ranks = 1 << row[2];
    const at::ScalarType dtype = row[3] == 0 ? at::kFloat : at::kBFloat16;
    CAPTURE(optimizer::description(settings.kind).name);
    CAPTURE(settings.momentum);
    CAPTURE(stage);
    CAPTURE(ranks);
    CAPTURE(dtype);
    const Cost c = cost(stage, ranks, 1, dtype, {}, {}, 0, {}, settings), adamw = cost(stage, ranks, 1, dtype);
    const auto sum = [](const std::vector<std::int64_t>& of_ranks) {
      return static_cast<double>(std::accumulate(of_ranks.begin(), of_ranks.end(), std::int64_t{0}));
    };
    // Of Muon a rank has more of the matrices, or fewer.
    CHECK(sum(c.sent) == doctest::Approx(c.ideal_sent * ranks));
    CHECK(sum(c.kept) == c.planned * ranks);
    const bool muon = settings.kind == Kind::muon;
    for (const std::int64_t sent : c.sent) CHECK((muon || static_cast<double>(sent) == c.ideal_sent));
    if (ranks > 1) CHECK(c.collectives == c.planned_collectives);
    CHECK((c.ideal_sent > adamw.ideal_sent) == (muon && ranks > 1));
    const double less = static_cast<double>((2 - kept) * 4 * c.parameters) / (stage > 0 ? ranks : 1);
    if (!muon) CHECK(c.ideal_kept == adamw.ideal_kept - less);
    if (muon) CHECK(c.ideal_kept < adamw.ideal_kept);
    if (muon) CHECK(c.ideal_kept > adamw.ideal_kept - less);
  }
}

TEST_CASE("bytes: an evaluation gathers each unit once, and one without a training keeps parameters alone") {
  const TemporaryFolder folder;
  for (const int ranks : {2, 4}) {
    for (const zero::Place place : {zero::Place::device, zero::Place::disk}) {
      CAPTURE(ranks);
      std::int64_t parameters = 0;
      const auto evaluated = [&](int stage, bool trains) {
        std::pair<std::int64_t, std::int64_t> sent_and_kept;
        comm::run_in_process(ranks, [&](comm::Group& group) {
          const model::Model model = tiny();
          zero::Engine engine(group, model.units, {{.stage = stage}},
                              {.trains = trains, .offload = {place, {}, folder.path()}});
          const at::Tensor tokens = at::arange(9).view({1, 9});
          const unit::Batch batch{tokens.narrow(1, 0, 8).contiguous(), tokens.narrow(1, 1, 8).contiguous()};
          const std::int64_t kept = zero::state_bytes(engine), before = group.bytes_sent();
          engine.evaluate(ranks, [&](std::int64_t) { return batch; });
          if (group.rank() != 0) return;
          parameters = unit::numel(model.units);
          sent_and_kept = {group.bytes_sent() - before, kept};
        });
        return sent_and_kept;
      };
      const auto whole = evaluated(2, false), sharded = evaluated(3, false);
      CHECK(sharded.first - whole.first == 4 * parameters * (ranks - 1) / ranks);
      CHECK(whole.second == 4 * parameters);
      CHECK(sharded.second == 4 * parameters / ranks);
      CHECK(evaluated(3, true).first == sharded.first);
      if (place == zero::Place::device) CHECK(evaluated(3, true).second == 12 * parameters / ranks);
    }
  }
}

TEST_CASE("bytes: of a share that is offloaded the rest stays on the device, as the plan says, and no store has it") {
  const TemporaryFolder folder;
  for (const auto& row : setup::covering({2, 3, 3})) {
    const zero::Place place = row[0] == 0 ? zero::Place::host : zero::Place::disk;
    const int stage = 1 + row[1], ranks = 1 << row[2];
    CAPTURE(stage);
    CAPTURE(ranks);
    const Cost here = cost(stage, ranks, 2, at::kBFloat16);
    std::int64_t before = -1;
    for (const double ratio : {0.0, 0.3, 0.6, 1.0}) {
      CAPTURE(ratio);
      zero::Offload offload{place, zero::Place::device, folder.path()};
      offload.ratio = ratio;
      const Cost offloading = cost(stage, ranks, 2, at::kBFloat16, offload);
      CHECK(offloading.ideal_kept == here.ideal_kept - static_cast<double>(offloading.offloaded));
      CHECK(offloading.sent == here.sent);
      CHECK(offloading.offloaded > before);
      const double states = 12.0 * static_cast<double>(here.parameters) / ranks;
      CHECK(std::abs(static_cast<double>(offloading.offloaded) - ratio * states) <=
            12.0 * static_cast<double>(here.largest) / 2 / ranks);
      before = offloading.offloaded;
    }
    CHECK(before == 12 * here.parameters / ranks);
  }
}

TEST_CASE("bytes: what is offloaded leaves the device but for one block, the largest, and sends nothing more") {
  const TemporaryFolder folder;
  for (const auto& row : setup::covering({2, 2, 3, 3})) {
    const zero::Place place = row[0] == 0 ? zero::Place::host : zero::Place::disk;
    const at::ScalarType dtype = row[1] == 0 ? at::kFloat : at::kBFloat16;
    const std::int64_t wide = dtype == at::kFloat ? 8 : 12, narrow = dtype == at::kFloat ? 4 : 2;
    const int stage = 1 + row[2], ranks = 1 << row[3];
    CAPTURE(stage);
    CAPTURE(ranks);
    const Cost here = cost(stage, ranks, 2, dtype);
    const Cost state = cost(stage, ranks, 2, dtype, {place, zero::Place::device, folder.path()});
    CHECK(state.offloaded == wide * here.parameters / ranks);
    CHECK(state.ideal_kept == here.ideal_kept - static_cast<double>(state.offloaded));
    CHECK(state.sent == here.sent);
    CHECK(state.kept[0] == here.kept[0] - wide * (here.parameters - here.largest) / ranks);
    if (stage < 3) continue;
    const Cost both = cost(stage, ranks, 2, dtype, {place, place, folder.path()});
    CHECK(both.offloaded == (wide + narrow) * here.parameters / ranks);
    CHECK(both.ideal_kept == here.ideal_kept - static_cast<double>(both.offloaded));
    CHECK(both.sent == here.sent);
    // On one rank, too, parameters are gathered into a buffer now.
    const std::int64_t gathered = ranks == 1 ? narrow * here.live : 0;
    CHECK(both.kept[0] == state.kept[0] - narrow * (here.parameters - here.largest) / ranks + gathered);
  }
}

/// With passes over the plan, by what was measured of it.
Cost passed(int stage, int ranks, const std::vector<std::string>& passes, bool checkpointing = false,
            std::shared_ptr<const plan::Profile> profile = nullptr) {
  zero::Strategy strategy;
  strategy.passes = plan::from_the_start(passes);
  strategy.activation_checkpointing = checkpointing;
  strategy.budget.profile = std::move(profile);
  return cost(stage, ranks, 2, at::kFloat, {}, {}, 0, strategy);
}

TEST_CASE("bytes: a step has as many collectives as its plan, fewer where gathers begin together, and the same bytes") {
  // A gather that takes as long whatever it brings.
  auto profile = std::make_shared<plan::Profile>();
  const model::Model model = tiny();
  for (const auto& unit : model.units) {
    const int index = static_cast<int>(profile->shape.units.size());
    profile->shape.units.push_back({unit->name(), unit->numel(), unit->tied_to()});
    profile->timings.push_back({plan::Kind::gather, index, 1, 0});
    profile->timings.push_back({plan::Kind::gather_wait, index, 0, 0});
  }
  profile->shape.stage = 3;
  profile->shape.ranks = 2;
  for (const int stage : {1, 3}) {
    CAPTURE(stage);
    const Cost plain = passed(stage, 4, {}), alone = passed(stage, 4, {"prefetch"}),
               together = passed(stage, 4, {"prefetch"}, false, profile);
    for (const Cost* const one : {&plain, &alone, &together}) {
      CHECK(one->collectives == one->planned_collectives);
      CHECK(one->sent == plain.sent);
    }
    CHECK(alone.collectives == plain.collectives);
    CHECK(together.collectives < plain.collectives);
  }
}

TEST_CASE(
    "bytes: at the end of a step every rank knows the losses, what the rank that uses most uses, and who is to stop") {
  constexpr int kRanks = 4;
  std::array<zero::StepResult, kRanks> results;
  comm::run_in_process(kRanks, [&](comm::Group& group) {
    const model::Model model = tiny();
    zero::Engine engine(group, model.units, {{.stage = 1, .micro_steps = 2}}, {});
    const at::Tensor tokens = at::arange(9).view({1, 9});
    const auto batch = [&](std::int64_t leaf) {
      const at::Tensor window = tokens.add(leaf);
      return unit::Batch{window.narrow(1, 0, 8).contiguous(), window.narrow(1, 1, 8).contiguous()};
    };
    zero::StepResult& result = results.at(static_cast<std::size_t>(group.rank()));
    CHECK_FALSE(engine.step(1, 1e-3, batch).stop);
    engine.observe({.stop = [&] { return group.rank() == 2; }});
    result = engine.step(2, 1e-3, batch);
  });
  std::int64_t sent = 0;
  for (const zero::StepResult& result : results) sent = std::max(sent, result.sent);
  for (const zero::StepResult& result : results) {
    CHECK(result.stop);
    CHECK(result.most.sent == sent);
    CHECK(result.most.peak >= result.most.allocated);
    CHECK(result.leaf_losses == results[0].leaf_losses);
    CHECK(result.leaf_losses.size() == 2 * kRanks);
    CHECK(std::set<float>(result.leaf_losses.begin(), result.leaf_losses.end()).size() == 2 * kRanks);
  }
}

TEST_CASE("bytes: what passes move out is not in device memory while units compute, and is there between steps") {
  for (const int stage : {2, 3}) {
    for (const int ranks : {1, 2}) {
      CAPTURE(stage);
      CAPTURE(ranks);
      const Cost plain = passed(stage, ranks, {});
      const std::int64_t state = 8 * plain.parameters / ranks;
      CHECK(plain.held > state);
      for (const char* const name : {"offload_adam_states", "offload_adam_states_sync"}) {
        const Cost moved = passed(stage, ranks, {name});
        CHECK(moved.held == plain.held - state);
        CHECK(moved.offloaded == state);
        CHECK(moved.kept[0] == plain.kept[0]);
        CHECK(moved.sent == plain.sent);
      }
      if (stage < 3) continue;
      // The first forward comes before the shards of the other units have been used.
      const Cost shards = passed(stage, ranks, {"offload_parameters", "offload_adam_states"});
      CHECK(shards.held == 4 * (shards.parameters - shards.first) / ranks);
    }
  }
  const Cost kept = passed(1, 1, {}, true), moved = passed(1, 1, {"offload_activation"}, true);
  CHECK(kept.held > 8 * kept.parameters);
  CHECK(moved.held < kept.held);
  CHECK(moved.offloaded > 0);
}

}  // namespace
}  // namespace zs
