/* The records that `spill log` shows, by its options. */
#ifndef SPILL_CLI_LOG_FILTER_H
#define SPILL_CLI_LOG_FILTER_H

#include "call.h"
#include "record_read.h"

struct log_filter {
	uint64_t kinds;     /* bit 1 << kind; 0: all */
	const char *caller; /* a pattern; NULL: all */
	uint64_t since_us;
};

/* Takes an option of the command, if it is one of the filter's. A bad value ends the call. */
void log_filter_take(struct log_filter *filter, struct cli_call *call);

/* True if a record may be left out. */
bool log_filter_any(const struct log_filter *filter);

bool log_filter_shows(const struct log_filter *filter, const struct spill_record *record);

#endif
