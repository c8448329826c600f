#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>

#include "top.h"

/* A process may be stopped inside a few stores. The next look tries again. */
#define TRIES 1000

#define TERMINATE(array) ((array)[sizeof(array) - 1] = '\0')

static void terminate_head(struct spill_live_page_head *head)
{
	TERMINATE(head->mode);
	TERMINATE(head->backend);
	TERMINATE(head->release);
	TERMINATE(head->program);
	TERMINATE(head->log);
	if (head->devices > SPILL_DEVICES)
		head->devices = SPILL_DEVICES;
}

/* A decision that never comes to rest is left empty. The figures count nevertheless. */
static void copy_decision(const struct spill_live_page *page, struct spill_live_page_decision *decision)
{
	uint64_t words[sizeof(*decision) / 8];

	for (unsigned left = TRIES; left > 0; left--) {
		uint32_t version = spill_seq_read_begin(&page->decided);

		*decision = (struct spill_live_page_decision){0};
		if (version == 0)
			return;
		spill_seq_take(words, page->decision, sizeof(words) / 8);
		if (!spill_seq_read_end(&page->decided, version))
			continue;
		memcpy(decision, words, sizeof(words));
		TERMINATE(decision->what);
		TERMINATE(decision->place);
		TERMINATE(decision->reason);
		TERMINATE(decision->rule);
		TERMINATE(decision->api);
		TERMINATE(decision->caller);
		return;
	}
}

static bool copy_figures(const struct spill_live_page_figures *figures, uint64_t *to)
{
	for (unsigned left = TRIES; left > 0; left--) {
		uint32_t version = spill_seq_read_begin(&figures->lock);

		spill_seq_take(to, figures->figure, SPILL_COUNTERS_COUNT);
		if (version == 0)
			/* the device was never used */
			memset(to, 0, SPILL_COUNTERS_COUNT * sizeof(*to));
		if (version == 0 || spill_seq_read_end(&figures->lock, version))
			return true;
	}
	return false;
}

/* A device without a name can have figures too. */
static bool copy_device(const struct spill_live_page *page, unsigned number, struct cli_top_process *process)
{
	struct cli_top_device *device = &process->devices[process->device_count];
	bool named = number < process->head.devices;

	*device = (struct cli_top_device){.number = number, .about.limit = UINT64_MAX};
	if (named)
		device->about = page->devices[number];
	TERMINATE(device->about.name);
	TERMINATE(device->about.uuid);
	TERMINATE(device->about.pci);
	if (!copy_figures(&page->figures[number], device->figures))
		return false;
	device->used = device->figures[SPILL_COUNTER_ALLOCS] || device->figures[SPILL_COUNTER_OOMS];
	process->device_count += named || device->used;
	return true;
}

bool cli_top_copy(const struct spill_live_page *page, struct cli_top_process *process)
{
	process->head = page->head;
	terminate_head(&process->head);
	process->device_count = 0;
	copy_decision(page, &process->decision);
	for (unsigned number = 0; number < SPILL_DEVICES; number++) {
		if (!copy_device(page, number, process))
			return false;
	}
	return true;
}

/* True if mapping is safe: a seal prevents shrinking, which would kill us. */
static bool is_sealed(int fd, struct stat *now)
{
	struct statfs system;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && fstatfs(fd, &system) == 0 &&
	       system.f_type == TMPFS_MAGIC && fstat(fd, now) == 0 &&
	       now->st_size >= (off_t)sizeof(struct spill_live_page_head);
}

static enum cli_top_page classify(const struct spill_live_page_head *head, size_t size)
{
	if (atomic_load_explicit(&head->magic, memory_order_acquire) != SPILL_LIVE_PAGE_MAGIC)
		return CLI_TOP_BROKEN;
	if (head->version != SPILL_LIVE_PAGE_VERSION || head->size != sizeof(struct spill_live_page))
		return CLI_TOP_OTHER;
	return size < sizeof(struct spill_live_page) ? CLI_TOP_BROKEN : CLI_TOP_READ;
}

enum cli_top_page cli_top_page(int fd, struct cli_top_process *process)
{
	enum cli_top_page answer;
	struct stat now;
	size_t size;
	void *page;

	if (!is_sealed(fd, &now))
		return CLI_TOP_BROKEN;
	process->dev = now.st_dev;
	process->ino = now.st_ino;
	size = now.st_size < (off_t)sizeof(struct spill_live_page) ? (size_t)now.st_size
	                                                           : sizeof(struct spill_live_page);
	page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return CLI_TOP_BROKEN;
	answer = classify(page, size);
	if (answer == CLI_TOP_READ && !cli_top_copy(page, process))
		answer = CLI_TOP_BROKEN;
	munmap(page, size);
	return answer;
}
