/* spill check: what the preload would say about policy files, before a program runs. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "configfile.h"
#include "ini_file.h"

/* True if the preload would take the file; else why not. */
static bool check(const char *path, char *problem, size_t size)
{
	size_t length;
	char *data;
	bool good;

	switch (spill_configfile_read(path, &data, &length, problem, size)) {
	case SPILL_CONFIGFILE_ABSENT:
		snprintf(problem, size, "%s: no such file, or in a folder closed to us", path);
		return false;
	case SPILL_CONFIGFILE_BAD:
		return false;
	case SPILL_CONFIGFILE_READ:
		break;
	}
	good = spill_ini_read(path, data, length, NULL, NULL, problem, size);
	free(data);
	return good;
}

int cli_check(int argc, char **argv)
{
	char problem[4096 + 1024];
	int status;
	bool json;

	if (!cli_plain_options(argc, argv, &json, &status))
		return status;
	if (optind == argc)
		return cli_usage(argv[0], "which file?");
	status = CLI_FINE;
	if (json)
		putchar('[');
	for (int i = optind; i < argc; i++) {
		bool good = check(argv[i], problem, sizeof(problem));

		if (!good)
			status = CLI_FINDINGS;
		if (!json) {
			printf(good ? "%s: ok\n" : "%s\n", good ? argv[i] : problem);
			continue;
		}
		fputs(i > optind ? ",{\"file\":" : "{\"file\":", stdout);
		cli_print_json_string(stdout, argv[i]);
		printf(",\"ok\":%s", good ? "true" : "false");
		if (!good) {
			fputs(",\"error\":", stdout);
			cli_print_json_string(stdout, problem);
		}
		putchar('}');
	}
	if (json)
		puts("]");
	return cli_finish(status);
}
