/* A `spill` that was built where the charts' library was missing says so, and writes nothing. */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "report.h"

#define WAY "page.html"

/* What html/gen_page.py makes then. */
const char cli_page_before[] = "", cli_page_after[] = "";

void cli_report_page(FILE *out, const struct cli_report *report, const struct cli_stories *stories)
{
	fail_msg("a page without a frame");
}

TEST(without_the_library)
{
	struct cli_report report = {.summaries = {.count = 1}};

	assert_false(cli_report_html(&report, NULL, WAY));
	assert_int_equal(access(WAY, F_OK), -1);
	assert_false(cli_report_html(&report, NULL, "-"));
}

int main(void)
{
	char folder[] = "/tmp/spill-unit-XXXXXX";
	return run_unit_tests_in(folder);
}
