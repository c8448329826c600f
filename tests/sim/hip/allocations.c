#include <pthread.h>
#include <stdlib.h>

#include "hip_entry.h"

struct entry {
	struct entry *next;
	uint64_t id;
	struct hip_note note;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;

bool hip_note_add(uint64_t id, struct hip_note note)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return false;
	*entry = (struct entry){.id = id, .note = note};
	pthread_mutex_lock(&lock);
	entry->next = entries;
	entries = entry;
	pthread_mutex_unlock(&lock);
	return true;
}

struct hip_note hip_note_find(uint64_t id)
{
	struct hip_note note = {0};

	pthread_mutex_lock(&lock);
	for (struct entry *entry = entries; entry; entry = entry->next) {
		if (entry->id == id)
			note = entry->note;
	}
	pthread_mutex_unlock(&lock);
	return note;
}

void hip_note_remove(uint64_t id)
{
	pthread_mutex_lock(&lock);
	for (struct entry **at = &entries; *at; at = &(*at)->next) {
		struct entry *entry = *at;

		if (entry->id != id)
			continue;
		*at = entry->next;
		free(entry);
		break;
	}
	pthread_mutex_unlock(&lock);
}
