/*
 * Whether chunks can really be moved on a device, found out by touching: a chunk of either kind is made and mapped, bytes are
 * copied there, over and back, and compared; and the driver can mark the end of all work of a context.
 */
#ifndef SPILL_PROBE_H
#define SPILL_PROBE_H

#include "backend.h"

enum spill_probe {
	SPILL_PROBE_WORKS,
	SPILL_PROBE_FAILS, /* for good: it need not be asked again */
	SPILL_PROBE_LATER, /* no memory for it at the moment, or no context */
};

/* Waits for nothing of the program's. pre: no lock of ours but the mover is held; nothing captures */
enum spill_probe spill_probe(const struct spill_backend *backend, int device);

#endif
