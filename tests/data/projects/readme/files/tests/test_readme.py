"""The README says what is so."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")


class Readme(unittest.TestCase):
    def test_commands_print_what_stands_below_them(self):
        found = re.findall(r"```console\n\$ (.*)\n((?:.*\n)*?)```", TEXT)
        self.assertTrue(found)
        for command, told in found:
            with self.subTest(command):
                done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual(told, done.stdout)

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\((.+?)\)", TEXT):
            with self.subTest(target):
                self.assertTrue((ROOT / target).is_file())
