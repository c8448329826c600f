/* spill top --once: prints one look as plain text. */
#include <stdio.h>

#include "put.h"
#include "top.h"

static void put_card(const struct cli_top_card *card)
{
	const struct spill_live_page_device *about = &card->device->about;

	printf("device %u", card->number);
	if (about->name[0])
		cli_printf(" %s", about->name);
	if (about->pci[0])
		cli_printf(" (%s)", about->pci);
	cli_printf(": %s", spill_size(card->held).text);
	if (about->bytes)
		cli_printf(" of %s", spill_size(about->bytes).text);
	cli_printf(" held by %u process%s", card->users, card->users == 1 ? "" : "es");
	if (card->others != UINT64_MAX)
		cli_printf(", %s by others", spill_size(card->others).text);
	for (unsigned i = 0; i < card->named; i++) {
		char other[CLI_CARD_USER_TEXT];
		cli_printf("%s%s%s", i ? ", " : " (", cli_card_user_text(&card->other[i], other),
		           i + 1 == card->named ? ")" : "");
	}
	if (card->users && card->limit != UINT64_MAX)
		cli_printf(", limit %s", spill_size(card->limit).text);
	cli_printf(", spilled %s\n", spill_size(card->away).text);
}

/* The width of the column's longest cell. The last column is not padded. */
static unsigned width_of(const struct cli_top_look *look, const struct cli_top_view *view,
                         enum cli_top_column column)
{
	size_t width = cli_top_heads[column].width;
	char cell[1024];

	for (size_t i = 0; i < view->count; i++) {
		cli_top_cell(&view->rows[i], column, look->wall_us, cell, sizeof(cell));
		if (cli_top_columns(cell) > width)
			width = cli_top_columns(cell);
	}
	return (unsigned)width;
}

static void put_cell(const char *cell, enum cli_top_column column, unsigned width)
{
	char text[2048];

	if (column == CLI_TOP_DECISION)
		width = cli_top_columns(cell);
	cli_top_pad(cell, width, cli_top_is_left(column), text, sizeof(text));
	cli_printf("%s%s", column ? " " : "", text);
}

void cli_top_text(const struct cli_top_look *look, const struct cli_top_view *view)
{
	unsigned width[CLI_TOP_COLUMN_COUNT];
	char text[1024];

	for (size_t i = 0; i < view->card_count; i++)
		put_card(&view->cards[i]);
	for (unsigned column = 0; column < CLI_TOP_COLUMN_COUNT; column++) {
		width[column] = width_of(look, view, column);
		if (view->count)
			put_cell(cli_top_heads[column].title, column, width[column]);
	}
	if (view->count)
		putchar('\n');
	for (size_t i = 0; i < view->count; i++) {
		for (unsigned column = 0; column < CLI_TOP_COLUMN_COUNT; column++) {
			cli_top_cell(&view->rows[i], column, look->wall_us, text, sizeof(text));
			put_cell(text, column, width[column]);
		}
		putchar('\n');
	}
	cli_top_remark(look, view->count, text, sizeof(text));
	if (*text)
		cli_printf("%s\n", text);
}
