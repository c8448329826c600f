/*
 * Build-time tool: prints docs/options.md from options.def; a test compares.
 *	--sample      prints the example policy
 *	--variables   prints the variables, for libspill(7)
 *	--words       prints a dictionary for the fuzzer
 */
#include <stdio.h>
#include <string.h>

#include "gen_options.h"
#include "ini_file.h"
#include "option_kind.h"
#include "rule_option.h"

static const char head[] =
    "# Options of a policy file\n"
    "\n"
    "Generated from `policy/options/options.def` by `policy/gen/gen_options.c`; do not edit. A test "
    "compares.\n"
    "A sample with comments: [policy.md](policy.md).\n"
    "\n"
    "The words of this page are explained in the [glossary](glossary.md).\n"
    "\n"
    "A policy file has `[section]` lines and `key = value` lines. A comment is a line of its own that\n"
    "begins with `#`. The values are:\n"
    "\n"
    "- sizes: bytes, or `512MiB`, `4.5GiB`. Units are B, KiB, MiB, GiB, TiB; 1 KiB is 1024 bytes.\n"
    "- percentages: `75%`. The text of each option says of which total.\n"
    "- times: `250ms`, `1.5s`. Units are us, ms, s, min, h.\n"
    "- words: `on` and `yes` mean the same, and so do `off` and `no`. In place of a file name it is `off`.\n"
    "\n"
    "An unknown name, a bad value or a duplicate is an error with file, line and column. Then the whole\n"
    "file is refused, and the defaults hold with `mode = observe`. `spill check FILE` finds such errors\n"
    "before a program starts. It also warns of keys that have no effect, of patterns that never match,\n"
    "and of sizes without a unit.\n"
    "\n"
    "The first source that sets an option wins:\n"
    "\n"
    "1. its environment variable;\n"
    "2. the file named by `SPILL_POLICY`;\n"
    "3. `$XDG_CONFIG_HOME/spill/PROGRAM.conf` (`~/.config` if unset);\n"
    "4. `$XDG_CONFIG_HOME/spill/spill.conf`;\n"
    "5. `/etc/spill/spill.conf`;\n"
    "6. the profile that `spill.profile` names;\n"
    "7. the default.\n"
    "\n"
    "PROGRAM is the executable's name, or for interpreters the script or `-m` module. A file must be\n"
    "regular, belong to the user or to root, and not be writable by others. `SPILL=0` switches\n"
    "everything off. `SPILL_LOG` is another name of `SPILL_LOG_PATH`. A privileged program reads only\n"
    "`/etc/spill/spill.conf` and the profile that it names, and writes no log.\n"
    "`spill policy --for PROGRAM` prints the values for a program, and the source of each.\n"
    "\n"
    "An administrator can write defaults for all users into `/etc/spill/spill.conf`. `[app NAME]`, and\n"
    "rules with `program`, are for some programs only. These are no limits: each user can override them,\n"
    "or set `SPILL=0`. The first line of a log has the values of its run, each with its source\n"
    "(`spill log`).\n";

static const char chain[] =
    "\n"
    "## Steps of `oom.chain`\n"
    "\n"
    "| step | what libspill does when the device is full |\n"
    "|---|---|\n"
    "| `trim` | releases memory that is held but unused, then asks the driver again |\n"
    "| `demote` | moves older movable memory from the device to the host, then asks the driver again |\n"
    "| `split` | gives one address range: as much as fits on the device, and the rest on the host |\n"
    "| `managed` | gives managed memory. The driver moves its pages between device and host |\n"
    "| `host` | gives pinned host memory. The device reads it over the link |\n"
    "\n"
    "`oom.chain = auto` has all of them in this order, without the steps that the device does not\n"
    "support. With `device.memory = integrated` it is `trim, managed, host`. With `coherent`, `managed`\n"
    "comes before `split`.\n";

static const char app[] =
    "\n"
    "## For one program: `[app NAME]`\n"
    "\n"
    "This section sets options for some of the programs that share a file. NAME is a PROGRAM as above,\n"
    "or a pattern of such names: `*` matches any characters, `?` any one. Its keys are the options above\n"
    "by their whole names:\n"
    "\n"
    "    [device]\n"
    "    reserve = 256MiB\n"
    "    [app llama-*]\n"
    "    device.limit = 10GiB\n"
    "    movable.enable = on\n"
    "\n"
    "Its values override those of the file's other sections, wherever it is in the file. If several\n"
    "sections match, the first one that has the key wins. Sources before this file still win over them.\n"
    "A value of `[device N]` holds for its device in all programs; `[app NAME]` changes the other\n"
    "devices. Sections for other programs are checked as strictly. A NAME that is there twice is an\n"
    "error, and so is one with a `/`. A file has at most %d such sections.\n";

static const char rules[] =
    "\n"
    "## Rules: `[rule NAME]`\n"
    "\n"
    "A rule is a section with a name. It has two kinds of keys. By the first kind it matches requests:\n"
    "all of these keys must fit, and a rule without them matches every request. By the second kind it\n"
    "acts, and it needs at least one of these. The log names the rule of each decision.\n"
    "\n"
    "    [rule kv-cache]\n"
    "    size = 256MiB..\n"
    "    caller = libggml-*.so*\n"
    "    place = split\n"
    "\n"
    "Only the first rule that matches a request counts. Later rules have no effect on that request, even\n"
    "if they set keys that the first rule does not set. For such a key the option holds.\n"
    "\n"
    "- The rules of an earlier source come first. Within a file, they are tried from top to bottom.\n"
    "- If two files have a rule of one NAME, the rule of the earlier source replaces the other. The same\n"
    "  NAME twice in one file is an error.\n"
    "- A rule for another `program` or `rank` is ignored.\n"
    "- At most %d rules hold for a process, and as many fit into one file.\n"
    "- Rules have no variables.\n"
    "- A key has one pattern, as in `[app NAME]`. For two libraries write two rules.\n"
    "- `spill check` and `spill policy` report a rule that is never reached because an earlier rule\n"
    "  matches all of its requests.\n"
    "- `spill log` prints how many requests each rule had in a run.\n"
    "\n"
    "If a rule's `place` is impossible, the request goes on as without `place`, and the log has the\n"
    "attempt. Examples are `place = split` in a strict stream capture, host memory beyond\n"
    "`host.limit`, and a device that does not support the place.\n";

void print_values(const struct spill_option *row)
{
	const struct spill_kind *kind = spill_option_kind(row);

	printf("%s%s", kind->values, kind->with_words ? row->values : "");
}

static void print_table(void)
{
	char name[64];

	puts("| option | variable | values | default | meaning |\n|---|---|---|---|---|");
	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);

		spill_option_name(slot, name, sizeof(name));
		printf("| `%s` |", name);
		spill_option_variable(slot, name, sizeof(name));
		printf(" `%s` | ", name);
		print_values(row);
		printf(*row->initial ? " | `%s` |" : " | %s|", row->initial);
		printf(" %s |\n", row->meaning);
	}
}

static const char profiles[] =
    "\n"
    "## Profiles: `spill.profile = NAME`\n"
    "\n"
    "A profile is a shipped policy to start from. It is the last source before the defaults, and its\n"
    "rules come after all others. A rule of the same name in your file replaces the profile's rule. The\n"
    "text is installed as `share/spill/profiles/NAME.conf`, to read, or to copy and change.\n"
    "\n";

/* Prints the first paragraph of its comment, which begins with "# NAME: ". */
static void print_profile(const struct spill_profile *profile)
{
	const char *line = profile->text + strlen("# ") + strlen(profile->name);

	printf("- `%s`", profile->name);
	while (*line != '\n') {
		size_t length = strcspn(line, "\n");

		printf("%.*s", (int)length, line);
		line += length + strlen("\n#");
	}
	puts("");
}

/* Keys of rules: acts, or matches. */
static void print_rule_table(bool acts)
{
	puts("\n| key | values | meaning |\n|---|---|---|");
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++) {
		const struct spill_rule_option *key = spill_rule_option_row(row);

		if (!!(key->bit & SPILL_RULE_ACTS) != acts)
			continue;
		printf("| `%s` | ", key->option.key);
		print_values(&key->option);
		printf(" | %s |\n", key->option.meaning);
	}
}

static void print_document(void)
{
	fputs(head, stdout);
	puts("\n## Options\n");
	print_table();
	printf("\n`[device N]` (N from 0 to %d) sets", SPILL_DEVICES - 1);
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES)
		printf("%s `%s`", slot == SPILL_OPTIONS ? "" : " or", spill_option_row(slot)->key);
	fputs(" for one device. Its variables are\n", stdout);
	for (unsigned slot = SPILL_OPTIONS + 1; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES) {
		char name[64];

		spill_option_variable(slot, name, sizeof(name));
		printf("%s`%s`", slot == SPILL_OPTIONS + 1 ? "" : ", ", name);
	}
	puts(".");
	fputs(chain, stdout);
	printf(app, SPILL_INI_APPS);
	printf(rules, SPILL_RULES);
	puts("\nKeys by which a rule matches:");
	print_rule_table(false);
	puts("\nKeys by which it acts:");
	print_rule_table(true);
	fputs(profiles, stdout);
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++)
		print_profile(profile);
}

/* -- libspill(7): a line for each variable, as scdoc(5), in place of its line @TABLE@ ----------- */

/* Escapes the characters of scdoc. */
static void put_escaped(const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_+", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void print_variables(void)
{
	char name[64];

	for (unsigned slot = 0; slot < SPILL_OPTIONS; slot++) {
		const struct spill_option *row = spill_option_row(slot);

		spill_option_variable(slot, name, sizeof(name));
		putchar('*');
		put_escaped(name);
		fputs("*: ", stdout);
		print_values(row);
		fputs(" (", stdout);
		put_escaped(*row->initial ? row->initial : "empty");
		puts(slot + 1 < SPILL_OPTIONS ? ")++" : ")");
	}
}

/* -- a dictionary for libFuzzer (-dict=FILE) ---------------------------------------------------- */

/* No word of the table has characters that a dictionary must escape. */
static void print_row_words(const struct spill_option *row)
{
	const char *word;
	size_t at = 0, length;

	printf("\"%s = \"\n\"[%s]\"\n", row->key, row->section);
	if (*row->initial)
		printf("\"%s\"\n", row->initial);
	while (spill_option_item(row->values, &at, &word, &length))
		printf("\"%.*s\"\n", (int)length, word);
}

static void print_words(void)
{
	puts("\"[rule a]\"\n\"[app a]\"\n\"[device 1]\"\n\"..\"\n\"GiB\"\n\"%\"\n\"ms\"");
	for (unsigned row = 0; row < SPILL_OPTIONS; row++)
		print_row_words(spill_option_row(row));
	for (unsigned row = 0; row < SPILL_RULE_OPTIONS; row++)
		print_row_words(&spill_rule_option_row(row)->option);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "--sample"))
		print_sample();
	else if (!strcmp(what, "--variables"))
		print_variables();
	else if (!strcmp(what, "--words"))
		print_words();
	else
		print_document();
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
