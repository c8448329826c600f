#include "access_recording.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "chunk_map.h"
#include "clock.h"
#include "fd.h"
#include "log_file.h"
#include "log_path.h"
#include "note.h"
#include "process.h"
#include "text.h"

/* The longest line: a launch with all its chunks and ranges. */
#define LINE (128 + 2 * 20 * SPILL_LAUNCH_ACCESS_KEYS)
#define BUFFER (64u << 10)
_Static_assert(LINE < BUFFER, "a line fits into the buffer");

enum { UNKNOWN, OFF, ON };
static _Atomic int state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_RECORDING */
static _Atomic uint64_t lost;                            /* lines, since the last one that was written */

/* The lock guards the rest. */
static struct spill_log_file file;
static pid_t owner; /* opened the file; 0: not opened */
static uint64_t start_ns, launches;
static char buffer[BUFFER];
static struct spill_text text;

bool spill_access_recording_on(void)
{
	int now = atomic_load_explicit(&state, memory_order_relaxed);
	if (now != UNKNOWN)
		return now == ON;
	const char *pattern = spill_process_policy()->movable_record;
	bool on = pattern[0] && strcmp(pattern, "off") != 0 && !getauxval(AT_SECURE);
	atomic_store(&state, on ? ON : OFF);
	return on;
}

/* -- the file ---------------------------------------------------------------------------------- */

static void stop_recording(const char *problem, const char *path)
{
	char note[512];
	struct spill_text line = spill_text_begin(note, sizeof(note));
	atomic_store(&state, OFF);
	spill_text_format(&line, "accesses are not recorded any more (movable.record): %s", problem);
	if (path[0])
		spill_text_format(&line, ": %s", path);
	spill_note("record", note);
}

/* Opens the file and begins it with its first line. pre: locked */
static bool open_file(void)
{
	static struct spill_log_path found; /* too large for a small stack */
	struct spill_signal_guard guard;
	char program[256];
	spill_program_name(program, sizeof(program));
	spill_log_path_find(&found, spill_process_policy()->movable_record, program, SPILL_RECORDING_SUFFIX);
	const char *problem = found.problem;
	if (!problem) {
		spill_signal_guard_enter(&guard);
		int error = spill_log_path_make_folders(&found);
		problem = error ? spill_error_text(error) : spill_log_file_open(&file, found.path);
		spill_signal_guard_leave(&guard);
	}
	if (problem) {
		stop_recording(problem, found.path);
		return false;
	}
	owner = getpid();
	start_ns = spill_clock_ns();
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_text_add(&text, "spill-recording 2\n");
	return true;
}

/* pre: locked */
static void write_buffer(void)
{
	struct spill_signal_guard guard;
	int error = 0;
	/* A vfork child shares this memory, but it is another process. */
	if (owner != getpid() || !text.length)
		return;
	spill_signal_guard_enter(&guard);
	if (spill_log_file_look(&file) >= SPILL_LOG_FILE_LOST)
		error = EBADF;
	else
		spill_log_file_append(&file, text.buffer, text.length, &error);
	spill_signal_guard_leave(&guard);
	text = spill_text_begin(buffer, sizeof(buffer));
	if (error)
		stop_recording(spill_error_text(error), "");
}

/* -- lines ------------------------------------------------------------------------------------- */

/* Begins a line. False: it is lost, and the lock is not held. */
static bool begin_line(void)
{
	if (!spill_access_recording_on())
		return false;
	if (pthread_mutex_trylock(&lock)) {
		atomic_fetch_add(&lost, 1);
		return false;
	}
	if (!owner && !open_file()) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	if (text.size - text.length < LINE)
		write_buffer();
	uint64_t missing = atomic_exchange(&lost, 0);
	if (missing)
		spill_text_format(&text, "D %llu\n", (unsigned long long)missing);
	return true;
}

static void end_line(void)
{
	spill_text_add(&text, "\n");
	pthread_mutex_unlock(&lock);
}

static void add_field(uint64_t number)
{
	spill_text_add(&text, " ");
	spill_text_number(&text, number);
}

static void add_hex(uint64_t number)
{
	char digits[16];
	size_t at = sizeof(digits);
	do {
		digits[--at] = "0123456789abcdef"[number % 16];
		number /= 16;
	} while (number);
	spill_text_add(&text, " ");
	spill_text_bytes(&text, digits + at, sizeof(digits) - at);
}

static void add_time(void)
{
	add_field((spill_clock_ns() - start_ns) / 1000);
}

static struct spill_chunk_map_entry chunk_of(uint32_t key)
{
	struct spill_chunk_map_entry entry;
	bool known = spill_chunk_map_of((uint64_t)key << SPILL_CHUNK_MAP_UNIT_SHIFT, &entry);
	return known ? entry : (struct spill_chunk_map_entry){0};
}

static void add_units(uint32_t first, uint32_t units)
{
	add_hex(first);
	spill_text_add(&text, ":");
	spill_text_number(&text, units);
}

static void add_chunk(uint32_t key)
{
	struct spill_chunk_map_entry entry = chunk_of(key);
	add_units(key, entry.count);
	if (entry.on_host)
		spill_text_add(&text, "h");
}

/* MiB on the host now: chunks may have moved for this launch. */
static uint64_t mib_on_host(const struct spill_launch_access *access)
{
	uint64_t units = 0;
	for (unsigned i = 0; i < access->count; i++) {
		struct spill_chunk_map_entry entry = chunk_of(access->keys[i]);
		units += entry.on_host ? entry.count : 0;
	}
	return units << (SPILL_CHUNK_MAP_UNIT_SHIFT - 20);
}

uint64_t spill_access_recording_launch(const struct spill_launch_access *access, uint16_t site)
{
	if (!begin_line())
		return 0;
	uint64_t number = ++launches;
	spill_text_add(&text, "L");
	add_field(number);
	add_time();
	add_field(site);
	add_hex((uintptr_t)access->stream);
	add_field(access->graph ? 2 : access->once);
	add_field(access->sure);
	add_field(access->count);
	add_field(mib_on_host(access));
	for (unsigned i = 0; i < access->count; i++)
		add_chunk(access->keys[i]);
	spill_text_add(&text, " |");
	for (unsigned i = 0; i < access->range_count; i++)
		add_units(access->ranges[i].first, access->ranges[i].units);
	end_line();
	return number;
}

void spill_access_recording_time(uint64_t number, uint64_t on_host, uint64_t ns)
{
	if (!number || !begin_line())
		return;
	spill_text_add(&text, "T");
	add_field(number);
	add_field(on_host >> 20);
	add_field(ns);
	end_line();
}

void spill_access_recording_exchange(const struct spill_exchange_choice *choice,
                                     const struct spill_recorded_exchange *exchange)
{
	if (!begin_line())
		return;
	spill_text_add(&text, "X");
	add_time();
	add_field(choice->pays);
	add_field(choice->excess_ns);
	add_field(exchange->cost_ns);
	add_field(choice->comes >> 20);
	add_field(choice->goes >> 20);
	add_field(exchange->came >> 20);
	add_field(exchange->waited_ns / 1000);
	add_field(exchange->moved_ns / 1000);
	add_field(exchange->busy_ns / 1000);
	end_line();
}

void spill_access_recording_restored(void)
{
	if (!begin_line())
		return;
	spill_text_add(&text, "R");
	add_time();
	end_line();
}

void spill_access_recording_flush(void)
{
	int error = errno;
	if (atomic_load_explicit(&state, memory_order_relaxed) == ON && !pthread_mutex_trylock(&lock)) {
		write_buffer();
		pthread_mutex_unlock(&lock);
	}
	errno = error;
}

/* A signal handler that forks may have interrupted the thread that has the lock. */
void spill_access_recording_reset(void)
{
	int error = errno;
	if (owner)
		spill_log_file_close(&file);
	pthread_mutex_init(&lock, NULL);
	atomic_store(&state, UNKNOWN);
	atomic_store(&lost, 0);
	owner = 0;
	launches = 0;
	text.length = 0;
	errno = error;
}
