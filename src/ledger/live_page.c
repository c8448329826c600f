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

/* Of Linux 5.1 and 6.3. The headers of Debian 12's libc lack both. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/*
 * The page is shared with the child of a fork, but it belongs to the parent. So it is reached by a
 * link that the kernel sets to 0 in every child with a copy of our memory (MADV_WIPEONFORK, Linux
 * 4.14). A child that shares our memory (vfork) shares the ledger too, and may write the page.
 */
struct page_link {
	struct spill_live_page *_Atomic page;
};
static struct page_link *_Atomic page_link;

/* For the fork handler, which cannot use the link in the child. */
static struct spill_live_page *mapped;
static struct spill_log_file file = {.fd = -1};
static uint64_t decisions; /* protected by page->decided */

/* The page, or NULL. */
static struct spill_live_page *own_page(void)
{
	struct page_link *link = atomic_load_explicit(&page_link, memory_order_acquire);
	/* Relaxed: the page was stored before the link was published. */
	return link ? atomic_load_explicit(&link->page, memory_order_relaxed) : NULL;
}

/* MFD_NOEXEC_SEAL is needed if vm.memfd_noexec says so, but older kernels refuse it. */
static int create_page_file(void)
{
	int fd = memfd_create(SPILL_LIVE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	return fd >= 0 ? fd : memfd_create(SPILL_LIVE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/*
 * The size must not change, because a process that touches memory after the end of a file is
 * killed. Before Linux 5.1 this user and root can also write the page. Then `spill top` shows their
 * values, and no other reader exists.
 */
static bool seal_page_file(int fd)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;
	return fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0 ||
	       fcntl(fd, F_ADD_SEALS, size | F_SEAL_SEAL) == 0;
}

/* The attempts are limited, because the program's signals may interrupt each. */
static bool allocate_page_file(int fd)
{
	int result = -1;
	for (unsigned left = SPILL_FD_TRIES; result && left > 0; left--) {
		result = fallocate(fd, 0, 0, sizeof(struct spill_live_page));
		if (result && errno != EINTR)
			break;
	}
	return result == 0;
}

/* fallocate, not ftruncate: missing memory is then an error, not a signal at a store. */
static struct spill_live_page *map_page_file(int fd)
{
	void *page = MAP_FAILED;
	if (allocate_page_file(fd))
		page = mmap(NULL, sizeof(struct spill_live_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

static struct page_link *make_link(void)
{
	struct page_link *made =
	    mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	if (madvise(made, sizeof(*made), MADV_WIPEONFORK) == 0)
		return made;
	munmap(made, sizeof(*made));
	return NULL;
}

static void copy_text(char *to, size_t size, const char *from)
{
	struct spill_text text = spill_text_begin(to, size);
	spill_text_add(&text, from ? from : "");
}
#define COPY(array, from) copy_text(array, sizeof(array), from)

unsigned spill_live_page_devices(struct spill_live_page_device *devices, const struct spill_policy *policy,
                                 const struct spill_log_start *start)
{
	unsigned count = start->device_count < SPILL_DEVICES ? start->device_count : SPILL_DEVICES;
	for (unsigned i = 0; i < count; i++) {
		const struct spill_log_device *device = &start->devices[i];
		struct spill_live_page_device *shown = &devices[i];
		COPY(shown->name, device->name);
		COPY(shown->uuid, device->uuid);
		COPY(shown->pci, device->pci);
		shown->bytes = device->bytes;
		shown->limit = spill_policy_device_limit(policy, (int)i, device->bytes);
	}
	return count;
}

static void fill_page(struct spill_live_page *page, const struct spill_policy *policy,
                      const struct spill_log_start *start)
{
	struct spill_live_page_head *head = &page->head;
	head->version = SPILL_LIVE_PAGE_VERSION;
	head->size = sizeof(*page);
	head->pid = (uint32_t)getpid();
	head->start_us = spill_clock_wall_us();
	COPY(head->mode, policy->mode == SPILL_MODE_OBSERVE ? "observe" : "spill");
	COPY(head->backend, start->backend);
	COPY(head->release, SPILL_VERSION);
	spill_program_name(head->program, sizeof(head->program));
	if (strlen(spill_log_path()) < sizeof(head->log))
		COPY(head->log, spill_log_path());
	head->devices = spill_live_page_devices(page->devices, policy, start);
	atomic_store_explicit(&head->magic, SPILL_LIVE_PAGE_MAGIC, memory_order_release);
}

/* Makes the page in `fd`, and closes `fd` if that fails. */
static void open_page(int fd, const struct spill_policy *policy, const struct spill_log_start *start)
{
	struct stat now;
	struct spill_live_page *page = map_page_file(fd);
	struct page_link *made = page && seal_page_file(fd) && fstat(fd, &now) == 0 ? make_link() : NULL;
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
	fill_page(page, policy, start);
	mapped = page;
	decisions = 0;
	file = (struct spill_log_file){fd, now.st_dev, now.st_ino};
	atomic_store(&made->page, page);
	atomic_store_explicit(&page_link, made, memory_order_release);
}

void spill_live_page_open(const struct spill_policy *policy, const struct spill_log_start *start)
{
	struct spill_signal_guard guard;
	if (getauxval(AT_SECURE) || atomic_load(&page_link))
		return;
	spill_signal_guard_enter(&guard); /* RLIMIT_FSIZE sends a signal if a file is too long */
	int fd = create_page_file();
	if (fd >= 0)
		open_page(fd, policy, start);
	spill_signal_guard_leave(&guard);
}

void spill_live_page_publish(unsigned device, const struct spill_device_totals *counted, unsigned changed)
{
	struct spill_live_page *page = own_page();
	if (!page)
		return;
	struct spill_live_page_figures *figures = &page->figures[device];
	spill_seq_write_alone(&figures->lock);
#define X(id, name, member) spill_seq_set(figures->figure[SPILL_COUNTER_##id], counted->member);
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

/* A thread that writes for longer never finishes its few stores. */
#define WRITING_NS 1000000000

/*
 * True if another thread began to write long ago, so that this thread takes over. A signal handler
 * may leave the other thread's write by longjmp. Without this, no later decision would be shown.
 */
static bool take_over_write(spill_seqlock *lock)
{
	static _Atomic uint32_t seen;
	static _Atomic uint64_t since;
	uint32_t version = atomic_load(lock);
	if (!(version & 1))
		return false;
	uint64_t now = spill_clock_ns();
	if (seen != version) {
		since = now; /* first, because another thread may read it after `seen` */
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
	struct spill_live_page *page = own_page();
	if (!page)
		return;
	now.decision.time_us = spill_clock_wall_us();
	now.decision.bytes = bytes;
	now.decision.device = (uint64_t)device;
	COPY(now.decision.what, text->what);
	COPY(now.decision.place, text->place);
	COPY(now.decision.reason, text->reason);
	COPY(now.decision.rule, text->rule);
	COPY(now.decision.api, text->api);
	COPY(now.decision.caller, text->caller);
	if (!spill_seq_write_begin(&page->decided) && !take_over_write(&page->decided))
		return;
	now.decision.count = ++decisions;
	spill_seq_put(page->decision, now.words, sizeof(now.words) / 8);
	spill_seq_write_end(&page->decided);
}

void spill_live_page_fork_child(void)
{
	struct page_link *link = atomic_exchange(&page_link, NULL);
	if (!link)
		return;
	munmap(mapped, sizeof(*mapped));
	munmap(link, sizeof(*link));
	spill_log_file_close(&file);
	mapped = NULL;
}
