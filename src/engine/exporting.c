#include "exporting.h"

#include <stdatomic.h>
#include <stdio.h>

#include "caller.h"
#include "engine.h"
#include "hazards.h"
#include "glob.h"
#include "minmax.h"
#include "note.h"

/*
 * Call sites and sizes, each in one word; 0: free. Filled from the front and never emptied. When
 * the table is full, nothing more is learned.
 */
#define LEARNED 64

static _Atomic uint64_t learned[LEARNED];
static _Atomic(const struct spill_exporter *) noted; /* in the last note */

/* Addresses of a program have less than 58 bits. pre: bytes is not 0 */
static uint64_t key_of(const void *site, uint64_t bytes)
{
	return (uint64_t)(uintptr_t)site << 6 | (spill_size_class(bytes) - 1);
}

static bool is_learned(const void *site, uint64_t bytes)
{
	uint64_t key = key_of(site, bytes), other = key;
	for (unsigned i = 0; i < LEARNED && other; i++) {
		other = atomic_load_explicit(&learned[i], memory_order_relaxed);
		if (other == key)
			return true;
	}
	return false;
}

void spill_exporting_learn(const void *site, uint64_t bytes)
{
	uint64_t key;
	if (!site || !bytes)
		return;
	key = key_of(site, bytes);
	for (unsigned i = 0; i < LEARNED; i++) {
		uint64_t other = 0;
		if (atomic_compare_exchange_strong(&learned[i], &other, key) || other == key)
			return;
	}
}

static void note_exporter(const struct spill_exporter *exporter, const char *path)
{
	char text[512];
	if (atomic_exchange(&noted, exporter) == exporter)
		return;
	snprintf(
	    text, sizeof(text),
	    "memory that %.100s asks for stays plain and does not move: %s (movable.enable = on, or a rule "
	    "with place = movable, overrules this)",
	    spill_file_name(path), exporter->what);
	spill_note("movable", text);
}

/* Not inlined: a path takes much of the program's stack. */
static __attribute__((noinline)) bool is_listed(const void *site)
{
	struct spill_loaded_object caller;
	const struct spill_exporter *exporter = NULL;
	if (spill_loaded_object_of(site, &caller))
		exporter = spill_exporter_find(caller.path);
	if (exporter)
		note_exporter(exporter, caller.path);
	return exporter;
}

bool spill_exporting_stays_plain(const struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	if (!site || request->admission.decision.chunks == SPILL_SWITCH_ON)
		return false;
	return is_learned(site, request->bytes) ||
	       (spill_process_policy()->movable_enable == SPILL_SWITCH_AUTO && is_listed(site));
}

/* Not inlined: as is_listed. */
static __attribute__((noinline)) bool is_keeper(const void *site)
{
	struct spill_loaded_object caller;
	return spill_loaded_object_of(site, &caller) && spill_exporter_keeps(caller.path);
}

bool spill_exporting_keeps(const struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	return site && is_keeper(site);
}
