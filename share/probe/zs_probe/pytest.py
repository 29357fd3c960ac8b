# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the fixture zs_golden records the training that a test makes, and compares it with the golden of that
test. pip install of the wheel of zs loads it; else: pytest -p zs_probe.pytest.

    def test_training(zs_golden):
        train(steps=4)

A golden is kept for each environment in goldens/MODULE/TEST/ beside the test. A test passes where the bits are those of the
golden, and where another environment (PyTorch, processor, kernels) explains the difference; it fails where the code does.
pytest --zs-update writes goldens and says what moved; it calls each test twice, to measure what rounding does to its training.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("zs")
    group.addoption("--zs-update", action="store_true", help="write the goldens of the tests that run, and say what moved")
    parser.addini("zs_goldens", "folder of the goldens, beside the test's file", default="goldens")


def pytest_configure(config):
    config._zs_said = []


def pytest_terminal_summary(terminalreporter, config):
    said = getattr(config, "_zs_said", [])
    if not said:
        return
    terminalreporter.section("goldens")
    for place, verdict, text in said:
        terminalreporter.line(f"{verdict}: {place}: {text}")
        if os.environ.get("GITHUB_ACTIONS") and verdict != "same":
            level = {"environment": "warning", "written": "notice"}.get(verdict, "error")
            terminalreporter.line(f"::{level} title=zs golden {place}::{text}")


def _tool():
    for folder in (None, sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        found = shutil.which("zs-verify", path=folder)
        if found:
            return found
    raise pytest.UsageError("zs_golden needs zs-verify on PATH: pip install the wheel of zs")


@pytest.fixture
def zs_golden(request, tmp_path, monkeypatch):
    """The test's training is recorded; at its end it is compared with its golden, or written where --zs-update is given."""
    from . import boot
    node, config = request.node, request.config
    module = os.path.splitext(os.path.basename(str(node.fspath)))[0]
    name = re.sub(r"[^\w.-]+", "_", node.name).strip("_")
    golden = os.path.join(os.path.dirname(str(node.fspath)), config.getini("zs_goldens"), module, name)
    recording = str(tmp_path / "recording")
    monkeypatch.setenv("ZS_PROBE", "golden:" + recording)
    from . import sketch
    monkeypatch.setattr(sketch, "SHORT", True)
    boot.activate()
    test = node.obj

    def recorded(folder, *args, **kwargs):
        __tracebackhide__ = True
        os.environ["ZS_PROBE"] = "golden:" + folder
        try:
            return test(*args, **kwargs)
        finally:
            _close()

    @functools.wraps(test)
    def compared(*args, **kwargs):
        __tracebackhide__ = True
        result = recorded(recording, *args, **kwargs)
        floor = None
        if config.getoption("--zs-update"):  # once more, from parameters moved by one unit in the last place
            floor = str(tmp_path / "floor")
            monkeypatch.setenv("ZS_PROBE_PERTURB", "1")
            recorded(floor, *args, **kwargs)
        _judge(node, config, golden, recording, floor)
        return result

    node.obj = compared
    yield recording
    _close()  # of a test that failed


def _close():
    attaching = sys.modules.get("zs_probe.attaching")
    for recorder in list(attaching.recorders) if attaching else ():
        recorder.close()
        attaching.recorders.remove(recorder)


def _judge(node, config, golden, recording, floor):
    __tracebackhide__ = True
    if not os.path.exists(os.path.join(recording, "rank-0.jsonl")):
        pytest.fail("zs_golden: nothing was recorded: no optimizer of torch stepped in this test", pytrace=False)
    update = config.getoption("--zs-update")
    words = [_tool(), "--golden", golden, recording, "--format", "json", *(["--update", "--floor", floor] if update else [])]
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        pytest.fail("zs_golden: " + (ended.stderr.strip() or f"zs-verify ended with {ended.returncode}"), pytrace=False)
    verdict, headline = answer["verdict"], answer.get("headline", "")
    told = headline + (f" ({answer['moved']})" if "moved" in answer else "")
    config._zs_said.append((node.nodeid, verdict, told))
    if ended.returncode == 0:
        return
    more = [f"{key}: {answer[key]}" for key in ("golden", "environment", "tensors", "comparison") if answer.get(key)]
    if verdict == "no golden":
        more = ["pytest --zs-update writes one"]
    elif verdict == "code":
        more.append("if it is meant: pytest --zs-update")
    pytest.fail("\n".join([f"zs_golden: {verdict}: {headline}", *more]), pytrace=False)
