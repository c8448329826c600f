/*
 * The strict reader: its errors, with line and column, and the values that it passes on. It takes a
 * file whole or not at all.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "ini_file.h"
#include "options.h"
#include "rule_option.h"

struct taken {
	unsigned count;
	char text[1024]; /* "LINE name=value;" for each, the name behind an [app NAME]'s NAME */
};

static void take(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct taken *taken = user;
	size_t at = strlen(taken->text);
	char name[64];

	spill_option_name(slot, name, sizeof(name));
	snprintf(taken->text + at, sizeof(taken->text) - at, "%u %s%s%s=%s;", line, app ? app : "",
	         app ? " " : "", name, value);
	taken->count++;
}

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct taken *taken = user;
	size_t at = strlen(taken->text);
	char text[SPILL_RULE_TEXT];

	spill_rule_format(rule, text, sizeof(text));
	snprintf(taken->text + at, sizeof(taken->text) - at, "%u rule %s: %s;", line, rule->name, text);
	taken->count++;
}

static bool reads(const char *data, size_t size, struct taken *taken, char *error, size_t error_size)
{
	return spill_ini_read("F", data, size, &(struct spill_ini_taker){take, take_rule, taken}, error,
	                      error_size);
}

static void accepts_bytes(const char *data, size_t size, const char *expected)
{
	struct taken taken = {0};
	char error[512] = "";

	if (!reads(data, size, &taken, error, sizeof(error)))
		fail_msg("%s", error);
	assert_string_equal(taken.text, expected);
}

static void accepts(const char *data, const char *expected)
{
	accepts_bytes(data, strlen(data), expected);
}

static void refuses_bytes(const char *data, size_t size, const char *expected)
{
	struct taken taken = {0};
	char error[512] = "accepted";

	if (reads(data, size, &taken, error, sizeof(error)) || strncmp(error, expected, strlen(expected)))
		fail_msg("expected '%s', got '%s'", expected, error);
	assert_int_equal(taken.count, 0);
}

static void refuses(const char *data, const char *expected)
{
	refuses_bytes(data, strlen(data), expected);
}

TEST(accepts)
{
	accepts("", "");
	accepts("\n\n# only a comment", "");
	accepts("[device]\nlimit = 4GiB\n", "2 device.limit=4GiB;");
	accepts("[device]\nlimit=4GiB", "2 device.limit=4GiB;");
	accepts("[device]\r\nlimit\t=  75%  \r\n", "2 device.limit=75%;");
	accepts("# x\n\n   # indented comment\n[oom]  \nchain =\n[device 3]\nlimit = none\n[device]\nlimit = "
	        "1GiB\n",
	        "5 oom.chain=;7 device 3.limit=none;9 device.limit=1GiB;");
	/* A section may come again; = and : belong to a value. */
	accepts(
	    "[device]\nlimit = 1GiB\n[host]\nlimit = 1GiB\n[device]\nreserve = 0\n[log]\npath = /a=b:c#d;e\n",
	    "2 device.limit=1GiB;4 host.limit=1GiB;6 device.reserve=0;8 log.path=/a=b:c#d;e;");
}

TEST(names)
{
	refuses("[device]\nlimt = 4GiB\n", "F:2:1: unknown key 'limt' in [device]; the nearest is 'limit'");
	refuses("# c\n[devise]\n", "F:2:2: unknown section 'devise'; the nearest is [device]");
	refuses("[device 32]\n", "F:1:9: the device number is out of range");
	refuses("[rules big]\n", "F:1:2: unknown section 'rules big'; the nearest is [rule NAME]");
	refuses("[device 1]\nreserv = 1\n", "F:2:1: 'reserv' cannot be set for one device");
	refuses("[Device]\n", "F:1:2: unknown section 'Device'; the nearest is [device]");
}

TEST(values)
{
	refuses("[device]\nlimit = 4GB\n", "F:2:10: bad size '4GB': write GiB; units are");
	refuses("[device]\nlimit=x\n", "F:2:7: bad size 'x'");
	refuses("[device]\nlimit =\n", "F:2:8: bad size ''");
	refuses("[movable]\nchunk = 3MiB\n", "F:2:9: bad size '3MiB': it must be 2MiB or a multiple of it");
	refuses("[spill]\nmode = observ\n",
	        "F:2:8: bad value 'observ'; it must be one of spill, observe, off; "
	        "the nearest is 'observe'");
}

TEST(form)
{
	refuses("limit = 1GiB\n",
	        "F:1:1: a key outside a section: write its section above, as [device] above limit = 4GiB");
	refuses("host.limit = 1GiB\n",
	        "F:1:1: a key outside a section: write [host] above, and then limit = …");
	refuses("device.x = 1.5\n", "F:1:1: a key outside a section: write [device] above, and then x = …");
	refuses(".limit = 1GiB\n", "F:1:1: a key outside a section: write its section above");
	refuses("host. = 1GiB\n", "F:1:1: a key outside a section: write its section above");
	refuses("limit = 1.5GiB\n", "F:1:1: a key outside a section: write its section above");
	refuses("[device\nlimit = 1\n", "F:1:8: the bracket is not closed");
	refuses("[device] limit = 1\n", "F:1:10: nothing may follow");
	refuses("[device] # comment\n", "F:1:10: nothing may follow");
	refuses("[]\n", "F:1:2: the section's name is missing");
	refuses("[ device]\n", "F:1:2: no blank");
	refuses("[device ]\n", "F:1:8: no blank");
	refuses("[device]\nlimit 4GiB\n", "F:2:11: '=' is missing");
	refuses("[device]\nlimit: 4GiB\n", "F:2:6: ':' separates nothing");
	refuses("[device]\n= 4GiB\n", "F:2:1: the key before '=' is missing");
	refuses("[device]\nlimit = 4GiB\n  reserve = 1\n", "F:3:3: an indented line");
	refuses("[log]\npath = /a\n\t/b\n", "F:3:2: an indented line");
	refuses("  [device]\n", "F:1:3: an indented line");
	refuses("; comment\n", "F:1:1: a comment begins with #");
	refuses("[log]\npath = /a ; b\n", "F:2:11: a comment needs a line of its own");
	refuses("[device]\nlimit = 1GiB # b\n", "F:2:14: a comment needs a line of its own");
	refuses("[oom]\nchain ;= host\n", "F:2:1: not a line of a policy file");
	refuses("[oom]\nchain = ;\n", "F:2:9: a comment needs a line of its own");
}

TEST(duplicates)
{
	refuses("[device]\nlimit = 1\n\n[device]\nlimit = 1\n",
	        "F:5:1: 'limit' is set twice; the first is in line 2");
	refuses("[device 1]\nlimit = 1\n[device  1]\nlimit = 1\n", "F:4:1: 'limit' is set twice");
	accepts("[device 1]\nlimit = 1\n[device 2]\nlimit = 1\n", "2 device 1.limit=1;4 device 2.limit=1;");
}

/* [app NAME]: checked for whomever it is, handed on with its NAME. */
TEST(app)
{
	static char many[32 * (SPILL_INI_APPS + 1)];
	size_t at = 0;

	accepts("[app a*]\ndevice.limit = 1\n[app b]\ndevice.limit = 2\n[device]\nlimit = 3\n",
	        "2 a* device.limit=1;4 b device.limit=2;6 device.limit=3;");
	accepts("[device]\nlimit = 1\n[app  x y]\ndevice.limit = 2\n[device]\nreserve = 3\n",
	        "2 device.limit=1;4 x y device.limit=2;6 device.reserve=3;");
	refuses("[app]\n", "F:1:5: the program's name is missing");
	refuses("[app /bin/x]\n", "F:1:6: a program's name has no folder");
	refuses("[app a]\nlimit = 1\n",
	        "F:2:1: unknown key 'limit' in [app NAME]; the nearest is 'device.limit'");
	refuses("[app a]\ndevice.limit = 4GB\n", "F:2:17: bad size '4GB'");
	refuses("[app a]\nrule.cap = 1\n",
	        "F:2:1: 'rule.cap' is no option; a rule for one program is [rule NAME] with program = NAME");
	/* Once a section each, once a key in a section. */
	refuses("[app a]\nhost.limit = 1\nhost.limit = 1\n",
	        "F:3:1: 'host.limit' is set twice; the first is in line 2");
	accepts("[app a]\n[app aa]\n[app a*]\n", "");
	refuses("[app aa]\n\n[app a]\n[device]\n[app  a]\n",
	        "F:5:7: [app NAME] with the name 'a' is there twice; the first is in line 3");
	for (unsigned i = 0; i < SPILL_INI_APPS; i++)
		at += (size_t)sprintf(many + at, "[app %u]\nhost.limit = 1\n", i);
	struct taken none = {0};
	char error[128] = "";

	assert_true(reads(many, at, &none, error, sizeof(error)));
	at += (size_t)sprintf(many + at, "[app x]\n");
	refuses_bytes(many, at, "F:513:1: too many [app NAME] in one file: at most 256");
}

/* [rule NAME]: handed on whole at its end, with the line of its section. */
TEST(rules)
{
	accepts("[rule a]\nplace = managed\n", "1 rule a: place = managed;");
	accepts("\n[rule b c]\nsize = 1MiB..2GiB\ncap = 4GiB\n[device]\nlimit = 1\n[rule a]\nover = host",
	        "2 rule b c: size = 1MiB..2GiB; cap = 4GiB;6 device.limit=1;7 rule a: over = host;");
	/* A key of a rule may be that of an option, and may come again in the next rule. */
	accepts("[rule a]\nmanaged.preferred = device\n[app a]\nmanaged.preferred = host\n"
	        "[rule  aa]\nmanaged.preferred = none\n",
	        "1 rule a: managed.preferred = device;4 a managed.preferred=host;"
	        "5 rule aa: managed.preferred = none;");
}

TEST(bad_rules)
{
	refuses("[rule]\nplace = host\n", "F:1:6: the rule's name is missing: write [rule NAME]");
	refuses("[rule default]\nplace = host\n", "F:1:7: 'default' means no rule in the log");
	refuses("[rule a]\nplase = host\n",
	        "F:2:1: unknown key 'plase' in [rule NAME]; the nearest is 'place'");
	refuses("[rule a]\npreferred = host\n",
	        "F:2:1: unknown key 'preferred' in [rule NAME]; the nearest is 'managed.preferred'");
	/* An option that a key does the work of, and one that there is no key for. */
	refuses("[rule a]\ndevice.limit = 1GiB\n",
	        "F:2:1: unknown key 'device.limit' in [rule NAME]; the nearest is 'cap'");
	refuses("[rule a]\nchain = host\n",
	        "F:2:1: unknown key 'chain' in [rule NAME]; the nearest is 'over'");
	refuses("[rule a]\nhost.limit = 1GiB\n",
	        "F:2:1: 'host.limit' is for all requests; [rule NAME] does not have it");
	refuses("[rule a]\nplace = hots\n",
	        "F:2:9: bad value 'hots'; it must be one of device, movable, split, managed, host, refuse; "
	        "the nearest is 'host'");
	refuses("[rule a]\nover = device\n",
	        "F:2:8: bad value 'device'; it must be one of split, managed, host, refuse");
	refuses("[rule a]\nsize =  2GiB..1GiB\n", "F:2:9: bad range '2GiB..1GiB': it is empty");
	refuses("[rule a]\nsize = 1GiB-2GiB\n",
	        "F:2:9: bad size '1GiB-2GiB': units are B, KiB, MiB, GiB, TiB; write "
	        "1MiB..2GiB, 1MiB.. or ..2GiB");
	refuses("[rule a]\nsize = 1GiB .. 2GiB\n",
	        "F:2:9: bad range '1GiB .. 2GiB': units are B, KiB, MiB, GiB, TiB; "
	        "write 1MiB..2GiB");
	refuses("[rule a]\nsize = ..\n",
	        "F:2:10: bad range '..': one of its ends must be there; write 1MiB..2GiB");
	/* What nothing could ever match: a list, a path that does not begin at its root. */
	refuses("[rule a]\napi = cudaMalloc, cuMem*\n",
	        "F:2:17: a function's name has only letters, digits and '_'; write one pattern");
	refuses("[rule a]\ncaller = ~/lib/a.so\n",
	        "F:2:10: a pattern with a '/' is compared with the whole path: "
	        "begin it with '/' or '*/'");
	refuses("[rule a]\ncaller = lib/a.so\n", "F:2:10: a pattern with a '/' is compared");
	refuses("[rule a]\nprogram = bin/y\n", "F:2:14: a program's name has no folder");
	refuses("[rule a]\nprogram = x, y\n", "F:2:12: one pattern and no list: write a rule for each");
	refuses("[rule a]\ncaller = liba.so,libb.so\n", "F:2:17: one pattern and no list");
	accepts("[rule a]\napi = cu?em_*9\ncaller = */lib/a? b.so\nplace = host\n",
	        "1 rule a: api = cu?em_*9; caller = */lib/a? b.so; place = host;");
	accepts("[rule a]\ncaller = /lib/*\nplace = host\n[rule b]\ncaller = ?usr/*\nplace = host\n",
	        "1 rule a: caller = /lib/*; place = host;4 rule b: caller = ?usr/*; place = host;");
	refuses("[rule a]\ndevice = 0, 32\n", "F:2:13: the device number is out of range: 0 to 31");
	refuses("[rule a]\nplace = host\n\nplace = host\n",
	        "F:4:1: 'place' is set twice; the first is in line 2");
	refuses("[rule a]\nplace =\n", "F:2:8: a value is missing; it must be one of device");
	/* It is told where the rule begins, and before what is wrong behind it. */
	refuses("[rule a]\nsize = 1GiB\n\n",
	        "F:1:2: the rule does nothing; it needs one of place, over, cap, priority, prefetch, honest, "
	        "managed.preferred, managed.accessed_by, managed.read_mostly, managed.prefetch_below");
	refuses("[rule a]\n[devcie]\n", "F:1:2: the rule does nothing");
	refuses("[rule a]\n", "F:1:2: the rule does nothing");
	refuses("[rule a]", "F:1:2: the rule does nothing");
	/* All or nothing, also of rules. */
	refuses("[rule a]\nplace = host\n[rule b]\nplace = x\n", "F:4:9: bad value 'x'");
}

TEST(rule_names)
{
	static char many[48 * (SPILL_RULES + 1)];
	char expected[80];
	size_t at = 0;

	refuses("[rule aa]\ncap = 1\n[rule a]\ncap = 1\n[device]\nlimit = 1\n[rule  a]\ncap = 2\n",
	        "F:7:8: [rule NAME] with the name 'a' is there twice; the first is in line 3");
	accepts("[app a]\n[rule a]\ncap = 1\n", "2 rule a: cap = 1;");
	/* The longest name that the form of a section has. */
	at = (size_t)sprintf(many, "[rule %044d]\ncap = 1\n", 1);
	sprintf(expected, "1 rule %044d: cap = 1;", 1);
	accepts_bytes(many, at, expected);
	at = (size_t)sprintf(many, "[rule %045d]\ncap = 1\n", 1);
	refuses_bytes(many, at, "F:1:2: the section's name is too long");
	at = 0;
	for (unsigned i = 0; i < SPILL_RULES; i++)
		at += (size_t)sprintf(many + at, "[rule %u]\ncap = 1\n", i);
	struct taken none = {0};
	char error[128] = "";

	assert_true(reads(many, at, &none, error, sizeof(error)));
	assert_int_equal(none.count, SPILL_RULES);
	at += (size_t)sprintf(many + at, "[rule x]\ncap = 1\n");
	refuses_bytes(many, at, "F:129:1: too many [rule NAME] in one file: at most 64");
}

TEST(bytes)
{
	refuses("\xef\xbb\xbf[device]\n", "F:1:1: the file begins with a byte order mark");
	refuses_bytes("[device]\nlim\0it = 1\n", 19, "F:2:4: a NUL byte");
	refuses_bytes("[device]\nlimit = 1\0\n", 20, "F:2:10: a NUL byte");
	refuses("[device]\nlimit = 1\x1b[0m\n", "F:2:10: a control character");
	refuses("[device]\rlimit = 1\r", "F:1:9: a control character");
	refuses("[log]\npath = /a\x7f\n", "F:2:10: a control character");
}

/* What libinih would cut: each limit just kept, and just passed. */
TEST(lengths)
{
	static char data[SPILL_INI_FILE + 2];
	char expected[64];
	size_t path = SPILL_PATH_MAX - 2, at;

	at = (size_t)sprintf(data, "[%050d]\n", 1);
	refuses_bytes(data, at, "F:1:2: the section's name is too long");
	at = (size_t)sprintf(data, "[%049d]\n", 1);
	refuses_bytes(data, at, "F:1:2: unknown section");
	at = (size_t)sprintf(data, "[device]\n%050d = 1\n", 1);
	refuses_bytes(data, at, "F:2:1: the key is too long");
	at = (size_t)sprintf(data, "[device]\n%049d = 1\n", 1);
	refuses_bytes(data, at, "F:2:1: unknown key");
	at = (size_t)sprintf(data, "[device]\n%049d \t  = 1\n", 1); /* blanks are not of the key */
	refuses_bytes(data, at, "F:2:1: unknown key");

	/* The longest path arrives whole; one byte more is refused by the option. */
	at = (size_t)sprintf(data, "[log]\npath = /");
	memset(data + at, 'a', path);
	data[at + path] = '\n';
	struct taken none = {0};
	char error[128] = "";

	assert_true(reads(data, at + path + 1, &none, error, sizeof(error)));
	memset(data + at, 'a', path + 1);
	data[at + path + 1] = '\n';
	refuses_bytes(data, at + path + 2, "F:2:8: the path is too long");

	/* A line at the limit is a comment; beyond, an error, comment or not. */
	memset(data, '#', sizeof(data));
	accepts_bytes(data, SPILL_INI_LINE, "");
	snprintf(expected, sizeof(expected), "F:1:%d: the line is too long", SPILL_INI_LINE + 1);
	refuses_bytes(data, SPILL_INI_LINE + 1, expected);
	memset(data, '\n', sizeof(data));
	accepts_bytes(data, SPILL_INI_FILE, "");
	refuses_bytes(data, SPILL_INI_FILE + 1, "F:1:1: the file is too long");
}

TEST(all_or_nothing)
{
	refuses("[device]\nlimit = 1GiB\nreserve = 1MiB\nwrong = 1\n", "F:4:1: unknown key 'wrong'");
}

/* The first error is the one that is told. */
TEST(first_error)
{
	refuses("[device]\nlimit = x\nwrong = 1\n[nowhere]\n", "F:2:9: bad size 'x'");
}

/* Adds the first 27 bytes of the text, and a bar. */
static void take_problem(void *user, const char *text)
{
	struct taken *taken = user;
	size_t at = strlen(taken->text);

	snprintf(taken->text + at, sizeof(taken->text) - at, "%.27s|", text);
	taken->count++;
}

/* What a checker gets: options, rules and errors, in the order of the file. */
static void goes_on(const char *data, const char *expected)
{
	struct taken taken = {0};
	const struct spill_ini_taker taker = {take, take_rule, &taken, .problem = take_problem};
	char error[512] = "";
	bool valid = spill_ini_read("F", data, strlen(data), &taker, error, sizeof(error));

	assert_string_equal(taken.text, expected);
	assert_int_equal(valid, !strchr(expected, '|'));
}

TEST(a_checker_gets_all_errors_and_what_is_valid)
{
	goes_on("[device]\nlimit = 1GiB\n", "2 device.limit=1GiB;");
	goes_on("[device]\nlimit = x\nwrong = 1\nreserve = 1MiB\nreserve = 2MiB\n",
	        "F:2:9: bad size 'x': a numb|F:3:1: unknown key 'wrong' |4 device.reserve=1MiB;F:5:1: "
	        "'reserve' is set twi|");
	goes_on("limit = 1\n[device]\nlimit\n  x\nreserve = 1MiB # x\n",
	        "F:1:1: a key outside a sect|F:3:6: '=' is missing: writ|F:4:3: an indented line: a |F:5:16: "
	        "a comment needs a l|");
}

TEST(the_keys_of_a_section_with_an_error_are_passed_over)
{
	goes_on(
	    "[device]\n[devcie]\nlimit = 1GiB\n[app x\nlimit = 2\n [host]\nlimit = 3\n[host]\nlimit = 4GiB\n",
	    "F:2:2: unknown section 'dev|F:4:7: the bracket is not c|F:6:2: an indented line: a |9 "
	    "host.limit=4GiB;");
	goes_on("[app x]\nhost.ahead = 0\n[app x]\nhost.ahead = 1\n[rule a]\nplace = host\n[rule a]\nplace = "
	        "host\n",
	        "2 x host.ahead=0;F:3:6: [app NAME] with the |5 rule a: place = host;F:7:7: [rule NAME] "
	        "with the|");
}

TEST(the_keys_below_an_indented_head_are_of_no_section)
{
	goes_on("[host]\n [device]\nlimit = 3\n[device]\nlimit = 4\n",
	        "F:2:2: an indented line: a |5 device.limit=4;");
}

TEST(a_rule_with_an_error_is_left_out_and_its_error_told_once)
{
	goes_on("[rule a]\nplace = hots\n[rule b]\nsize = 1\n[rule c]\nover = host\nx = 1\n[rule d]\nover = "
	        "host\n",
	        "F:2:9: bad value 'hots'; it|F:3:2: the rule does nothin|F:7:1: unknown key 'x' in [|8 rule "
	        "d: over = host;");
	goes_on("[rule b]\nsize = 1\n", "F:1:2: the rule does nothin|");
	goes_on("[rule b]\nsize = 1\n[device]\nlimit = x\n",
	        "F:1:2: the rule does nothin|F:4:9: bad size 'x': a numb|");
}

static void take_section(void *user, const char *section, unsigned line)
{
	struct taken *taken = user;
	size_t at = strlen(taken->text);

	snprintf(taken->text + at, sizeof(taken->text) - at, "%u [%s];", line, section);
}

static void take_key(void *user, unsigned row, const char *value, unsigned line)
{
	struct taken *taken = user;
	size_t at = strlen(taken->text);

	snprintf(taken->text + at, sizeof(taken->text) - at, "%u %s=%s;", line,
	         spill_rule_option_row(row)->option.key, value);
}

TEST(a_checker_gets_the_heads_of_sections_and_the_keys_of_rules)
{
	static const char data[] = "[device]\n[app x]\n[rule a]\nsize = 64B\nover = host\n";
	struct taken taken = {0};
	const struct spill_ini_taker taker = {take, take_rule, &taken, take_section, take_key};
	char error[128] = "";

	assert_true(spill_ini_read("F", data, strlen(data), &taker, error, sizeof(error)));
	assert_string_equal(taken.text, "1 [device];2 [app x];3 [rule a];4 size=64B;5 over=host;"
	                                "3 rule a: size = 64; over = host;");
}

TEST(small_buffer)
{
	char error[12];

	assert_false(spill_ini_read("a-long-file-name", "x", 1, NULL, error, sizeof(error)));
	assert_string_equal(error, "a-long-file");
}
