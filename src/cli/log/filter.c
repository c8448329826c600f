#include "filter.h"

#include <string.h>

#include "amount.h"
#include "files.h"
#include "glob.h"
#include "nearest.h"
#include "text.h"

static const char *list_kinds(char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);

	for (unsigned kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		spill_text_add(&text, " ");
		spill_text_add(&text, spill_kind_name(kind));
	}
	return buffer;
}

static void take_kind(struct log_filter *filter, struct cli_call *call)
{
	char text[256];
	struct spill_nearest nearest;
	spill_nearest_begin(&nearest, call->value, strlen(call->value));
	for (unsigned kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		const char *name = spill_kind_name(kind);
		spill_nearest_offer(&nearest, name, strlen(name));
		if (!strcmp(name, call->value)) {
			filter->kinds |= (uint64_t)1 << kind;
			return;
		}
	}
	if (spill_nearest_word(&nearest))
		cli_call_refuse(call, "no kind '%s'; the nearest is '%s'", call->value,
		                spill_nearest_word(&nearest));
	else
		cli_call_refuse(call, "no kind '%s'; the kinds are%s", call->value,
		                list_kinds(text, sizeof(text)));
}

static void take_since(struct log_filter *filter, struct cli_call *call)
{
	size_t at;
	const char *reason = spill_time_parse(call->value, &filter->since_us, &at);
	if (reason)
		cli_call_refuse(call, "bad --since '%s': %s", call->value, reason);
}

void log_filter_take(struct log_filter *filter, struct cli_call *call)
{
	if (call->option == CLI_log_kind)
		take_kind(filter, call);
	else if (call->option == CLI_log_caller)
		filter->caller = call->value;
	else if (call->option == CLI_log_since)
		take_since(filter, call);
}

bool log_filter_any(const struct log_filter *filter)
{
	return filter->kinds || filter->caller || filter->since_us;
}

/* NULL: the record has none. */
static const char *requester_of(const struct spill_record *record)
{
	if (record->kind == SPILL_KIND_ALLOC)
		return record->alloc.requester;
	return record->kind == SPILL_KIND_OOM ? record->oom.requester : NULL;
}

/* NULL: the record has none. */
static const char *caller_of(const struct spill_record *record)
{
	switch (record->kind) {
	case SPILL_KIND_ALLOC:
		return record->alloc.caller;
	case SPILL_KIND_MOVE:
		return record->move.caller;
	case SPILL_KIND_SUM:
		return record->sum.caller;
	case SPILL_KIND_OOM:
		return record->oom.caller;
	default:
		return NULL;
	}
}

/* "libfoo.so+0x12ab" is matched as a whole, and without the offset. */
static bool is_from(const char *pattern, const char *caller)
{
	char object[256];
	if (!caller)
		return false;
	size_t length = cli_caller_object(caller);
	if (spill_glob(pattern, caller))
		return true;
	if (!caller[length] || length >= sizeof(object))
		return false;
	memcpy(object, caller, length);
	object[length] = '\0';
	return spill_glob(pattern, object);
}

bool log_filter_shows(const struct log_filter *filter, const struct spill_record *record)
{
	if (filter->kinds && (record->kind == SPILL_KINDS_COUNT || !(filter->kinds >> record->kind & 1)))
		return false;
	if (filter->caller && !is_from(filter->caller, caller_of(record)) &&
	    !is_from(filter->caller, requester_of(record)))
		return false;
	return record->time_us >= filter->since_us;
}
