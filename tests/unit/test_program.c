/* The name that PROGRAM.conf and %e go by. The pieces are static, so their source is part of this test. */
#include "unit.h"
#include "../../src/base/process.c"

/* What a command line ("a|b|c") runs, by the interpreter `program`; NULL if there is no script. */
static const char *script(const char *program, const char *line)
{
	static char words[256];
	const struct interpreter *interpreter = find_interpreter(program);
	size_t length = strlen(line) + 1;

	assert_non_null(interpreter);
	memcpy(words, line, length);
	for (size_t i = 0; i < length; i++) {
		if (words[i] == '|')
			words[i] = '\0';
	}
	return find_script(interpreter, (struct words){words, words + length});
}

/* Not inlined: of a constant name gcc -O3 warns that other interpreters' names are longer. */
static __attribute__((noinline)) bool is_interpreter(const char *program)
{
	return find_interpreter(program) != NULL;
}

TEST(interpreters)
{
	assert_true(is_interpreter("python"));
	assert_true(is_interpreter("python3"));
	assert_true(is_interpreter("python3.11"));
	assert_true(is_interpreter("perl5.36.0"));
	assert_true(is_interpreter("bash"));
	assert_true(is_interpreter("sh"));
	assert_false(is_interpreter("python-config"));
	assert_false(is_interpreter("shred"));
	assert_false(is_interpreter("llama-server"));
	assert_false(is_interpreter(""));
}

TEST(scripts)
{
	assert_string_equal(script("python3", "python3|/opt/main.py|-m|no"), "/opt/main.py");
	assert_string_equal(script("python3", "python3|-u|-W|ignore|main.py"), "main.py");
	assert_string_equal(script("python3", "python3|-Xdev|main.py"), "main.py");
	assert_string_equal(script("python3", "python3|-m|vllm.entrypoints|x"), "vllm.entrypoints");
	assert_string_equal(script("python3", "python3|-mvllm"), "vllm");
	assert_string_equal(script("python3", "python3|-um|torch.distributed.run|a.py"),
	                    "torch.distributed.run");
	assert_string_equal(script("python3", "python3|--check-hash-based-pycs=always|a.py"), "a.py");
	assert_string_equal(script("python3", "python3|--|-odd.py"), "-odd.py");
	assert_null(script("python3", "python3|-c|import torch|a.py"));
	assert_null(script("python3", "python3|-"));
	assert_null(script("python3", "python3"));
	assert_null(script("python3", "python3|-m"));
	assert_null(script("python3", "python3|-W"));
	assert_string_equal(script("bash", "bash|-o|pipefail|+x|run.sh"), "run.sh");
	assert_null(script("bash", "bash|-ec|run.sh"));
	assert_string_equal(script("perl", "perl|-w|-Ilib|a.pl"), "a.pl");
	assert_null(script("perl", "perl|-ne|print"));
	assert_string_equal(script("node", "node|-r|x.js|a.js"), "a.js");
}

/* The file name of the script takes the place of the interpreter's. */
TEST(names_of_scripts)
{
	static const struct {
		const char *program, *words, *name;
		size_t length;
	} cases[] = {{"python3", "python3\0/opt/main.py", "main.py", 20},
	             {"python3", "python3\0-m\0vllm.run", "vllm.run", 19},
	             {"python3", "python3", "python3", 7},
	             {"python3", "python3\0-", "python3", 9},
	             {"python3", "python3\0/opt/", "python3", 13},
	             {"python3", "python3\0/opt/main.py", "python3", 8},
	             {"cat", "cat\0/opt/main.py", "cat", 16}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[16];
		strcpy(name, cases[i].program);
		spill_program_script(name, sizeof(name), cases[i].words, cases[i].length);
		assert_string_equal(name, cases[i].name);
	}
	char small[8] = "python3";
	spill_program_script(small, sizeof(small), "python3\0long-name.py", 20);
	assert_string_equal(small, "long-na");
}

TEST(this_program)
{
	char name[64], small[5];

	spill_program_name(name, sizeof(name));
	assert_string_equal(name, "test_program");
	spill_program_name(small, sizeof(small));
	assert_string_equal(small, "test");
}
