/*
 * A trial of chunks. Memory of the host behind handles is young in ROCm (7.2), and no AMD device has
 * run libspill. So bytes are copied over the border of two chunks, one on the host and one on the
 * device, before the first chunks are made for the program.
 */
#include "backend_hip.h"

#include <stdatomic.h>
#include <string.h>

#define BYTES 4096

enum verdict { UNKNOWN, WORKS, FAILS };

struct trial {
	int device;
	uint64_t unit, va;
	uint64_t handle[2];
	unsigned created, mapped;
	hipStream_t stream;
	hipError_t error; /* the runtime's last one */
};

static bool succeeded(struct trial *trial, int error)
{
	trial->error = (hipError_t)error;
	return !error;
}

/* The second one is on the device, or on the host, too, if the device is full. */
static bool make_chunks(struct trial *trial)
{
	bool on_host = true;
	while (trial->created < 2) {
		if (succeeded(trial, spill_hip_physical.create(trial->device, on_host, trial->unit,
		                                               &trial->handle[trial->created]))) {
			trial->created++;
			on_host = false;
		} else if (on_host || trial->error != hipErrorOutOfMemory) {
			return false;
		} else {
			on_host = true;
		}
	}
	for (; trial->mapped < 2; trial->mapped++)
		if (!succeeded(trial, spill_hip_vmm.map(trial->va + trial->mapped * trial->unit, trial->unit,
		                                        trial->handle[trial->mapped])))
			return false;
	return succeeded(trial, spill_hip_vmm.allow(trial->va, 2 * trial->unit, trial->device));
}

static bool copy(struct trial *trial, void *to, const void *from, hipMemcpyKind kind)
{
	return succeeded(trial, spill_hip.hipMemcpyAsync(to, from, BYTES, kind, trial->stream));
}

/* Through the bytes around the border of the chunks, and from there to the begin of the first. */
static bool copies_are_right(struct trial *trial)
{
	unsigned char from[BYTES], to[BYTES] = {0};
	char *begin = (char *)(uintptr_t)trial->va;
	char *border = begin + trial->unit - BYTES / 2;
	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7 + (i >> 8) + 1);
	bool copied = copy(trial, border, from, hipMemcpyHostToDevice) &&
	              copy(trial, begin, border, hipMemcpyDeviceToDevice) &&
	              copy(trial, to, begin, hipMemcpyDeviceToHost);
	/* Also after a failure: a copy may still use the arrays. */
	bool done = !SPILL_HIP_RELAXED(spill_hip.hipStreamSynchronize(trial->stream));
	return copied && done && !memcmp(from, to, BYTES);
}

/* In a stream of its own, which waits for no work of the program. */
static bool chunks_work(struct trial *trial)
{
	if (!succeeded(trial, spill_hip_vmm.reserve(2 * trial->unit, trial->unit, &trial->va)))
		return false;
	bool works =
	    make_chunks(trial) &&
	    succeeded(trial, spill_hip.hipStreamCreateWithFlags(&trial->stream, hipStreamNonBlocking));
	if (works) {
		works = copies_are_right(trial);
		spill_hip.hipStreamDestroy(trial->stream);
	}
	while (trial->mapped--)
		spill_hip_vmm.unmap(trial->va + trial->mapped * trial->unit, trial->unit);
	while (trial->created--)
		spill_hip_physical.release(trial->handle[trial->created]);
	spill_hip_vmm.unreserve(trial->va, 2 * trial->unit);
	return works;
}

/* Two threads may try at the same time, and find the same. */
bool spill_hip_chunks_work(int device, uint64_t unit)
{
	static _Atomic enum verdict verdicts[SPILL_DEVICES];
	struct trial trial = {.device = device, .unit = unit};
	enum verdict verdict = atomic_load(&verdicts[device]);
	void *before;
	if (verdict != UNKNOWN || !spill_hip.hipStreamCreateWithFlags || !spill_hip.hipStreamDestroy ||
	    !spill_hip.hipStreamSynchronize || !spill_hip.hipMemcpyAsync || spill_hip_enter(device, &before))
		return verdict == WORKS;
	verdict = chunks_work(&trial) ? WORKS : FAILS;
	spill_hip_leave(before);
	/* Without memory there was no trial. */
	if (verdict == WORKS || trial.error != hipErrorOutOfMemory)
		atomic_store(&verdicts[device], verdict);
	return verdict == WORKS;
}
