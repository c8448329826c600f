/*
 * Build-time tool: prints docs/options.md from policy/options/options.def; a test compares. With --sample: the example policy;
 * with --variables: the variables, for libspill(7); with --words: a dictionary for the fuzzer.
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
    "compares. A sample\n"
    "with comments: [policy.md](policy.md).\n"
    "\n"
    "A policy file has `[section]` lines and `key = value` lines; a comment is a line of its own that "
    "begins\n"
    "with `#`. Sizes are plain bytes or `512MiB`, `4.5GiB` (B, KiB, MiB, GiB, TiB, all binary: 1 KiB is "
    "1024\n"
    "bytes), percentages `75%`, times `250ms`, `1.5s` (us, ms, s, min, h). An unknown name, a bad value or "
    "a\n"
    "duplicate is an error with file, line and column, and the whole "
    "file "
    "is\n"
    "refused: the defaults then hold with `mode = observe`. `spill check FILE` tells before a program does.\n"
    "\n"
    "Each option is looked up in this order, the first that sets it wins: its environment variable; the file "
    "named by\n"
    "`SPILL_POLICY`; `$XDG_CONFIG_HOME/spill/PROGRAM.conf` (`~/.config` if unset); "
    "`$XDG_CONFIG_HOME/spill/spill.conf`;\n"
    "`/etc/spill/spill.conf`; the profile that `spill.profile` names; the default. PROGRAM is the "
    "executable's "
    "name, or for\n"
    "interpreters the script or `-m` module. A file must be regular, belong to the user or to root, and not "
    "be "
    "writable by\n"
    "others. `SPILL=0` switches everything off; `SPILL_LOG` is another name of `SPILL_LOG_PATH`. A "
    "privileged "
    "program reads\n"
    "`/etc/spill/spill.conf` and the profile that it names only, and writes no log.\n"
    "`spill policy --for PROGRAM` prints what holds for a program, and where each value comes from.\n"
    "\n"
    "So `/etc/spill/spill.conf` is what an administrator gives to all users as a start, with `[app NAME]` "
    "and rules of\n"
    "`program` for some programs; each user may set any of it otherwise, or `SPILL=0`. It bounds nobody who "
    "does not want\n"
    "to be bound. What held in a run stands in the first line of its log, each value with its source (`spill "
    "log`).\n";

static const char app[] = "\n## For one program: `[app NAME]`\n"
                          "\n"
                          "A section for the programs that NAME matches, in a file that several share. NAME "
                          "is a PROGRAM as above or a\n"
                          "pattern of such names: `*` is any characters, `?` any one. Its keys are any of "
                          "the options above by their whole\n"
                          "names:\n"
                          "\n"
                          "    [device]\n"
                          "    reserve = 256MiB\n"
                          "    [app llama-*]\n"
                          "    device.limit = 10GiB\n"
                          "    movable.enable = on\n"
                          "\n"
                          "Its values come before those of the file's other sections, wherever it stands in "
                          "the file, and of several\n"
                          "sections that match the first that has the key; what comes before the file in the "
                          "order above still wins over\n"
                          "them. `[device N]` is for all programs, and its values hold for its device "
                          "whatever `[app NAME]` says of the\n"
                          "others. Sections of other programs are checked as strictly. A NAME that stands "
                          "there twice is an error, and so is\n"
                          "one with a `/`; at most %d sections a file.\n";

static const char rules[] =
    "\n## Rules: `[rule NAME]`\n"
    "\n"
    "A rule is a section of its own, with a name that the log tells wherever it decided. It has keys by "
    "which "
    "it matches a\n"
    "request, all of which have to fit (with none of them it matches every request), and keys by which it "
    "acts, of which it\n"
    "needs one:\n"
    "\n"
    "    [rule kv-cache]\n"
    "    size = 256MiB..\n"
    "    caller = libggml-*.so*\n"
    "    place = split\n"
    "\n"
    "The first rule that matches a request is the one that counts, whole: what it does not say is as without "
    "any rule, and\n"
    "no later rule adds to it. The order is that of the sources: the rules of an earlier file first, within "
    "a file from its\n"
    "top. A NAME that an earlier file has used hides the rule of that name in a later one; the same NAME "
    "twice in one file is\n"
    "an error. A rule for another `program` is as if it were not there. At most %d rules hold for a program, "
    "and as many may\n"
    "stand in one file. Rules have no variables. A pattern is as that of `[app NAME]`,\n"
    "and one: for two libraries write two rules. `spill check` and `spill policy` tell of a rule that is "
    "never reached, since one\n"
    "before it matches all that it does; `spill log`, how many requests each rule had in a run.\n"
    "\n"
    "What a rule cannot have (`place = split` in a stream capture, host memory beyond `host.limit`, a device "
    "that cannot do it)\n"
    "goes on as if the rule had no `place`, and the log says what was tried.\n";

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
    "\n## Profiles: `spill.profile = NAME`\n"
    "\n"
    "A profile is a shipped policy, as a start: it is the lowest source before the defaults, and its rules "
    "are "
    "behind all\n"
    "others. Its text is in the library, and installed as `share/spill/profiles/NAME.conf`, to be read or "
    "copied and changed; a\n"
    "rule of the same name in a file of yours stands instead of the profile's.\n"
    "\n";

/* The first paragraph of its comment: "# NAME: what for" and on. */
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

/* Of rules: what they match by, or what they act by. */
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
	printf("\n`[device N]` (N from 0 to %d) takes", SPILL_DEVICES - 1);
	for (unsigned slot = SPILL_OPTIONS; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES)
		printf("%s `%s`", slot == SPILL_OPTIONS ? "" : " and", spill_option_row(slot)->key);
	fputs(", for one device; variables:\n", stdout);
	for (unsigned slot = SPILL_OPTIONS + 1; slot < SPILL_OPTION_SLOTS; slot += SPILL_DEVICES) {
		char name[64];

		spill_option_variable(slot, name, sizeof(name));
		printf("%s`%s`", slot == SPILL_OPTIONS + 1 ? "" : ", ", name);
	}
	puts(". A default of `auto` in `oom.chain` is `trim, demote, split, managed, "
	     "host` as far\n"
	     "as the device can do them; with `device.memory = integrated` it is `trim, managed, host`, with "
	     "`coherent` managed\n"
	     "comes before split.");
	printf(app, SPILL_INI_APPS);
	printf(rules, SPILL_RULES);
	puts("\nA rule matches by:");
	print_rule_table(false);
	puts("\nand acts by:");
	print_rule_table(true);
	fputs(profiles, stdout);
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++)
		print_profile(profile);
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
