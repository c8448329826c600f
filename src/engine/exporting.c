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

/* False: no object holds the site. Not inlined: a path takes much of the program's stack. */
static __attribute__((noinline)) bool look_up_site(const void *site, bool *listed)
{
	struct spill_loaded_object caller;
	bool found = spill_loaded_object_of(site, &caller);
	const struct spill_exporter *exporter = found ? spill_exporter_find(caller.path) : NULL;
	if (exporter)
		note_exporter(exporter, caller.path);
	*listed = exporter;
	return found;
}

/*
 * Answers about call sites, in one word each: twice the site, and 1 if it is listed. A look-up walks
 * the loaded objects, and memory in stream order asks for each tensor: 6 us with 250 libraries. A
 * site keeps its answer, also if another library is loaded at its address.
 */
#define ANSWERS 256
static _Atomic uint64_t answers[ANSWERS];

static bool is_listed(const void *site)
{
	uint64_t name = (uint64_t)(uintptr_t)site << 1;
	_Atomic uint64_t *slot = &answers[((uintptr_t)site ^ (uintptr_t)site >> 8) % ANSWERS];
	uint64_t answer = atomic_load_explicit(slot, memory_order_relaxed);
	if ((answer & ~1ull) == name)
		return answer & 1;
	bool listed;
	if (look_up_site(site, &listed))
		atomic_store_explicit(slot, name | listed, memory_order_relaxed);
	return listed;
}

bool spill_exporting_stays_plain(const struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	if (!site || request->admission.decision.chunks == SPILL_SWITCH_ON)
		return false;
	return is_learned(site, request->bytes) ||
	       (spill_process_policy()->movable_enable == SPILL_SWITCH_AUTO && is_listed(site));
}

/* Not inlined: as look_up_site. */
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
