/* A run's totals as named figures: what the lines say against what the program counted. */
#include <stddef.h>

#include "summary.h"

#define FIGURE(name, field) \
	{ \
		name, offsetof(struct spill_totals, field) \
	}
#define SUMS(name) \
	FIGURE(#name ".device_bytes", name.device), FIGURE(#name ".host_bytes", name.host), \
	    FIGURE(#name ".managed_bytes", name.managed)

/* Those that do not need every line come first: at log.level = spills only they can be held against each other. */
static const struct {
	const char *name;
	size_t offset;
} figures[CLI_DIFFERENCES] = {
    FIGURE("spills", spills),
    FIGURE("ooms", ooms),
    FIGURE("demotions", demotions),
    FIGURE("promotions", promotions),
    FIGURE("demoted_bytes", demoted),
    FIGURE("promoted_bytes", promoted),
    SUMS(spilled),
    FIGURE("allocs", allocs),
    FIGURE("frees", frees),
    SUMS(live),
    SUMS(peak),
};

#define WITHOUT_ROUTINE 9

bool cli_totals_figure(const struct spill_totals *totals, unsigned at, const char **name, uint64_t *value)
{
	if (at >= CLI_DIFFERENCES)
		return false;
	*name = figures[at].name;
	*value = *(const uint64_t *)((const char *)totals + figures[at].offset);
	return true;
}

unsigned cli_summary_differences(const struct cli_summary *summary, struct cli_difference differences[])
{
	unsigned count = 0, most = summary->all_told ? CLI_DIFFERENCES : WITHOUT_ROUTINE;

	for (unsigned i = 0; summary->exited && !summary->end.missing && i < most; i++) {
		struct cli_difference *at = &differences[count];

		cli_totals_figure(&summary->totals, i, &at->name, &at->lines);
		cli_totals_figure(&summary->told, i, &at->name, &at->exit);
		count += at->lines != at->exit;
	}
	return count;
}
