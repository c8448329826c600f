"""A set-user-id child of a preloaded program: the loader does not preload there, and nothing of ours is said, written or followed."""
import os
import shutil
import unittest

from scripted import FULL, ScriptCase


@unittest.skipIf(os.geteuid() != 0, "only root can make a program of another user")
class Privileged(ScriptCase):
    def program(self):
        """cat, which shows its own mappings, with the rights of nobody."""
        path = self.folder / "cat"
        shutil.copy("/bin/cat", path)
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)
        self.folder.chmod(0o755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("programs cannot be set-user-id here")
        return path

    def test_a_set_user_id_child(self):
        program = self.program()
        child = self.folder / "child"
        child.write_text(f"#!/bin/sh\n/bin/cat /proc/self/maps >{self.folder}/plain\n{program} /proc/self/maps /proc/self/status >{self.folder}/private\n")
        child.chmod(0o755)
        folder = self.folder / "logs"
        folder.mkdir()
        done = self.good(self.script(f"{FULL} child:{child}", SPILL_LOG=folder))
        self.assertIn("status 0", done.stdout)
        self.assertIn("libspill.so", (self.folder / "plain").read_text())
        private = (self.folder / "private").read_text()
        self.assertIn("Uid:\t0\t65534\t65534", private)
        self.assertNotIn("spill", private.replace(str(self.folder), ""))
        self.assertEqual(len(list(folder.iterdir())), 1)
        self.assertNotIn("ERROR: ld.so", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
