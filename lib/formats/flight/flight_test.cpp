// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "base/folder.hpp"
#include "flight/dump.hpp"

namespace zs::flight {
namespace {

Collective collective(std::int64_t number, const std::string& name, bool completed, const std::string& sizes = "[8]") {
  return {number, name, sizes, "Float", "train.py:16 in step", completed};
}

/// Dumps of ranks 0, 1, ... of one group, with these collectives.
std::vector<Dump> dumps(const std::vector<std::vector<Collective>>& ranks) {
  std::vector<int> members;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) members.push_back(static_cast<int>(rank));
  std::vector<Dump> made;
  for (const int rank : members) {
    Dump& dump = made.emplace_back();
    dump.rank = rank;
    dump.groups["world"] = members;
    for (const Collective& each : ranks[static_cast<std::size_t>(rank)]) dump.collectives["world"][each.number] = each;
  }
  return made;
}

TEST_CASE("flight: equal and completed collectives are no hang") {
  const std::vector<Collective> rank = {collective(1, "all_reduce", true), collective(2, "broadcast", true)};
  const Finding finding = explain(dumps({rank, rank}));
  CHECK_FALSE(finding.stuck);
  CHECK(finding.sentence == "every rank entered the same collectives and completed them");
}

TEST_CASE("flight: a rank that did not enter a collective is named, with the last one that it entered") {
  const Finding finding = explain(dumps({{collective(1, "all_reduce", true), collective(2, "broadcast", false)},
                                         {collective(1, "all_reduce", true)},
                                         {collective(1, "all_reduce", true), collective(2, "broadcast", false)}}));
  CHECK(finding.stuck);
  CHECK(finding.sentence ==
        "rank 1 did not enter collective 2 of world, broadcast of [8] Float, in which ranks 0 and 2 wait at "
        "train.py:16 in step: its last is collective 1, all_reduce at train.py:16 in step");
}

TEST_CASE("flight: ranks in different collectives, or with different sizes, are named") {
  const Finding other = explain(dumps({{collective(1, "all_reduce", false)}, {collective(1, "broadcast", false)}}));
  CHECK(other.stuck);
  CHECK(other.sentence.starts_with("collective 1 of world is all_reduce at train.py:16 in step on rank 0, and "));
  const Finding size =
      explain(dumps({{collective(1, "all_reduce", false)}, {collective(1, "all_reduce", false, "[9]")}}));
  CHECK(size.stuck);
  CHECK(size.sentence.find("and of [9] Float") != std::string::npos);
  // The parts of an all-to-all may differ.
  CHECK_FALSE(explain(dumps({{collective(1, "all_to_all", true)}, {collective(1, "all_to_all", true, "[9]")}})).stuck);
}

TEST_CASE("flight: a collective that all ranks entered and none completed, and a rank without a dump") {
  const Finding none = explain(dumps({{collective(3, "all_reduce", false)}, {collective(3, "all_reduce", false)}}));
  CHECK(none.stuck);
  CHECK(none.sentence.find("and none completed it") != std::string::npos);
  std::vector<Dump> one = dumps({{collective(3, "all_reduce", false)}, {}});
  one.pop_back();
  CHECK(explain(one).sentence.starts_with("rank 1 left no dump, and rank 0 waits in collective 3 of world"));
}

TEST_CASE("flight: older entries that one rank has dropped are not compared") {
  CHECK_FALSE(explain(dumps({{collective(1, "broadcast", true), collective(2, "all_reduce", true)},
                             {collective(2, "all_reduce", true)}}))
                  .stuck);
}

TEST_CASE("flight: a dump in JSON has ranks, groups, collectives and the training's own line") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("dump_3")) << R"({"pg_config": {"0": {"desc": "dp", "ranks": "[1, 3]"}}, "entries": [
    {"is_p2p": true, "profiling_name": "nccl:send", "collective_seq_id": 9, "process_group": ["0", "dp"]},
    {"is_p2p": false, "profiling_name": "nccl:all_reduce", "collective_seq_id": 4, "process_group": ["0", "dp"],
     "input_sizes": [[2, 4]], "input_dtypes": ["Float"], "state": "completed", "frames": [
       {"filename": "/usr/lib/python3/site-packages/torch/a.py", "name": "all_reduce", "line": 1},
       {"filename": "/home/me/train.py", "name": "step", "line": 16}]}]})";
  const Dump dump = read_dump(folder.file("dump_3"));
  CHECK(dump.rank == 3);
  CHECK(dump.groups.at("dp") == std::vector<int>{1, 3});
  REQUIRE(dump.collectives.at("dp").size() == 1);
  const Collective& one = dump.collectives.at("dp").at(4);
  CHECK(one.name == "all_reduce");
  CHECK(one.sizes == "[2, 4]");
  CHECK(one.types == "Float");
  CHECK(one.place == "train.py:16 in step");
  CHECK(one.completed);
}

TEST_CASE("flight: files that are no dumps are faults, and a folder without dumps is an error") {
  const TemporaryFolder folder;
  std::vector<std::string> faults;
  const auto fault = [&](const Fault& one) { faults.push_back(one.what); };
  CHECK_THROWS_WITH(read_dumps(folder.path(), fault), doctest::Contains("holds no dump of the Flight Recorder"));
  std::ofstream(folder.file("dump_0")) << R"({"entries": []})";
  std::ofstream(folder.file("dump_1")) << R"({"entries": [)";
  std::ofstream(folder.file("dump_2")) << R"({"other": 1})";
  std::ofstream(folder.file("notes")) << "no rank at the end";
  CHECK(read_dumps(folder.path(), fault).size() == 1);
  REQUIRE(faults.size() == 2);
  std::sort(faults.begin(), faults.end());
  CHECK(faults[0] == folder.file("dump_1") + ": is not JSON: is it cut?");
  CHECK(faults[1] == folder.file("dump_2") + ": is not a dump of the Flight Recorder: it has no entries");
}

}  // namespace
}  // namespace zs::flight
