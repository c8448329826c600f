"""The list of changes that no test can notice is about the product as it is."""
import pathlib
import unittest

import equivalent
import mutate

TOP = pathlib.Path(__file__).resolve().parents[2]


class Listed(unittest.TestCase):
    def test_each_is_a_change_of_a_line(self):
        for name, old, new in equivalent.read():
            lines = (TOP / name).read_text(encoding="utf-8").split("\n")
            made = {(lines[number - 1].strip(), line.strip()) for _, number, line in mutate.of_file("\n".join(lines))}
            with self.subTest(name):
                self.assertIn((old, new), made)

    def test_the_form(self):
        self.assertEqual(equivalent.read("# no\n\nsrc/a.c\n- a < b;\n+ a <= b;\nA reason\n  of two lines.\n"),
                         {("src/a.c", "a < b;", "a <= b;"): "A reason of two lines."})
        for wrong in ("src/a.c\n- a\n+ b", "src/a.c\n+ b\n- a\nreason", "src/a.c\na\nb\nreason",
                      "src/a.c\n- a\n+ b\nreason\nsrc/b.c\n- a\n+ b\nreason"):
            with self.assertRaises(ValueError):
                equivalent.read(wrong)


if __name__ == "__main__":
    unittest.main()
