#include "live_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "process.h"
#include "config.h"
#include "decide.h"
#include "fd.h"
#include "log_file.h"
#include "text.h"

/* Linux 5.1, and 6.3; Debian 12's libc knows neither by these headers' names. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/*
 * The page is reached by a word that the kernel sets to 0 in every child that has a copy of our memory (MADV_WIPEONFORK, Linux 4.14):
 * the page itself is shared with such a child, and it is the parent's. Whoever shares our memory (vfork) shares the ledger as well.
 */
struct way {
	struct spill_live_page *_Atomic page;
};
static struct way *_Atomic way;

/* For the fork handler, which finds the word above gone. */
static struct spill_live_page *mapped;
static struct spill_log_file file = {.fd = -1};
static uint64_t decisions; /* by whoever is writing one */

static struct spill_live_page *page_of_ours(void)
{
	struct way *mine = atomic_load_explicit(&way, memory_order_acquire);
	return mine ? atomic_load_explicit(&mine->page, memory_order_relaxed) : NULL;
}

/* -- making it ---------------------------------------------------------------------------------------------- */

/* The later flag is needed where vm.memfd_noexec says so, and unknown to older kernels. */
static int create(void)
{
	int fd = memfd_create(SPILL_LIVE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	return fd >= 0 ? fd : memfd_create(SPILL_LIVE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/*
 * Its size is what must not change: who touches memory behind the end of a file is killed. Before Linux 5.1 those who can open it (this
 * user, root) can write it as well; then `spill top` shows what they wrote, and nobody else reads it.
 */
static bool seal(int fd)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;
	return fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0 ||
	       fcntl(fd, F_ADD_SEALS, size | F_SEAL_SEAL) == 0;
}

/* A signal of the program's interrupts it; one that comes all the time must not keep us here. */
static bool allocate(int fd)
{
	int result = -1;
	for (unsigned left = 100; result && left > 0; left--) {
		result = fallocate(fd, 0, 0, sizeof(struct spill_live_page));
		if (result && errno != EINTR)
			break;
	}
	return result == 0;
}

/* Not by ftruncate: memory that is missing is an error here, and not a signal at the first store. */
static struct spill_live_page *map(int fd)
{
	void *page = MAP_FAILED;
	if (allocate(fd))
		page = mmap(NULL, sizeof(struct spill_live_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

static struct way *make_way(void)
{
	struct way *made =
	    mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (madvise(made, sizeof(*made), MADV_WIPEONFORK) == 0)
		return made;
	munmap(made, sizeof(*made));
	return NULL;
}

static uint64_t wall_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void copy(char *to, size_t size, const char *from)
{
	struct spill_text text = spill_text_begin(to, size);
	spill_text_add(&text, from ? from : "");
}
#define COPY(array, from) copy(array, sizeof(array), from)

static void fill_devices(struct spill_live_page *page, const struct spill_policy *policy,
                         const struct spill_log_start *start)
{
	page->head.devices = start->device_count < SPILL_DEVICES ? start->device_count : SPILL_DEVICES;
	for (unsigned i = 0; i < page->head.devices; i++) {
		const struct spill_log_device *device = &start->devices[i];
		struct spill_live_page_device *mine = &page->devices[i];
		COPY(mine->name, device->name);
		COPY(mine->uuid, device->uuid);
		COPY(mine->pci, device->pci);
		mine->bytes = device->bytes;
		mine->limit = spill_policy_device_limit(policy, (int)i, device->bytes);
	}
}

static void fill(struct spill_live_page *page, const struct spill_policy *policy,
                 const struct spill_log_start *start)
{
	struct spill_live_page_head *head = &page->head;
	head->version = SPILL_LIVE_PAGE_VERSION;
	head->size = sizeof(*page);
	head->pid = (uint32_t)getpid();
	head->start_us = wall_us();
	COPY(head->mode, policy->mode == SPILL_MODE_OBSERVE ? "observe" : "spill");
	COPY(head->backend, start->backend);
	COPY(head->release, SPILL_VERSION);
	spill_program_name(head->program, sizeof(head->program));
	if (strlen(spill_log_path()) < sizeof(head->log))
		COPY(head->log, spill_log_path());
	fill_devices(page, policy, start);
	head->magic = SPILL_LIVE_PAGE_MAGIC;
}

/* Owns `fd`. */
static void open_at(int fd, const struct spill_policy *policy, const struct spill_log_start *start)
{
	struct stat now;
	struct spill_live_page *page = map(fd);
	struct way *made = page && seal(fd) && fstat(fd, &now) == 0 ? make_way() : NULL;
	fd = made ? spill_fd_out_of_the_way(fd) : fd;
	if (!made || fd < 0) {
		if (page)
			munmap(page, sizeof(*page));
		if (made)
			munmap(made, sizeof(*made));
		if (fd >= 0)
			close(fd);
		return;
	}
	fill(page, policy, start);
	mapped = page;
	decisions = 0;
	file = (struct spill_log_file){fd, now.st_dev, now.st_ino};
	atomic_store(&made->page, page);
	atomic_store_explicit(&way, made, memory_order_release);
}

void spill_live_page_open(const struct spill_policy *policy, const struct spill_log_start *start)
{
	struct spill_signal_guard quiet;
	if (getauxval(AT_SECURE) || atomic_load(&way))
		return;
	spill_signal_guard_enter(&quiet); /* RLIMIT_FSIZE has a signal for whoever makes a file too long */
	int fd = create();
	if (fd >= 0)
		open_at(fd, policy, start);
	spill_signal_guard_leave(&quiet);
}

/* -- writing ------------------------------------------------------------------------------------------------ */

void spill_live_page_publish(unsigned device, const struct spill_device_totals *counted, unsigned changed)
{
	struct spill_live_page *page = page_of_ours();
	if (!page)
		return;
	struct spill_live_page_figures *figures = &page->figures[device];
	spill_seq_write_alone(&figures->lock);
#define X(id, name, of) spill_seq_set(figures->figure[SPILL_COUNTER_##id], counted->of);
	SPILL_COUNTERS_COUNTS(X)
	if (changed & SPILL_CHANGED_LIVE) {
		SPILL_COUNTERS_LIVE(X)
	}
	if (changed & SPILL_CHANGED_PEAK) {
		SPILL_COUNTERS_PEAK(X)
	}
	if (changed & SPILL_CHANGED_RARE) {
		SPILL_COUNTERS_RARE(X)
	}
#undef X
	spill_seq_write_end(&figures->lock);
}

_Static_assert(sizeof(struct spill_live_page_decision) % 8 == 0, "it is copied by words");

/* Longer than any thread needs for its few stores, unless it is never to come back to them. */
#define WRITING_NS 1000000000

/*
 * True if whoever was writing has been at it for so long that this thread writes in its place. A signal handler that leaves by longjmp
 * takes its thread out of the middle; without this no decision would be told any more.
 */
static bool write_instead(spill_seqlock *lock)
{
	static _Atomic uint32_t seen;
	static _Atomic uint64_t since;
	uint32_t version = atomic_load(lock);
	if (!(version & 1))
		return false;
	uint64_t now = spill_clock_ns();
	if (seen != version) {
		since = now; /* before who comes next may look at it */
		seen = version;
		return false;
	}
	return now > since + WRITING_NS && atomic_compare_exchange_strong(lock, &version, version + 2);
}

void spill_live_page_decided(int device, uint64_t bytes, const struct spill_live_page_text *text)
{
	union {
		struct spill_live_page_decision decision;
		uint64_t words[sizeof(struct spill_live_page_decision) / 8];
	} now = {0};
	struct spill_live_page *page = page_of_ours();
	if (!page)
		return;
	now.decision.time_us = wall_us();
	now.decision.bytes = bytes;
	now.decision.device = (uint64_t)device;
	COPY(now.decision.what, text->what);
	COPY(now.decision.place, text->place);
	COPY(now.decision.reason, text->reason);
	COPY(now.decision.rule, text->rule);
	COPY(now.decision.api, text->api);
	COPY(now.decision.caller, text->caller);
	if (!spill_seq_write_begin(&page->decided) && !write_instead(&page->decided))
		return;
	now.decision.count = ++decisions;
	spill_seq_put(page->decision, now.words, sizeof(now.words) / 8);
	spill_seq_write_end(&page->decided);
}

/* -- fork --------------------------------------------------------------------------------------------------- */

void spill_live_page_fork_child(void)
{
	struct way *mine = atomic_exchange(&way, NULL);
	if (!mine)
		return;
	munmap(mapped, sizeof(*mapped));
	munmap(mine, sizeof(*mine));
	spill_log_file_close(&file);
	mapped = NULL;
}
