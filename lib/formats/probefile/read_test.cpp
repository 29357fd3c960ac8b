// SPDX-License-Identifier: Apache-2.0
#include "probefile/read.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "probefile/check.hpp"
#include "probefile/parse.hpp"

namespace zs::probefile {
namespace {

std::string head(int rank, int ranks) {
  return R"({"zs_probe": 2, "torch": "2", "world_size": )" + std::to_string(ranks) + R"(, "rank": )" +
         std::to_string(rank) +
         R"(, "id": "", "layout": "", "framework": "", "tied": {}, "frozen": [], "unseen": []})" + "\n";
}

std::string step(int number, const std::string& more = "") {
  return R"({"step": )" + std::to_string(number) +
         R"(, "loss": null, "losses": [], "groups": [], "batch": [], "locals": [], "values": null, "tensors": [])" +
         (more.empty() ? R"(, "scalars": {})" : ", " + more) + "}\n";
}

const char* const kBegun = "{\"start\": 0, \"counted\": null, \"tensors\": []}\n";

std::string end(int steps, int lines, const std::string& more = R"("every": 1, "since": 0, "how": "whole")") {
  return R"({"end": )" + std::to_string(steps) + R"(, "rank": 0, "lines": )" + std::to_string(lines) + ", " + more +
         "}\n";
}

/// The faults of a recording of one rank.
std::vector<std::string> faults(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder.file("rank-0.jsonl"), text);
  return read(folder.path()).faults;
}

bool says(const std::vector<std::string>& faults, const std::string& text) {
  for (const std::string& fault : faults) {
    if (fault.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("probefile: an axis has one size, and each rank a place of its own") {
  const auto told = [](const std::string& first, const std::string& second) {
    const TemporaryFolder folder;
    int rank = 0;
    for (const std::string& axes : {first, second}) {
      std::string text = head(rank, 2), last = end(1, 1);
      text.replace(text.find("\"unseen\""), 0, "\"axes\": " + axes + ", ");
      last.replace(last.find("\"rank\": 0") + 8, 1, std::to_string(rank));
      write_file(folder.file("rank-" + std::to_string(rank++) + ".jsonl"), text + kBegun + step(1) + last);
    }
    return read(folder.path()).faults;
  };
  const std::string two = R"({"data": [2, 0], "tensor": [1, 0]})", other = R"({"data": [2, 1], "tensor": [1, 0]})";
  CHECK_FALSE(says(told(two, other), "axes"));
  CHECK(says(told(two, two), "has rank 0's place on all axes of parallelism"));
  CHECK(says(told(two, R"({"data": [3, 1], "tensor": [1, 0]})"), "says 3 data ranks, a rank before 2"));
}

TEST_CASE("probefile: a tied parameter that two stages cut each by itself is one tensor, and its copies are compared") {
  struct Part {
    int begin, count, digest;
  };
  const auto recorded = [](const std::vector<Part>& parts) {
    const TemporaryFolder folder;
    for (int rank = 0; rank < 4; ++rank) {
      const std::string place = std::to_string(rank);
      std::string text = head(rank, 4), made = step(1), last = end(1, 1);
      text.replace(text.find("\"unseen\""), 0,
                   R"("axes": {"data": [2, )" + std::to_string(rank % 2) + R"(], "pipeline": [2, )" +
                       std::to_string(rank / 2) + "]}, ");
      last.replace(last.find("\"rank\": 0"), 9, "\"rank\": " + place);
      const auto& [begin, count, digest] = parts[static_cast<std::size_t>(rank)];
      made.replace(made.find("\"tensors\": []"), 13,
                   R"("tensors": [{"name": "param/w", "dtype": "F32", "of": 9, "shape": [9], "squares": 0, "begin": )" +
                       std::to_string(begin) + R"(, "count": )" + std::to_string(count) +
                       R"(, "digest": "000000000000000)" + std::to_string(digest) + R"(", "sketch": ")" +
                       std::string(86, 'A') + R"(=="}])");
      write_file(folder.file("rank-" + place + ".jsonl"), text + kBegun + made + last);
    }
    return read(folder.path());
  };
  const Run same = recorded({{0, 6, 3}, {6, 3, 4}, {0, 2, 1}, {2, 7, 6}});
  CHECK(same.faults.empty());
  CHECK(same.steps.at(1).tensors.find("param/w")->copies == 2);
  CHECK(same.steps.at(1).tensors.find("param/w")->digest == 7);
  CHECK(recorded({{0, 9, 7}, {0, 0, 0}, {0, 2, 1}, {2, 7, 6}}).faults.empty());
  CHECK(recorded({{0, 9, 7}, {0, 0, 0}, {0, 9, 7}, {0, 0, 0}}).faults.empty());  // it ends where a share ends
  const Run other = recorded({{0, 6, 3}, {6, 3, 4}, {0, 2, 1}, {2, 7, 5}});
  CHECK(says(other.faults, "step 1: param/w differs between rank 0 and rank 2"));
  CHECK(other.replicas.contains({1, "param/w"}));
  CHECK(says(recorded({{0, 6, 3}, {6, 3, 4}, {0, 2, 1}, {0, 0, 0}}).faults,
             "step 1: of param/w 2 of 9 elements are there in stage 1"));
  CHECK_THROWS_WITH_AS(recorded({{0, 6, 3}, {5, 4, 4}, {0, 2, 1}, {2, 7, 6}}), doctest::Contains("overlap"), Error);
}

TEST_CASE("probefile: ranks of one share that compute other gradients have a term of a sum each") {
  const auto recorded = [](const std::string& other) {  // a sketch, the first sum of which is not 0
    const TemporaryFolder folder;
    for (int rank = 0; rank < 2; ++rank) {
      std::string made = step(1), last = end(1, 1);
      last.replace(last.find("\"rank\": 0"), 9, "\"rank\": " + std::to_string(rank));
      made.replace(
          made.find("\"locals\": []"), 12,
          R"("locals": [{"name": "w", "micro": 0, "by": 0, "dtype": "F32", "of": 9, "shape": [9], "squares": 1, )"
          R"("begin": 0, "count": 9, "digest": "000000000000000)" +
              std::to_string(rank) + R"(", "sketch": ")" + (rank == 0 ? "AAAAAAAA8D8" + std::string(75, 'A') : other) +
              R"(=="}])");
      write_file(folder.file("rank-" + std::to_string(rank) + ".jsonl"), head(rank, 2) + kBegun + made + last);
    }
    return read(folder.path());
  };
  const Run terms = recorded("AAAAAAAAAAAAAAAAAADwPw" + std::string(64, 'A'));
  CHECK(terms.steps.at(1).locals.size() == 2);
  CHECK(terms.steps.at(1).locals.contains({2, 0}));
  CHECK(terms.faults.empty());
  const Run rounded = recorded("+n5qvHQE8D8" + std::string(75, 'A'));
  CHECK(rounded.steps.at(1).locals.size() == 1);
  CHECK(says(rounded.faults, "step 1, micro-batch 0: w differs between rank 0 and rank 1"));
}

TEST_CASE(
    "probefile: a stage that counts its layers by itself has parameters of its own, and one that is tied has not") {
  const auto recorded = [](const std::string& names_of_1) {  // one digit each
    const TemporaryFolder folder;
    for (int rank = 0; rank < 2; ++rank) {
      const std::string place = std::to_string(rank);
      std::string text = head(rank, 2), begun = kBegun, last = end(1, 1), rows;
      text.replace(text.find("\"unseen\""), 0, R"("axes": {"pipeline": [2, )" + place + "]}, ");
      for (const char name : rank == 0 ? std::string("012") : names_of_1)
        rows +=
            (rows.empty() ? "" : ", ") + (R"({"name": "param/)" + std::string(1, name)) +
            R"(", "dtype": "F32", "of": 9, "shape": [9], "squares": 0, "begin": 0, "count": 9, "digest": "00000000000000)" +
            (name == '1' || name == '2' ? "01" : place + "2") + R"(", "sketch": ")" + std::string(86, 'A') + R"(=="})";
      begun.replace(begun.find("\"tensors\": []"), 13, "\"tensors\": [" + rows + "]");
      last.replace(last.find("\"rank\": 0"), 9, "\"rank\": " + place);
      write_file(folder.file("rank-" + place + ".jsonl"), text + begun + step(1) + last);
    }
    return read(folder.path());
  };
  const Run alike = recorded("01");                           // 1 has the same numbers in both, as a norm's
  CHECK(recorded("12").starts.at(0).find("param/stage1.2"));  // from one seed
  CHECK(recorded("2").replicas.empty());
  CHECK(recorded("2").starts.at(0).find("param/2")->copies == 1);
  CHECK(alike.replicas.empty());
  for (const char* const name : {"param/0", "param/1", "param/stage1.0", "param/stage1.1"})
    CHECK(alike.starts.at(0).find(name));
  CHECK(recorded("0345").replicas.size() == 1);
  CHECK(recorded("0").replicas.size() == 1);  // a stage that has the tied one alone
}

TEST_CASE("probefile: a norm whose ranks have a share each is joined, in whatever order they are read") {
  const TemporaryFolder folder;
  const char* const shares[] = {"9", "16", "144"};
  for (int rank = 0; rank < 3; ++rank)
    write_file(folder.file("rank-" + std::to_string(rank) + ".jsonl"),
               head(rank, 3) + kBegun +
                   step(1, R"("scalars": {"clip": 0.5, "norm_squares": )" + std::string(shares[rank]) + "}"));
  const Run run = read(folder.path());
  REQUIRE(run.steps.contains(1));
  CHECK(run.steps.at(1).scalars.at("norm") == doctest::Approx(13));
  CHECK(run.steps.at(1).scalars.at("clip") == 0.5);
}

TEST_CASE(
    "probefile: a whole recording has no fault; no end, an end by an exception, lost and unordered steps are faults") {
  CHECK(faults(head(0, 1) + kBegun + step(1) + step(2) + end(2, 2)).empty());
  CHECK(says(faults(head(0, 1) + kBegun + step(1)), "rank-0.jsonl:3: is the last line, and no end"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + R"({"step": 2)"), "rank-0.jsonl:4: is cut"));
  CHECK(says(faults(head(0, 1) + step(1) + end(1, 1)), "has no start"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + step(3) + end(3, 2)), "lacks step 2"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + step(2) + end(3, 2)), "lacks step 3"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + end(1, 2)), "has 1 steps of 2 that were written"));
  CHECK(says(faults(head(0, 1) + kBegun + step(2) + step(1) + end(2, 2)), "step 1 comes after step 2"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + step(1) + end(1, 1)), "step 1 is there twice"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + end(1, 1, R"("every": 1, "since": 0, "how": "exception E: boom")")),
             "after 1 steps: exception E: boom"));
}

TEST_CASE(
    "probefile: what moves a parameter is the same on all ranks, and is listed by the rank that has its gradient") {
  const auto moved = [](const std::string& by, const std::string& params) {
    return R"("scalars": {}, "groups": [{"lr": 0.5, "optimizer": ")" + by + R"(", "params": [)" + params + "]}]";
  };
  const auto two = [&](const std::string& first, const std::string& second) {
    const TemporaryFolder folder;
    std::string last = end(1, 1);
    write_file(folder.file("rank-0.jsonl"), head(0, 2) + kBegun + step(1, first) + last);
    last.replace(last.find("\"rank\": 0"), 9, "\"rank\": 1");
    write_file(folder.file("rank-1.jsonl"), head(1, 2) + kBegun + step(1, second) + last);
    return read(folder.path()).faults;
  };
  CHECK(two(moved("AdamW", "\"w\""), moved("AdamW", "\"w\"")).empty());
  CHECK(says(two(moved("AdamW", "\"w\""), moved("SGD", "\"w\"")), "rank 1 updates w by SGD, rank 0 by AdamW"));
  std::string line = step(1, moved("AdamW", "\"w\""));
  const std::string tensor =
      R"("tensors": [{"name": "grad/b", "dtype": "F32", "of": 0, "shape": [0], "begin": 0, "count": 0, "digest": "0000000000000000", "squares": 0, "sketch": ")" +
      std::string(86, 'A') + R"(=="}])";
  line.replace(line.find("\"tensors\": []"), 13, tensor);
  CHECK_THROWS_WITH_AS(faults(head(0, 1) + kBegun + line + end(1, 1)),
                       doctest::Contains("grad/b is there, and no group"), Error);
}

TEST_CASE("probefile: a stride leaves out steps that are not due, a step that is due is missed, another is too many") {
  const std::string stride = R"("every": 3, "since": 2, "how": "whole")";
  CHECK(faults(head(0, 1) + kBegun + step(1) + step(2) + step(3) + step(6) + end(6, 4, stride)).empty());
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + step(2) + step(6) + end(6, 3, stride)), "lacks step 3"));
  CHECK(says(faults(head(0, 1) + kBegun + step(1) + step(2) + step(3) + step(4) + step(6) + end(6, 5, stride)),
             "has step 4"));
  Part part;
  CHECK(due(part, 5));  // nothing says its stride
  part.end = EndRow();
  part.end->every = 4, part.end->since = 3;
  CHECK(due(part, 3));
  CHECK_FALSE(due(part, 5));
  CHECK(due(part, 8));
}

TEST_CASE(
    "probefile: a row has the fields of its list: none that is unknown, none that lacks, numbers where they belong") {
  CHECK(std::holds_alternative<HeadRow>(parse(head(0, 1))));
  CHECK_THROWS_WITH_AS(parse(step(1, R"("scalars": {}, "more": 1)")), doctest::Contains("has 'more'"), Error);
  CHECK_THROWS_WITH_AS(parse(R"({"step": 1, "tensors": []})"), doctest::Contains("lacks 'loss'"), Error);
  CHECK_THROWS_WITH_AS(parse(step(1, R"("scalars": {"norm": true})")), doctest::Contains("is no line"), Error);
  CHECK_THROWS_AS(parse(R"({"start": 9223372036854775808, "tensors": []})"), Error);
  const auto row = std::get<StepRow>(parse(step(
      1,
      R"("scalars": {"norm": "nan"}, "groups": [{"lr": 0.5, "betas": [0.9, 0.99], "amsgrad": true, "way": null, "params": ["w"]}])")));
  CHECK(std::isnan(row.scalars.at("norm").value));
}

TEST_CASE("probefile: files of ranks that the training does not have, and what was refused beside the record") {
  const TemporaryFolder folder;
  write_file(folder.file("rank-0.jsonl"), head(0, 1) + kBegun + step(1) + end(1, 1));
  write_file(folder.file("rank-0.refused"), "another training");
  CHECK(read(folder.path()).unseen.size() == 1);
  write_file(folder.file("rank-1.jsonl"), head(1, 2));
  CHECK_THROWS_WITH_AS(read(folder.path()), doctest::Contains("rank-1.jsonl: is there, and the training has 1 rank"),
                       Error);
}

TEST_CASE("probefile: a recording that grows: a line that is cut waits, and a step counts when all ranks have it") {
  const TemporaryFolder folder;
  const std::string first = folder.file("rank-0.jsonl"), second = folder.file("rank-1.jsonl");
  write_file(first, head(0, 2) + kBegun + step(1) + R"({"step": 2)");
  write_file(second, head(1, 2) + kBegun);
  Growing growing(folder.path());
  CHECK(growing.read().steps.empty());
  write_file(second, head(1, 2) + kBegun + step(1));
  CHECK(growing.read().steps.size() == 1);
  CHECK(growing.read().faults.empty());
  growing.settle();
  CHECK(says(growing.read().faults, "is cut"));
}

}  // namespace zs::probefile
