/*
 * Build-time tool: gen_man NAME SECTION SUMMARY reads Markdown and prints a manual page, man(7),
 * that refers to our other pages. It knows headings, paragraphs, `code`, indented code, lists,
 * links and tables. Of a link the words stay. A row of a table becomes a paragraph with the first
 * cell as its title, and the other cells behind the names of their columns.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 8

static char columns[COLUMNS][64]; /* names of the current table */
static unsigned column_count;
static bool in_table, in_code;

/* Escapes characters that roff would change. code: a hyphen becomes a minus. */
static void print_character(char c, bool code)
{
	switch (c) {
	case '\\':
		fputs("\\e", stdout);
		break;
	case '~':
		fputs("\\(ti", stdout);
		break;
	case '^':
		fputs("\\(ha", stdout);
		break;
	case '\'':
		fputs("\\(aq", stdout);
		break;
	case '-':
		fputs(code ? "\\-" : "-", stdout);
		break;
	default:
		putchar(c);
	}
}

/* [words](target): length of the words, or 0 if it is no link. */
static size_t link_words(const char *text, size_t length)
{
	size_t words = strcspn(text, "]");

	return *text == '[' && words + 1 < length && text[words + 1] == '(' ? words : 0;
}

/* A line of text; `code` is bold. */
static void print_text(const char *text, size_t length)
{
	bool code = false;
	size_t words;

	if (length && (*text == '.' || *text == '\''))
		fputs("\\&", stdout);
	for (size_t i = 0; i < length; i++) {
		words = code ? 0 : link_words(text + i, length - i);
		if (words) {
			print_text(text + i + 1, words - 1);
			i += words + strcspn(text + i + words, ")");
			continue;
		}
		if (text[i] != '`') {
			print_character(text[i], code);
			continue;
		}
		code = !code;
		fputs(code ? "\\fB" : "\\fR", stdout);
	}
}

/* The next cell of a row without blanks, or NULL. pre: no cell has a `|` */
static const char *next_cell(const char **row, size_t *length)
{
	const char *cell = *row + 1;
	size_t whole = strcspn(cell, "|");

	if (!cell[whole])
		return NULL;
	*row = cell + whole;
	for (; whole && *cell == ' '; whole--)
		cell++;
	while (whole && cell[whole - 1] == ' ')
		whole--;
	*length = whole;
	return cell;
}

static void begin_table(const char *row)
{
	const char *cell;
	size_t length;

	in_table = true;
	for (column_count = 0; column_count < COLUMNS && (cell = next_cell(&row, &length)); column_count++)
		snprintf(columns[column_count], sizeof(columns[0]), "%.*s", (int)length, cell);
}

static void print_row(const char *row)
{
	bool any = false;
	const char *cell;
	size_t length;

	if (!strncmp(row, "|---", 4))
		return;
	for (unsigned i = 0; i < column_count && (cell = next_cell(&row, &length)); i++) {
		bool last = i + 1 == column_count;

		if (i && !length)
			continue;
		if (!i)
			fputs(".TP\n", stdout);
		else if (last)
			fputs(any ? ".\n.br\n" : "", stdout);
		else
			printf("%s%s: ", any ? "; " : "", columns[i]);
		print_text(cell, length);
		if (!i || last)
			putchar('\n');
		else
			any = true;
	}
}

/* Headings are in capitals, except for code. */
static void print_heading(const char *text)
{
	bool code = false;

	fputs(".SH \"", stdout);
	for (; *text; text++) {
		if (*text == '`')
			code = !code;
		else
			putchar(!code && *text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
	}
	puts("\"");
}

static void print_code(const char *text)
{
	if (!in_code)
		puts(".PP\n.RS 4\n.EX");
	in_code = true;
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++)
		print_character(*text, true);
	putchar('\n');
}

static void print_line(const char *line)
{
	bool table = *line == '|', code = !strncmp(line, "    ", 4);

	if (in_code && !code)
		puts(".EE\n.RE");
	in_code = in_code && code;
	if (table && !in_table)
		begin_table(line);
	else if (table)
		print_row(line);
	in_table = table;
	/* main prints the title. Readers of a manual do not need the note on generation. */
	if (table || !strncmp(line, "# ", 2) || !strncmp(line, "Generated from ", 15) ||
	    !strncmp(line, "<!--", 4))
		return;
	if (code) {
		print_code(line + 4);
	} else if (!strncmp(line, "## ", 3)) {
		print_heading(line + 3);
	} else if (!*line) {
		puts(".PP");
	} else if (!strncmp(line, "- ", 2)) {
		puts(".IP \\(bu 2");
		print_text(line + 2, strlen(line + 2));
		putchar('\n');
	} else {
		size_t number = strspn(line, "0123456789");

		if (number && !strncmp(line + number, ". ", 2)) {
			printf(".IP %.*s. 4\n", (int)number, line);
			line += number + 2;
		}
		line += strspn(line, " ");
		print_text(line, strlen(line));
		putchar('\n');
	}
}

static void print_see_also(const char *name)
{
	static const struct {
		const char *name, *section;
	} pages[] = {{"spill", "1"}, {"spill.conf", "5"}, {"spill-log", "5"}, {"libspill", "7"}};
	const char *between = "";

	puts(".SH \"SEE ALSO\"");
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (!strcmp(pages[i].name, name))
			continue;
		printf("%s\\fB", between);
		for (const char *c = pages[i].name; *c; c++)
			print_character(*c, true);
		printf("\\fR(%s)", pages[i].section);
		between = ", ";
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	if (argc != 4) {
		fputs("usage: gen_man NAME SECTION SUMMARY < FILE.md\n", stderr);
		return 2;
	}
	printf(".TH %s %s \"\" \"libspill\"\n.SH NAME\n%s \\- %s\n.nh\n.ad l\n.SH DESCRIPTION\n", argv[1],
	       argv[2], argv[1], argv[3]);
	while (getline(&line, &size, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		print_line(line);
	}
	free(line);
	print_line("");
	print_see_also(argv[1]);
	return ferror(stdin) || ferror(stdout) || fflush(stdout) ? 1 : 0;
}
