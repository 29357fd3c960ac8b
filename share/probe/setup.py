# SPDX-License-Identifier: Apache-2.0
"""Puts zs_probe.pth beside the package, so that ZS_PROBE alone attaches the probe where it is installed."""
import os

from setuptools import setup
from setuptools.command.build_py import build_py


class WithPth(build_py):
    def run(self):
        super().run()
        self.copy_file("zs_probe.pth", os.path.join(self.build_lib, "zs_probe.pth"))


setup(cmdclass={"build_py": WithPth})
