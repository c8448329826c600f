/*
 * Build-time tool: gen_profiles FILE… prints files NAME.conf as the table spill_profiles
 * (ini_file.h).
 */
#include <stdio.h>
#include <string.h>

#include "glob.h"

/* In octal with three digits, so that a digit behind it is not part of it. */
static void print_byte(int c)
{
	if (c == '\n')
		fputs("\\n\"\n\t\"", stdout);
	else if (c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '?')
		printf("\\%03o", (unsigned)c);
	else
		putchar(c);
}

static int print_profile(const char *path)
{
	const char *name = spill_file_name(path), *end = strrchr(name, '.');
	FILE *file = fopen(path, "rb");
	size_t size = 0;
	int c;

	if (!file || !end) {
		fprintf(stderr, "gen_profiles: %s: cannot be read, or is not NAME.conf\n", path);
		return -1;
	}
	printf("\t{\"%.*s\",\n\t\"", (int)(end - name), name);
	for (; (c = getc(file)) != EOF; size++)
		print_byte(c);
	printf("\", %zu},\n", size);
	return ferror(file) | fclose(file);
}

int main(int argc, char **argv)
{
	puts("#include \"ini_file.h\"\n\nconst struct spill_profile spill_profiles[] = {");
	for (int i = 1; i < argc; i++) {
		if (print_profile(argv[i]))
			return 1;
	}
	puts("\t{NULL, NULL, 0},\n};");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
