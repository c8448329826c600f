"""No secret of a command line or of the environment is written anywhere: command_lines.txt has those of real programs."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

from harness import KERNELS, PROGRAMS, SPILL
from test_top import TopCase, descriptor

CORPUS = pathlib.Path(__file__).with_name("command_lines.txt")
MARK = re.compile("«(.*?)»", re.S)


def command_lines():
    """(arguments, secrets) of each command line."""
    text = re.sub(r"^#.*\n", "", CORPUS.read_text(encoding="utf-8"), flags=re.M)
    found, line = [], ""
    for part in text.splitlines(keepends=True):
        line += part
        if line.count("«") == line.count("»") and line.strip():
            marked = shlex.split(line)
            found.append(([MARK.sub(r"\1", word) for word in marked], MARK.findall(line)))
            line = ""
    return found


class CommandLines(TopCase):
    """The library alone: what its log shows of each command line."""

    def shown(self, arguments):
        self.log.unlink(missing_ok=True)
        self.good(self.run_in([str(PROGRAMS / "script"), KERNELS, "retain:0", "alloc:a:4m:1", "--", *arguments], self.environment()))
        args = self.all_lines()[0]["args"]
        return args[args.index("--") + 1:], self.log.read_text(encoding="utf-8")

    def test_each(self):
        lines = command_lines()
        self.assertGreater(len(lines), 100)
        self.assertGreater(sum(not secrets for _, secrets in lines), 10)
        for arguments, secrets in lines:
            with self.subTest(shlex.join(arguments)):
                args, log = self.shown(arguments)
                self.assertEqual(len(args), len(arguments))
                if not secrets:
                    self.assertEqual(args, arguments)
                for secret in secrets:
                    self.assertNotIn(secret, " ".join(args))
                    if len(secret) > 6:
                        self.assertNotIn(json.dumps(secret)[1:-1], log)
                # The program and its first option stay, so that the log still says what ran.
                self.assertEqual(args[0].split("=")[0], arguments[0].split("=")[0])


class Everywhere(TopCase):
    """One process with all of them, and with secrets in its environment: everything that is written of it, by the library and by the
    command."""

    # Long enough to be in no address and no time.
    SECRETS = sorted({secret for _, secrets in command_lines() for secret in secrets if len(secret) > 6} | {"hidden-in-environment"})

    def setUp(self):
        super().setUp()
        self.written = {}

    def keep(self, *command):
        done = subprocess.run([SPILL, *command], capture_output=True, timeout=60, check=False,
                              env=self.environment(preload=False, **self.environment_secrets()))
        self.written["spill " + " ".join(map(str, command))] = done.stdout + done.stderr
        return done

    @staticmethod
    def environment_secrets():
        """SPILL_… of a typo or of another program: the library names it."""
        secret = "hidden-in-environment"
        return {"HF_TOKEN": secret, "OPENAI_API_KEY": secret, "SPILL_API_KEY": secret, "SPILL_TOKEN": f"x={secret}",
                "SPILL_DEVICE_LIMT": "1GiB"}

    def test_nothing_is_written(self):
        arguments = [word for words, _ in command_lines() for word in words]
        metrics = self.folder / "metrics.prom"
        words = ["retain:0", "alloc:a:4m:5", "free:a", "alloc:b:20m", "PAUSE", "--", *arguments]
        running = self.start_with(words, SPILL_LOG_METRICS=metrics, SPILL_LOG_STDERR="all", **self.environment_secrets())
        self.reach(1)
        self.written["the page"] = pathlib.Path(descriptor(running.pid)).read_bytes()
        self.keep("top", "--once", "--json")
        self.keep("top", "--once")
        self.go(1)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, err)
        self.assertIn("SPILL_API_KEY", err)
        self.written |= {"stderr": err.encode(), "stdout": out.encode(), "metrics": metrics.read_bytes(), "log": self.log.read_bytes()}
        for command in (["log"], ["log", "--json"], ["report"], ["report", "--json"], ["report", "--summary"],
                        ["report", "--html", self.folder / "page.html"], ["replay", "--profile", "none"]):
            self.keep(*command, self.log)
        self.written["page.html"] = (self.folder / "page.html").read_bytes()
        for command in (["doctor", "-v", "--quick", "--", "sh", *arguments], ["policy"], ["policy", "--json"],
                        ["run", "--limit", "5GiB", "--", "true", *arguments]):
            self.keep(*command)
        self.assertIn(b"[redacted]", self.written["log"])
        self.assertIn(b"[redacted]", self.written["page.html"])
        for where, text in self.written.items():
            self.assertTrue(text or "run" in where, where)
            for secret in self.SECRETS:
                self.assertNotIn(secret.encode(), text, where)

    def start_with(self, words, **variables):
        """As start() does; the words may have blanks."""
        for name in ("1", "1.there"):
            os.mkfifo(self.pauses / name)
        words = [f"child:echo >{self.pauses}/1.there; read x <{self.pauses}/1" if word == "PAUSE" else word for word in words]
        running = subprocess.Popen([str(PROGRAMS / "script"), KERNELS, *words], env=self.environment(**variables), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, running)
        return running


if __name__ == "__main__":
    unittest.main(verbosity=2)
