"""run_blocks.py tells what is wrong with a document, and nothing of one that is right."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).with_name("run_blocks.py")
GOOD = """
<!-- sh run
greeting=hello
-->
```sh run
mkdir sub && cd sub
pwd >"$HOME/where"
echo "$greeting 17 times, $(basename "$HOME")"; echo more; echo end
```
```text output numbers
hello 3 times, …e
…
end
```
```sh
exit 3
```
```ini file=some/$greeting.conf
[device]
```
```sh run exit=4
grep -q device ../some/hello.conf
(exit 4)
true
```
```sh run needs=no-such-program
false
```
"""


class Documents(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "document.md"
            path.write_text(text)
            done = subprocess.run([sys.executable, RUNNER, path], env=os.environ | {"BUILD": folder}, capture_output=True,
                                  text=True, check=False, timeout=60)
            return done.returncode, done.stdout + done.stderr

    def test_a_good_one(self):
        status, said = self.run_on(GOOD)
        self.assertEqual(status, 0, said)
        self.assertIn("3 blocks ran, 1 left out", said)

    def test_what_is_wrong_is_told_with_its_line(self):
        for text, told in (("```sh run\ntrue\nfalse\ntrue\n```\n", "document.md:1: exit status 1: false"),
                           ("```sh run exit=2\ntrue\n```\n", "document.md:1: nothing failed"),
                           ("```sh run exit=2\n(exit 3)\n```\n", "document.md:1: exit status 3"),
                           ("```sh run\ntrue && false\n```\n", "document.md:1: exit status 1: true && false"),
                           ("```sh run\n! true\n```\n", "a command behind ! can never fail"),
                           ("\n```sh run\nexit 0\n```\n", "document.md:2: ended the shell, with 0"),
                           ("```sh run\necho a; echo b\n```\n```text output\na\n```\n", "document.md:4: prints otherwise"),
                           ("```sh run\necho a 1\n```\n```text output\na 2\n```\n", "+a 1"),
                           ("```sh run\necho a\n```\n```text output\na\nb\n```\n", "-b"),
                           ("```sh\ntrue\n```\n", "nothing in it is run")):
            status, said = self.run_on(text)
            self.assertEqual(status, 1, text)
            self.assertIn(told, said)


if __name__ == "__main__":
    unittest.main()
