#include "doctor.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "host_available.h"
#include "minmax.h"

#define MOST_THREADS 64
#define READING_NS 100000000u
#define MIB ((uint64_t)1 << 20)
/*
 * The memory must exceed the caches: at least twice the last cache, if its size is known. Chiplets
 * have several caches, so each thread gets twice the largest share of a core.
 */
#define LEAST_BYTES (256 * MIB)
#define THREAD_BYTES (32 * MIB)
#define MOST_BYTES (MOST_THREADS * THREAD_BYTES)

/* Wide enough that memory, not the core, is the bound. */
typedef uint64_t wide __attribute__((vector_size(16)));

struct reader {
	pthread_t thread;
	const wide *memory;
	size_t bytes;
	double rate;
	wide sum; /* keeps the compiler from removing the reads */
};

static wide read_once(const wide *memory, size_t bytes)
{
	wide sums[4] = {{0}};

	for (size_t i = 0; i < bytes / sizeof(wide); i += 4) {
		for (unsigned k = 0; k < 4; k++)
			sums[k] += memory[i + k];
	}
	return sums[0] + sums[1] + sums[2] + sums[3];
}

/* Each thread writes its part first, so that its own node has the pages. */
static void *read_part(void *argument)
{
	struct reader *reader = argument;
	uint64_t begin, now, read = 0;

	memset((void *)reader->memory, 1, reader->bytes);
	begin = spill_clock_ns();
	do {
		reader->sum += read_once(reader->memory, reader->bytes);
		read += reader->bytes;
		now = spill_clock_ns();
	} while (now - begin < READING_NS);
	reader->rate = (double)read / (double)(now - begin);
	return NULL;
}

static unsigned count_cpus(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return count > MOST_THREADS ? MOST_THREADS : (unsigned)count;
}

static uint64_t bytes_to_read(unsigned threads)
{
	static struct spill_cgroup_homes homes; /* 8 KiB */
	uint64_t available = spill_host_available_under("", &homes, 0);
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	uint64_t bytes =
	    spill_max(LEAST_BYTES, spill_max(threads * THREAD_BYTES, cache > 0 ? 2 * (uint64_t)cache : 0));

	bytes = bytes > MOST_BYTES ? MOST_BYTES : bytes;
	return bytes > available / 8 ? 0 : bytes;
}

/* Reads with up to `count` threads and returns their number. Each measures its own time. */
static unsigned read_by_all(struct reader *readers, unsigned count, char *memory, uint64_t part)
{
	unsigned made = 0;

	for (; made < count; made++) {
		readers[made] =
		    (struct reader){.memory = (const wide *)(memory + made * part), .bytes = part};
		if (pthread_create(&readers[made].thread, NULL, read_part, &readers[made]))
			break;
	}
	for (unsigned i = 0; i < made; i++)
		pthread_join(readers[i].thread, NULL);
	return made;
}

struct host_speed host_speed(void)
{
	struct host_speed speed = {0};
	struct reader readers[MOST_THREADS];
	unsigned threads = count_cpus();
	uint64_t bytes = bytes_to_read(threads), part = bytes / threads / 4096 * 4096;
	char *memory;

	if (!part)
		return speed;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return speed;
	madvise(memory, bytes, MADV_HUGEPAGE); /* like most large buffers of programs */
	speed.threads = read_by_all(readers, threads, memory, part);
	for (unsigned i = 0; i < speed.threads; i++)
		speed.rate += readers[i].rate;
	speed.mib = (unsigned)(bytes / MIB);
	munmap(memory, bytes);
	return speed;
}
