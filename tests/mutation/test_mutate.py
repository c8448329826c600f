"""What mutate.py changes in a file of C, and what it leaves alone."""
import unittest

import mutate

FILE = r'''
#define LEAST 1 < 2
static int sum = 1 + 2; /* outside of a function */

int function(int a, int b)
{
	const char *text = "a < b && c"; // a < b
	/* a == b
	   a != b */
	if (a < b && text)
		call(a, (b));
	pthread_mutex_lock(&lock);
	spill_account_charge(a);
	return atomic_fetch_add(&a, b - 1);
}
'''


class Changes(unittest.TestCase):
    def changed(self, number):
        return {(kind, line.strip()) for kind, at, line in mutate.of_file(FILE) if at == number}

    def number(self, text):
        return next(number for number, line in enumerate(FILE.split("\n"), 1) if text in line)

    def test_conditions_and_bounds(self):
        self.assertEqual(self.changed(self.number("if (")),
                         {("condition", "if (a < b || text)"), ("bound", "if (a <= b && text)"), ("condition", "if (!(a < b && text))")})

    def test_calls_are_left_out(self):
        self.assertEqual(self.changed(self.number("call(a")), {("call", "{}")})
        self.assertEqual(self.changed(self.number("pthread")), {("lock", "{}")})
        self.assertEqual(self.changed(self.number("charge")), {("charge", "{}")})

    def test_sums_and_atomics(self):
        self.assertEqual(self.changed(self.number("return")), {
            ("atomic", "return atomic_fetch_sub(&a, b - 1);"), ("bound", "return atomic_fetch_add(&a, b);"),
            ("sum", "return atomic_fetch_add(&a, b + 1);")})

    def test_texts_comments_and_what_is_outside_stay(self):
        for text in ("#define", "static int", "const char", "a == b", "a != b"):
            self.assertEqual(self.changed(self.number(text)), set(), text)

    def test_indentation_stays(self):
        self.assertIn(("lock", self.number("pthread"), "\t{}"), list(mutate.of_file(FILE)))


if __name__ == "__main__":
    unittest.main()
