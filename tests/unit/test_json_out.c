/* JSON that is written while it is built: in a page of HTML, and values that are longer than the room for one. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "json_out.h"

static char *told;
static size_t told_size;
static FILE *page;
static struct spill_json json;

static void begin(void)
{
	page = open_memstream(&told, &told_size);
	assert_non_null(page);
	cli_json_begin_page(&json, page);
	spill_json_object(&json);
}

static void ends_as(const char *expected)
{
	spill_json_object_end(&json);
	cli_json_end(&json);
	fclose(page);
	assert_string_equal(told, expected);
	free(told);
}

/* No text may end the element of the page that it is in. */
TEST(what_html_could_read_is_escaped)
{
	begin();
	cli_json_text(&json, "a", "</script><!--&amp;");
	ends_as("{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026amp;\"}\n");
	begin();
	/* Separators of lines and of paragraphs are unprintable; what is beside them is not. */
	cli_json_text(&json, "a", "x\u2027\u2028\u2029\u2030\u00a8\u0428y");
	cli_json_text(&json, "b", "\033[31m\"");
	cli_json_text(&json, "c", NULL);
	ends_as("{\"a\":\"x\u2027??\u2030\u00a8\u0428y\",\"b\":\"?[31m\\\"\",\"c\":null}\n");
	/* Names of members, too. */
	begin();
	cli_json_number(&json, "\u2028\u2029\u2027\u2030<", 1);
	ends_as("{\"\\u2028\\u2029\u2027\u2030\\u003c\":1}\n");
}

TEST(values)
{
	begin();
	cli_json_rate(&json, "rate", 0.5);
	cli_json_rate(&json, "none", 0);
	cli_json_rate(&json, "less", -1);
	cli_json_rate(&json, "more", 1234567.8);
	cli_json_device(&json, 3);
	cli_json_device(&json, 0);
	cli_json_device(&json, -1);
	cli_json_bool(&json, "yes", true);
	ends_as("{\"rate\":0.500,\"none\":null,\"less\":null,\"more\":1234567.800,\"dev\":3,\"dev\":0,"
	        "\"dev\":null,"
	        "\"yes\":true}\n");
	begin();
	cli_json_bytes(&json, "held", &(struct spill_bytes){1, 2, 3});
	ends_as("{\"held\":{\"device_bytes\":1,\"host_bytes\":2,\"managed_bytes\":3}}\n");
}

/* All of them are told, however many there are and whatever they are written as. */
TEST(long_texts_and_lists)
{
	enum { LONG = 8192, MANY = 9000 };
	char text[LONG + 2];
	size_t begun;

	memset(text, '\1', sizeof(text) - 1); /* an escape of six bytes each, but "?" on a page */
	text[LONG + 1] = '\0';
	begin();
	spill_json_array(cli_json_key(&json, "list"));
	for (unsigned i = 0; i < 20; i++)
		cli_json_text_element(&json, text);
	for (unsigned i = 0; i < MANY; i++)
		spill_json_u64(cli_json_element(&json), 1000000);
	spill_json_array_end(&json);
	spill_json_object_end(&json);
	cli_json_end(&json);
	fclose(page);
	begun = strlen("{\"list\":[");
	assert_int_equal(told_size, begun + 20 * (LONG + 3) + MANY * 8 - 1 + strlen("]}\n"));
	assert_int_equal(strspn(told + begun + 1, "?"), LONG);
	assert_string_equal(told + told_size - 20, "0,1000000,1000000]}\n");
	free(told);
}

/* On standard output it is told as it is. */
TEST(lines)
{
	char *kept;
	size_t size;
	FILE *before = stdout;

	stdout = open_memstream(&kept, &size);
	cli_json_begin(&json);
	spill_json_object(&json);
	cli_json_text(&json, "a", "<b>\1");
	spill_json_object_end(&json);
	cli_json_end(&json);
	cli_print_item(NULL, "an item\1");
	fclose(stdout);
	stdout = before;
	assert_string_equal(kept, "{\"a\":\"<b>\\u0001\"}\nan item?\n");
	free(kept);
}
