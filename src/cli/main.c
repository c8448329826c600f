#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "nearest.h"

static const struct cli_command commands[] = {
    {"run", cli_run, "run a program under libspill.so",
     "usage: spill run [-p POLICY] [-l LOG] [--limit SIZE] [--] CMD [ARG…]\n"
     "Runs CMD with libspill.so preloaded. CMD takes this process's place: pid, signals and exit status are "
     "its.\n"
     "  -p, --policy FILE   policy file (SPILL_POLICY)\n"
     "  -l, --log PATTERN   where the log goes: a pattern with %h host, %e program, %p pid, a folder, or "
     "off\n"
     "      --limit SIZE    most device memory the program may hold (SPILL_DEVICE_LIMIT)\n"
     "examples:\n"
     "  spill run -- llama-server -m model.gguf\n"
     "  spill run --limit 6GiB -- python3 train.py\n"
     "  spill run -p big.conf -l /tmp/%e-%p.jsonl -- ./program\n"},
    {"check", cli_check, "check policy files",
     "usage: spill check [--json] FILE…\n"
     "Prints the first error of each file as FILE:LINE:COL: message; of a file without one its rules, and "
     "which of\n"
     "them is never reached, since one before it matches all that it does. Exit 1 if a file has an error.\n"
     "examples:\n"
     "  spill check ~/.config/spill/spill.conf\n"
     "  spill check --json *.conf\n"},
    {"doctor", cli_doctor, "say what stands in the way of libspill here",
     "usage: spill doctor [--json] [--timeout SECONDS] [--root DIR] [--] [CMD [ARG…]]\n"
     "Looks at the driver, the devices, the host's memory, the environment and the policy, and at CMD's file "
     "without "
     "running it.\n"
     "Each finding says what there is, why it matters and what to do. Exit 1 if one is a problem or a "
     "warning.\n"
     "      --timeout SECONDS   for each vendor's driver, which is tried in a process of its own (30)\n"
     "      --root DIR          host, device files and container as seen in /proc, /sys, /dev and /etc below "
     "DIR\n"
     "examples:\n"
     "  spill doctor\n"
     "  spill doctor -- llama-server\n"
     "  spill doctor --json -- ./train.py | jq '.findings[] | select(.level != \"fact\")'\n"},
    {"log", cli_log, "print a log for people",
     "usage: spill log [--json] FILE\n"
     "Prints one line a decision. --json prints the file's records as one JSON array.\n"
     "examples:\n"
     "  spill log ~/.local/state/spill/llama-server-4711.jsonl\n"
     "  spill log --json run.jsonl | jq '.[] | select(.place == \"split\")'\n"},
    {"policy", cli_policy, "print the policy that a program would have",
     "usage: spill policy [--for PROGRAM] [--json]\n"
     "Prints the files that are looked for, and every option with its value and where it comes from: "
     "default, "
     "FILE:LINE,\n"
     "FILE:LINE [app NAME], profile NAME:LINE, or the environment's variable; then the rules in their order, "
     "and those\n"
     "that are hidden or never reached. Exit 1 if something is refused or unknown.\n"
     "      --for PROGRAM   as the library finds it in PROGRAM: by the executable's name or path, or an\n"
     "                      interpreter's script or -m module; without it, only what holds for any program\n"
     "examples:\n"
     "  spill policy\n"
     "  spill policy --for llama-server\n"
     "  SPILL_POLICY=big.conf spill policy --for train.py --json | jq -r '.options[].source'\n"},
    {"report", cli_report, "add up what recorded runs did",
     "usage: spill report [--json] [--margin SIZE] FILE|FOLDER…\n"
     "Says of each run whether anything spilled, how much, where, why and what would have avoided it, and "
     "whether the sums of its\n"
     "lines are what the program itself counted. Of a folder: all *.jsonl in it, one line a rank, and their "
     "sum. Exit 1 if an out\n"
     "of memory surfaced, sums differ or something cannot be read.\n"
     "      --margin SIZE   what is to stay free of each device in the table of what fits (1GiB)\n"
     "      --json          the same as one JSON object, sizes in bytes\n"
     "examples:\n"
     "  spill report ~/.local/state/spill/llama-server-4711.jsonl\n"
     "  spill report --margin 512MiB ranks/\n"
     "  spill report --json ranks/ | jq '.runs[] | [.rank, .totals.peak.device_bytes]'\n"},
    {"version", cli_version, "print the version",
     "usage: spill version [--json]\n"
     "examples:\n"
     "  spill version\n"
     "  spill version --json\n"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct cli_command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "spill%s%s: ", *command ? " " : "", command);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\ntry: spill %s%s--help\n", command, *command ? " " : "");
	return CLI_USAGE;
}

int cli_unknown_option(const char *command, char **argv, const struct option *options)
{
	const char *argument = argv[optind - 1];
	size_t length = strcspn(argument, "=");
	struct spill_nearest nearest;

	/* A letter of several in one argument, which is not yet behind us. */
	if (optopt && (strncmp(argument, "--", 2) || !argument[length]))
		return cli_usage(command, "unknown option '-%c'", optopt);
	if (optopt)
		return cli_usage(command, "option '%.*s' takes no value", (int)length, argument);
	spill_nearest_begin(&nearest, argument + 2, length - 2);
	for (; options->name; options++)
		spill_nearest_offer(&nearest, options->name, strlen(options->name));
	if (spill_nearest_word(&nearest))
		return cli_usage(command, "unknown option '%s'; the nearest is '--%s'", argument,
		                 spill_nearest_word(&nearest));
	return cli_usage(command, "unknown option '%s'", argument);
}

int cli_help(const char *command)
{
	fputs(find(command)->help, stdout);
	return cli_finish(CLI_FINE);
}

int cli_finish(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("spill: standard output");
		return CLI_FINDINGS;
	}
	return status;
}

bool cli_plain_options(int argc, char **argv, bool *json, int *status)
{
	static const struct option options[] = {
	    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	int option;

	*json = false;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'j') {
			*json = true;
			continue;
		}
		*status = option == 'h' ? cli_help(argv[0]) : cli_unknown_option(argv[0], argv, options);
		return false;
	}
	return true;
}

void cli_print_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

int cli_version(int argc, char **argv)
{
	bool json;
	int status;

	if (!cli_plain_options(argc, argv, &json, &status))
		return status;
	if (optind < argc)
		return cli_usage(argv[0], "unexpected argument '%s'", argv[optind]);
	printf(json ? "{\"version\":\"%s\"}\n" : "spill %s\n", SPILL_VERSION);
	return cli_finish(CLI_FINE);
}

static int print_commands(void)
{
	puts("usage: spill COMMAND [ARG…]\n"
	     "Lets a program that needs more GPU memory than there is finish, and says what was placed "
	     "where.\n\ncommands:");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].summary);
	puts("\n'spill COMMAND --help' shows its options and examples. Exit: 0 fine, 1 findings, 2 wrong "
	     "usage.\n"
	     "example:\n  spill run -- llama-server -m model.gguf");
	return cli_finish(CLI_FINE);
}

int main(int argc, char **argv)
{
	const struct cli_command *command;
	struct spill_nearest nearest;

	if (argc < 2)
		return cli_usage("", "which command?");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2))
		return print_commands();
	if (!strcmp(argv[1], "help") && find(argv[2]))
		return cli_help(argv[2]);
	command = find(!strcmp(argv[1], "--version") ? "version" : argv[1]);
	if (command)
		return command->run(argc - 1, argv + 1);
	spill_nearest_begin(&nearest, argv[1], strlen(argv[1]));
	for (size_t i = 0; i < COMMANDS; i++)
		spill_nearest_offer(&nearest, commands[i].name, strlen(commands[i].name));
	if (spill_nearest_word(&nearest))
		return cli_usage("", "unknown command '%s'; the nearest is '%s'", argv[1],
		                 spill_nearest_word(&nearest));
	return cli_usage("", "unknown command '%s'", argv[1]);
}
