// SPDX-License-Identifier: Apache-2.0
#include "recording/hang.hpp"

#include <doctest/doctest.h>

namespace zs::recording {
namespace {

Where at(int rank, const std::string& collective, const std::string& place) {
  Where where;
  where.rank = rank, where.collective = collective, where.place = place;
  return where;
}

TEST_CASE("a stack is told by the main thread's innermost line of the training's own, and by the collective above it") {
  Where where;
  read_stack(R"(Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait
  File "/usr/lib/python3.11/threading.py", line 982 in _bootstrap

Current thread 0x00007f2 (most recent call first):
  File "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3068 in all_reduce
  File "/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/home/me/train.py", line 57 in step
  File "/home/me/train.py", line 80 in <module>
)",
             where);
  CHECK(where.collective == "all_reduce");
  CHECK(where.place == "train.py:57 in step");
  read_stack(R"(Current thread 0x00007f2 (most recent call first):
  File "/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 841 in _engine_run_backward
  File "/venv/lib/python3.11/site-packages/torch/_tensor.py", line 630 in backward
  File "/home/me/train.py", line 9 in <module>
)",
             where);
  CHECK(where.collective == "backward");
  CHECK(where.place == "train.py:9");
  // DDP's buffers, at the beginning of a forward pass.
  read_stack(R"(Current thread 0x00007f2 (most recent call first):
  File "/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", line 2172 in _distributed_broadcast_coalesced
  File "/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py", line 2231 in _sync_buffers
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1779 in _wrapped_call_impl
  File "/home/me/train.py", line 80 in micro
  File "/home/me/train.py", line 201 in <module>
)",
             where);
  CHECK(where.collective == "broadcast");
  CHECK(where.place == "train.py:80 in micro");
  read_stack(R"(Current thread 0x00007f2 (most recent call first):
  File "/home/me/train.py", line 12 in load
  File "/home/me/train.py", line 20 in <module>
)",
             where);
  CHECK(where.collective.empty());
  CHECK(where.place == "train.py:12 in load");
}

TEST_CASE("the rank that is told is the one that the others wait for") {
  CHECK(
      explain(std::vector{at(0, "all_reduce", "t.py:9"), at(1, "", "t.py:4 in load"), at(2, "all_reduce", "t.py:9")}) ==
      "rank 1 is at t.py:4 in load, while ranks 0 and 2 wait in all_reduce at t.py:9");
  Where gone = at(1, "", ""), stopped = at(1, "", "");
  gone.gone = true, stopped.silent = true, stopped.state = 'T';
  CHECK(explain(std::vector{at(0, "backward", "t.py:9"), gone}) ==
        "rank 1 is gone: its process has ended, while rank 0 waits in backward at t.py:9");
  CHECK(explain(std::vector{at(0, "backward", "t.py:9"), stopped}) ==
        "rank 1 does not answer: it is stopped by a signal, while rank 0 waits in backward at t.py:9");
  CHECK(explain(std::vector{at(0, "", "t.py:4 in load"), stopped}) ==
        "rank 1 does not answer: it is stopped by a signal, while rank 0 is at t.py:4 in load");
  CHECK(explain(std::vector{at(0, "all_reduce", "t.py:9"), at(1, "broadcast", "t.py:7")}) ==
        "the ranks wait in different places: rank 0 in all_reduce at t.py:9, rank 1 in broadcast at t.py:7");
  CHECK(explain(std::vector{at(0, "all_reduce", "t.py:9"), at(1, "all_reduce", "t.py:9")}) ==
        "all ranks wait in all_reduce at t.py:9: none of them is behind the others");
  CHECK(explain({}) == "no rank reported its position");
}

}  // namespace
}  // namespace zs::recording
