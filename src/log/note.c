#include "note.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "log.h"
#include "record.h"

#define NOTES 32

struct note {
	const char *code;
	char text[512];
	bool written;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_NOTE */
static struct note notes[NOTES];
static unsigned count;

/* pre: locked */
static bool is_noted(const char *code, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(notes[i].code, code) == 0 &&
		    strncmp(notes[i].text, text, sizeof(notes[i].text) - 1) == 0)
			return true;
	return false;
}

/* pre: locked; the log's lock ranks above ours */
static void write_pending(void)
{
	char line[2048];
	for (unsigned i = 0; i < count && spill_log_active(); i++) {
		if (notes[i].written)
			continue;
		notes[i].written = true;
		size_t length = spill_record_note(spill_log_now_us(), spill_log_tid(), notes[i].code,
		                                  notes[i].text, line, sizeof(line));
		spill_log_write(line, length, SPILL_LOG_NOW);
	}
}

void spill_note(const char *code, const char *text)
{
	pthread_mutex_lock(&lock);
	if (count < NOTES && !is_noted(code, text)) {
		notes[count].code = code;
		strncpy(notes[count].text, text, sizeof(notes[count].text) - 1);
		count++;
	}
	write_pending();
	pthread_mutex_unlock(&lock);
}

void spill_note_flush(void)
{
	pthread_mutex_lock(&lock);
	write_pending();
	pthread_mutex_unlock(&lock);
}

const struct spill_fork_lock spill_note_fork_lock = {&lock, NULL};
