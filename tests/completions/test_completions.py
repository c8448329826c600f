"""What bash, zsh and fish offer, asked of the shells themselves: each command, option and kind of word of src/cli/base/commands.def.

usage: test_completions.py Bash|Fish|Zsh
meson gives FILES (the folder of the three files), TABLE (commands.def) and STATIC (the folder of commands_table.py).
"""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.environ["STATIC"])
import commands_table  # noqa: E402

FILES = pathlib.Path(os.environ["FILES"])
TABLE = pathlib.Path(os.environ["TABLE"])
COMMANDS = commands_table.read(TABLE)
PROFILES = {path.stem for path in (pathlib.Path(__file__).parents[2] / "policy/profiles").glob("*.conf")}
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"


class Shell:
    """A folder with a file of each kind, a home with two logs and a PATH with one program that begins with zz-."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.here = self.top / "here"
        for name in ("d", "home/.local/state/spill", "bin"):
            (self.here if name == "d" else self.top).joinpath(name).mkdir(parents=True)
        for name in ("a.conf", "b.txt", "c.jsonl", "x y.conf", "d.conf"):
            (self.here / name).touch()
        self.logs = [str(self.top / "home/.local/state/spill" / name) for name in ("a-new-2.jsonl", "b-old-$(touch harm)-1.jsonl")]
        for age, log in enumerate(self.logs):
            pathlib.Path(log).touch()
            os.utime(log, (1e9 - age, 1e9 - age))
        for name in ("spill", "zz-program"):  # fish has nothing for a command that is not there
            program = self.top / "bin" / name
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        self.environment = {"HOME": str(self.top / "home"), "PATH": f"{self.top / 'bin'}:{os.environ['PATH']}", "TERM": "dumb",
                            "LC_ALL": "C.UTF-8"}

    def found(self, lines):
        """What is offered behind each line, in order."""
        with open(self.top / "errors", "w+", encoding="utf-8") as errors:
            # Some quote what they offer, and say that a folder is one.
            found = [[re.sub(r"\\(.)", r"\1", word).rstrip("/") for word in words] for words in self.ask(lines, errors)]
            errors.seek(0)
            self.assertEqual(errors.read(), "")
        self.assertEqual(len(found), len(lines))
        self.assertFalse((self.here / "harm").exists(), "a file's name is run")
        return found

    def run_shell(self, arguments, errors):
        return subprocess.run([self.name, *arguments], env=self.environment, cwd=self.here, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=errors, check=False, timeout=60).stdout

    def expected(self, word):
        """At a word of this kind, of which nothing is there yet, at least; and what must not be."""
        files = {"a.conf", "x y.conf", "d.conf", "b.txt", "c.jsonl", "d"}
        every = {"FILE": files, "FOLDER": {"d"}, "POLICY": {"a.conf", "x y.conf", "d.conf", "d"}, "LOG": {"c.jsonl", "d", *self.logs},
                 "PROFILE": PROFILES}.get(word, set())
        return every, files - every

    def test_commands(self):
        lines = ["spill ", "spill re", "spill help "]
        every, some, helped = self.found(lines)
        self.assertLessEqual(set(COMMANDS) | {"help"}, set(every))
        self.assertNotIn("a.conf", every)
        self.assertEqual(set(some), {name for name in COMMANDS if name.startswith("re")})
        self.assertEqual(set(helped), set(COMMANDS))

    def test_options(self):
        """Of each command all of its own, with those of no other; none behind --."""
        lines = [f"spill {name} --" for name in COMMANDS] + ["spill check -- --"]
        *found, behind = self.found(lines)
        for command, offered in zip(COMMANDS.values(), found):
            self.assertEqual({word.rstrip("=") for word in offered if word != "--"},
                             {"--help"} | {f"--{option.name}" for option in command.options}, command.name)
        self.assertEqual(behind, [])

    def test_values_and_operands(self):
        asked = [(f"spill {command.name} --{option.name} ", option.word) for command in COMMANDS.values()
                 for option in command.options if option.argument]
        asked += [(f"spill {command.name} -{option.letter} ", option.word) for command in COMMANDS.values()
                  for option in command.options if option.argument and option.letter]
        asked += [(f"spill {command.name} ", command.word) for command in COMMANDS.values()]
        asked += [(f"{line[:-1]}=", word) for line, word in asked if "--" in line]
        # Too many to list are those whose names begin with anything.
        asked = [(line + "zz-" if word == "PROGRAM" else line, word) for line, word in asked]
        for (line, word), offered in zip(asked, self.found([line for line, _ in asked])):
            with self.subTest(line=line, word=word, offered=offered):
                offered = {item.partition("=")[2] if item.startswith("--") else item for item in offered}
                if word == "PROGRAM":
                    self.assertIn("zz-program", offered)
                else:
                    least, never = self.expected(word)
                    self.assertLessEqual(least, offered)
                    self.assertEqual(never & offered, set())
                    self.assertTrue(least or not offered, "nothing can be offered there")

    def test_logs_newest_first(self):
        (found,) = self.found(["spill report "])
        self.assertEqual([item for item in found if item in self.logs], self.logs)

    def test_behind_the_program(self):
        """The rest is the program's own, which is spill itself here; its options are not ours."""
        if self.name == "bash" and not os.path.exists(BASH_COMPLETION):
            self.skipTest("no bash-completion here")
        lines = ["spill run spill pol", "spill run --limit 6GiB -- spill check --j", "spill run -p a.conf spill doctor --", "spill run zz-program --li"]
        policy, json_option, doctor, none = self.found(lines)
        self.assertEqual(policy, ["policy"])
        self.assertEqual(json_option, ["--json"])
        self.assertIn("--timeout", [word.rstrip("=") for word in doctor])
        self.assertNotIn("--limit", doctor)
        self.assertEqual(none, [])


class Bash(Shell, unittest.TestCase):
    name = "bash"

    def ask(self, lines, errors):
        # By its name, as it is found where it is installed, if that can be.
        script = f"""if [ -e {BASH_COMPLETION} ]; then
	. {BASH_COMPLETION}
	BASH_COMPLETION_USER_DIR={FILES.parent} __load_completion spill
else
	. {FILES}/spill
fi
"""
        for line in lines:
            # As readline splits it: = is a word of its own.
            words = line.replace("=", " = ").split(" ")
            words = [word for word in words[:-1] if word] + ([words[-1]] if words[-1] or not line.endswith("=") else [])
            script += (f"COMP_WORDS=({' '.join(json.dumps(word) for word in words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{line}' COMP_POINT={len(line)}\n"
                       "_spill\nprintf '%s\\0' \"${COMPREPLY[@]}\" | tr '\\n\\0' '?\\n'; echo END\n")
        # compopt complains where no completion is under way.
        script = "compopt() { :; }\n" + script
        out = self.run_shell(["--norc", "-c", script], errors)
        return [[word for word in part.splitlines() if word] for part in out.split("END\n")[:-1]]


class Fish(Shell, unittest.TestCase):
    name = "fish"

    def ask(self, lines, errors):
        script = f"set -p fish_complete_path {FILES}\n" + "".join(f"complete -C '{line}'; echo END\n" for line in lines)
        out = self.run_shell(["--no-config", "-c", script], errors)
        return [[word.split("\t")[0] for word in part.splitlines()] for part in out.split("END\n")[:-1]]


# Tells on a descriptor what is offered, and types nothing that would ask.
ZSHRC = """
fpath=({files} $fpath)
autoload -Uz compinit && compinit -u -D
LISTMAX=100000
setopt no_beep
compadd()
{{
	if (( ! $@[(I)-[OAD]*] )); then
		local -a hits
		builtin compadd -O hits "$@"
		(( ! $#hits )) || print -rl -u {fd} -- $hits
	fi
	builtin compadd "$@"
}}
asked() {{ print -u {fd} END; BUFFER= }}
zle -N asked
bindkey '^I' complete-word
bindkey '^T' asked
zle-line-init() {{ print -u {fd} READY }}
zle -N zle-line-init
PS1= PS2=
"""


class Zsh(Shell, unittest.TestCase):
    name = "zsh"

    def ask(self, lines, errors):
        ours, theirs = os.pipe()
        (self.top / ".zshrc").write_text(ZSHRC.format(files=FILES, fd=theirs))
        keyboard, terminal = pty.openpty()
        shell = subprocess.Popen(["zsh", "-d", "-i"], env=self.environment | {"ZDOTDIR": str(self.top)}, cwd=self.here, stdin=terminal,
                                 stdout=terminal, stderr=terminal, pass_fds=[theirs], start_new_session=True)
        os.close(theirs)
        os.close(terminal)
        # What it draws is nobody's, but has to be read.
        drawn = []
        reader = threading.Thread(target=self.drain, args=(keyboard, drawn), daemon=True)
        reader.start()
        found = []
        with os.fdopen(ours, encoding="utf-8") as answers:
            self.assertEqual(answers.readline(), "READY\n", "".join(drawn))
            for line in lines:
                os.write(keyboard, f"{line}\t\x14".encode())
                found.append([])
                while (answer := answers.readline()) not in ("END\n", ""):
                    found[-1].append(answer.rstrip("\n"))
            os.write(keyboard, b"exit\n")
        shell.wait(60)
        reader.join(60)
        os.close(keyboard)
        return found

    @staticmethod
    def drain(descriptor, drawn):
        try:
            while data := os.read(descriptor, 65536):
                drawn.append(data.decode(errors="replace"))
        except OSError:  # the other end is closed
            pass


if __name__ == "__main__":
    for shell in sys.argv[1:]:
        if not shutil.which(shell.lower()):
            print(f"no {shell.lower()} here")
            sys.exit(77)
    unittest.main()
