/* Which calls fail: reads FAULTS, and counts by place in the code. */
#include "faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITEMS 8
#define MET 64
#define PLACES 4096 /* a power of two */

struct item {
	char name[64];
	unsigned long offset; /* 0: any place */
	unsigned from;
	bool on;
	int error;
	_Atomic unsigned calls;
};

static struct item items[ITEMS];
static unsigned item_count;
static struct faults_met met[MET];
static _Atomic unsigned met_count;

/* By address. Places are never removed. */
static struct faults_place places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void faults_die(const char *what, const char *which)
{
	fprintf(stderr, "faults: %s %s\n", what, which);
	_exit(99);
}

static bool read_item(const char *text, struct item *item)
{
	char *end, *colon = strchr(text, ':');

	if (!colon || (size_t)(colon - text) >= sizeof(item->name))
		return false;
	memcpy(item->name, text, (size_t)(colon - text));
	char *at = strchr(item->name, '@');
	if (at) {
		*at = 0;
		item->offset = strtoul(at + 1, NULL, 16);
	}
	item->from = (unsigned)strtoul(colon + 1, &end, 10);
	item->on = *end == '+';
	end += item->on;
	if (*end != ':' || !item->from)
		return false;
	end++;
	item->error = !strcmp(end, "short") ? SHORT : !strcmp(end, "nothing") ? NOTHING : atoi(end);
	return true;
}

void faults_read_plan(void)
{
	const char *text = getenv("FAULTS");
	char copy[512], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		if (item_count == ITEMS || !read_item(one, &items[item_count++]))
			faults_die("FAULTS is wrong:", text);
}

/* pre: locked */
static struct faults_place *place_of(const struct faults_call *call, unsigned long offset)
{
	unsigned i = (unsigned)(offset * 2654435761u) % PLACES, looks = 0;

	while (places[i].call && (places[i].call != call || places[i].offset != offset) && looks++ < PLACES)
		i = (i + 1) % PLACES;
	if (looks > PLACES)
		faults_die("too many places:", call->name);
	places[i].call = call;
	places[i].offset = offset;
	return &places[i];
}

static void count_place(const struct faults_call *call, unsigned long offset)
{
	pthread_mutex_lock(&lock);
	place_of(call, offset)->count++;
	pthread_mutex_unlock(&lock);
}

void faults_note_strict(const struct faults_call *call, const void *caller)
{
	pthread_mutex_lock(&lock);
	place_of(call, (uintptr_t)caller - faults_library()->base)->strict = true;
	pthread_mutex_unlock(&lock);
}

const struct faults_place *faults_place(unsigned index)
{
	return index < PLACES ? &places[index] : NULL;
}

unsigned faults_met(const struct faults_met **list)
{
	unsigned count = atomic_load(&met_count);

	*list = met;
	return count < MET ? count : MET;
}

static bool concerns(const struct item *item, const struct faults_call *call, unsigned long offset)
{
	if (item->offset && item->offset != offset)
		return false;
	return !strcmp(item->name, call->name) || !strcmp(item->name, call->vendor ? "vendor" : "libc");
}

bool faults_now(const struct faults_call *call, const void *caller, int *error)
{
	unsigned long offset = (uintptr_t)caller - faults_library()->base;
	bool fails = false;

	count_place(call, offset);
	for (unsigned i = 0; i < item_count; i++) {
		struct item *item = &items[i];

		if (!concerns(item, call, offset))
			continue;
		unsigned number = atomic_fetch_add(&item->calls, 1) + 1;
		if (fails || (number != item->from && !(item->on && number > item->from)))
			continue;
		*error = item->error || !call->errors ? item->error : call->errors[0];
		unsigned index = atomic_fetch_add(&met_count, 1);
		if (index < MET)
			met[index] = (struct faults_met){call->name, *error, offset};
		fails = true;
	}
	return fails;
}
