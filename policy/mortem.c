#include "mortem.h"

#include <string.h>

#include "advice.h"
#include "least.h"
#include "text.h"

/* The most of a name, and of a path, that is shown. */
#define NAME 72
#define PATH 1024
#define ADVICE 640

struct block {
	struct spill_text text;
	size_t line; /* where the last one begins */
	bool cut;
};

static void begin(struct block *block, const char *indent)
{
	block->line = block->text.length;
	spill_text_add(&block->text, "spill: ");
	spill_text_add(&block->text, indent);
}

/* A line that does not fit is left out as a whole. */
static void end(struct block *block)
{
	struct spill_text *text = &block->text;

	if (text->length < text->size - 1) {
		spill_text_add(text, "\n");
		return;
	}
	text->length = block->line;
	text->buffer[text->length] = '\0';
	block->cut = true;
}

static bool continues(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80; /* of a character of UTF-8 */
}

/* The end of what is too long: an offset, a file's name. What could steer a terminal is replaced. */
static void put_name(struct block *block, const char *name, size_t most)
{
	size_t length = name ? strlen(name) : 0;

	if (!length) {
		spill_text_add(&block->text, "?");
		return;
	}
	if (length > most) {
		name += length - most;
		while (continues(*name))
			name++;
		spill_text_add(&block->text, "…");
	}
	spill_text_plain(&block->text, name);
}

static void put(struct block *block, const char *text)
{
	spill_text_add(&block->text, text);
}

static void put_number(struct block *block, uint64_t number)
{
	spill_text_number(&block->text, number);
}

static void put_size(struct block *block, uint64_t bytes)
{
	spill_text_size(&block->text, bytes);
}

struct part {
	const char *before;
	uint64_t bytes;
	const char *behind;
};

/* "5.00 GiB device, 2.04 GiB host", what is 0 left out. */
static void put_parts(struct block *block, const struct part parts[3])
{
	const char *comma = "";

	for (unsigned i = 0; i < 3; i++) {
		if (!parts[i].bytes)
			continue;
		put(block, comma);
		put(block, parts[i].before);
		put_size(block, parts[i].bytes);
		put(block, parts[i].behind);
		comma = ", ";
	}
	if (!*comma)
		put(block, "nothing");
}

static void put_sums(struct block *block, const struct spill_bytes *sums)
{
	put_parts(block, (const struct part[]){{"", sums->device, " device"},
	                                       {"", sums->host, " host"},
	                                       {"", sums->managed, " managed"}});
}

/* "3 of 12 allocations" */
static void put_spills(struct block *block, const struct spill_totals *totals)
{
	put_number(block, totals->spills);
	put(block, " of ");
	put_number(block, totals->allocs);
	put(block, " allocations");
}

/* "llama-server: out of memory: 2.04 GiB of device 0 asked by libggml-cuda.so+0x1a2b (cudaMalloc)" */
static void tell_what(struct block *block, const struct spill_mortem *mortem,
                      const struct spill_record_oom *oom)
{
	begin(block, "");
	put_name(block, mortem->program, NAME);
	put(block, ": out of memory: ");
	put_size(block, oom->bytes);
	if (oom->device >= 0) {
		put(block, " of device ");
		put_number(block, (uint64_t)oom->device);
	}
	put(block, " asked by ");
	put_name(block, oom->caller, NAME);
	put(block, " (");
	put_name(block, oom->api, NAME);
	put(block, ")");
	end(block);
}

/* "spilled before: 2.04 GiB host in 3 of 12 allocations; moved to the host to make room: 1.00 GiB" */
static void tell_spilled(struct block *block, const struct spill_totals *totals)
{
	begin(block, "  spilled before: ");
	if (totals->spills) {
		put_sums(block, &totals->spilled);
		put(block, ", in ");
		put_spills(block, totals);
	} else {
		put(block, totals->demotions ? "" : "nothing");
	}
	if (totals->demotions) {
		put(block, totals->spills ? "; " : "");
		put_size(block, totals->demoted);
		put(block, " moved to the host to make room");
	}
	end(block);
}

/* "this process holds 7.00 GiB device, 2.04 GiB host (1.00 GiB on other devices); by place: split 5.04 GiB in 2, device 4.00 GiB in 12; by caller:" */
static void tell_held(struct block *block, const struct spill_record_oom *oom)
{
	uint64_t elsewhere = spill_oom_elsewhere(oom);

	begin(block, "  this process holds ");
	put_sums(block, &oom->live);
	if (elsewhere) {
		put(block, " (");
		put_size(block, elsewhere);
		put(block, " on other devices)");
	}
	for (unsigned i = 0; i < oom->places; i++) {
		const struct spill_group *place = &oom->by_place[i];

		put(block, i ? ", " : "; by place: ");
		put_name(block, place->name, NAME);
		put(block, " ");
		put_size(block, spill_bytes_all(&place->held));
		put(block, " in ");
		put_number(block, place->count);
	}
	if (oom->callers)
		put(block, "; by caller:");
	end(block);
}

static void tell_caller(struct block *block, const struct spill_group *caller)
{
	begin(block, "    ");
	put_size(block, spill_bytes_all(&caller->held));
	put(block, "  ");
	put_name(block, caller->name, NAME);
	put(block, "  in ");
	put_number(block, caller->count);
	put(block, caller->count == 1 ? " allocation: " : " allocations: ");
	put_sums(block, &caller->held);
	end(block);
}

/* What is held by those that are not named, either because there are more or because there was no room. */
static void tell_others(struct block *block, const struct spill_record_oom *oom, unsigned told)
{
	uint64_t rest = spill_less(spill_bytes_all(&oom->live), spill_oom_elsewhere(oom));

	for (unsigned i = 0; i < told; i++)
		rest = spill_less(rest, spill_bytes_all(&oom->by_caller[i].held));
	if (!rest || !oom->callers)
		return;
	begin(block, "    ");
	put_size(block, rest);
	put(block, "  others");
	end(block);
}

/* "device 0: 1.00 GiB free of 8.00 GiB; 5.00 GiB held by this process, 2.00 GiB by others, contexts and code" */
static void tell_device(struct block *block, const struct spill_record_oom *oom)
{
	uint64_t used = spill_less(oom->total, oom->free);

	if (!oom->total)
		return;
	begin(block, "  device ");
	put_number(block, oom->device >= 0 ? (uint64_t)oom->device : 0);
	put(block, ": ");
	put_size(block, oom->free);
	put(block, " free of ");
	put_size(block, oom->total);
	put(block, "; ");
	put_size(block, oom->ours);
	put(block, " held by this process, ");
	put_size(block, spill_less(used, oom->ours));
	put(block, " by others, contexts and code");
	end(block);
}

/*
 * "refused by host.limit (rule default): 8.00 GiB allowed, 6.00 GiB in use, 3.00 GiB more asked"; "… host.reserve …: 2.00 GiB to
 * stay free of 2.50 GiB, 1.00 GiB asked"
 */
static void tell_refused(struct block *block, const struct spill_record_oom *oom)
{
	const struct spill_refusal *refusal = &oom->refusal;

	begin(block, "  refused by ");
	put_name(block, oom->refused_by, NAME);
	put(block, " (rule ");
	put_name(block, oom->rule, NAME);
	put(block, ")");
	if (refusal->asked) {
		bool reserve = oom->refused_by && strcmp(oom->refused_by, "host.reserve") == 0;

		put(block, ": ");
		put_size(block, refusal->limit);
		put(block, reserve ? " to stay free of " : " allowed, ");
		put_size(block, refusal->held);
		put(block, reserve ? ", " : " in use, ");
		put_size(block, refusal->asked);
		put(block, reserve ? " asked" : " more asked");
	}
	end(block);
}

static void tell_tried(struct block *block, const struct spill_record_oom *oom)
{
	if (!oom->attempts)
		return;
	begin(block, "  tried ");
	for (unsigned i = 0; i < oom->attempts; i++) {
		put(block, i ? ", " : "");
		put_name(block, oom->tried[i].place, NAME);
		put(block, ": ");
		put_name(block, oom->tried[i].error, NAME);
	}
	end(block);
}

static void tell_help(struct block *block, const struct spill_record_oom *oom)
{
	char advice[ADVICE];
	struct spill_text text = spill_text_begin(advice, sizeof(advice));

	spill_advice_oom(&text, oom);
	begin(block, "  what would have helped: ");
	put_name(block, advice, sizeof(advice));
	end(block);
}

static void tell_log(struct block *block, const struct spill_mortem *mortem)
{
	begin(block, "  ");
	if (mortem->log[0]) {
		put(block, "log ");
		put_name(block, mortem->log, PATH);
	} else {
		put(block, "no log is written (log.path, log.level)");
	}
	end(block);
}

/* With so many of the callers at most. */
static void compose(struct block *block, const struct spill_mortem *mortem,
                    const struct spill_record_oom *oom, unsigned callers)
{
	tell_what(block, mortem, oom);
	tell_spilled(block, mortem->totals);
	tell_held(block, oom);
	for (unsigned i = 0; i < callers; i++)
		tell_caller(block, &oom->by_caller[i]);
	tell_others(block, oom, callers);
	tell_device(block, oom);
	tell_refused(block, oom);
	tell_tried(block, oom);
	tell_help(block, oom);
	tell_log(block, mortem);
}

size_t spill_mortem_oom(const struct spill_mortem *mortem, const struct spill_record_oom *oom, char *buffer,
                        size_t size)
{
	unsigned callers = oom->callers < SPILL_CALLERS ? oom->callers : SPILL_CALLERS;

	for (;; callers--) {
		struct block block = {.text = spill_text_begin(buffer, size)};

		compose(&block, mortem, oom, callers);
		if (!block.cut || !callers)
			return block.text.length;
	}
}

/* "llama-server: ended (exit); 2.04 GiB spilled in 3 of 12 allocations, 1 out of memory" */
static void tell_end(struct block *block, const struct spill_mortem *mortem, const char *how)
{
	const struct spill_totals *totals = mortem->totals;

	begin(block, "");
	put_name(block, mortem->program, NAME);
	put(block, ": ended (");
	put_name(block, how, NAME);
	put(block, "); ");
	if (totals->spills) {
		put_size(block, spill_bytes_all(&totals->spilled));
		put(block, " spilled in ");
		put_spills(block, totals);
	} else {
		put(block,
		    totals->demotions ? "no allocation spilled, but some were moved" : "nothing spilled");
	}
	put(block, ", ");
	put_number(block, totals->ooms);
	put(block, " out of memory");
	end(block);
}

static void put_moves(struct block *block, const char *what, uint64_t bytes, uint64_t count)
{
	if (!count)
		return;
	put(block, what);
	put_size(block, bytes);
	put(block, " in ");
	put_number(block, count);
	put(block, count == 1 ? " move" : " moves");
}

static void tell_where(struct block *block, const struct spill_totals *totals)
{
	begin(block, "  where: ");
	put_sums(block, &totals->spilled);
	put_moves(block, "; moved to the host ", totals->demoted, totals->demotions);
	put_moves(block, ", moved back ", totals->promoted, totals->promotions);
	end(block);
}

static void tell_why(struct block *block, const struct spill_why *why)
{
	if (!(why->oom | why->limit | why->rule))
		return;
	begin(block, "  why: ");
	put_parts(block, (const struct part[]){{"the device was full ", why->oom, ""},
	                                       {"a limit ", why->limit, ""},
	                                       {"a rule ", why->rule, ""}});
	end(block);
}

/* What was off the device at once is no more than all that ever left it, and no more than was ever elsewhere. */
static void tell_avoided(struct block *block, const struct spill_totals *totals)
{
	uint64_t left = spill_bytes_all(&totals->spilled) + totals->demoted;
	uint64_t elsewhere = totals->peak.host + totals->peak.managed;

	begin(block, "  avoided by: at most ");
	put_size(block, spill_least(left, elsewhere));
	put(block,
	    " less in use at once (a smaller context, batch or -ngl); spill report says it by device, caller "
	    "and rule");
	end(block);
}

static void tell_bytes(struct block *block, const char *what, const struct spill_bytes *bytes)
{
	begin(block, what);
	put(block, " device ");
	put_number(block, bytes->device);
	put(block, ", host ");
	put_number(block, bytes->host);
	put(block, ", managed ");
	put_number(block, bytes->managed);
	end(block);
}

static void tell_totals(struct block *block, const struct spill_totals *totals)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {{"allocs ", totals->allocs},           {", frees ", totals->frees},
	              {", spills ", totals->spills},         {", ooms ", totals->ooms},
	              {", demotions ", totals->demotions},   {", promotions ", totals->promotions},
	              {", demoted_bytes ", totals->demoted}, {", promoted_bytes ", totals->promoted}};

	begin(block, "  ");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		put(block, counts[i].name);
		put_number(block, counts[i].count);
	}
	end(block);
	tell_bytes(block, "  live bytes:", &totals->live);
	tell_bytes(block, "  peak bytes:", &totals->peak);
	tell_bytes(block, "  spilled bytes:", &totals->spilled);
}

size_t spill_mortem_exit(const struct spill_mortem *mortem, const char *how, const struct spill_why *why,
                         char *buffer, size_t size)
{
	struct block block = {.text = spill_text_begin(buffer, size)};
	const struct spill_totals *totals = mortem->totals;

	tell_end(&block, mortem, how);
	if (totals->spills || totals->demotions) {
		tell_where(&block, totals);
		tell_why(&block, why);
		tell_avoided(&block, totals);
	}
	tell_totals(&block, totals);
	tell_log(&block, mortem);
	return block.text.length;
}
