/*
 * harm.c has the words. harm_inside.c has the code that runs inside the driver's calls, which
 * harm_front.c reports.
 */
#ifndef HARM_H
#define HARM_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_api.h"

enum harm_call {
	HARM_DEVICE,
	HARM_HOST,
	HARM_COPY,
	HARM_MARK,
	HARM_PINNED,
	HARM_INFO,
	HARM_UNMAP,
	HARM_CALLS
};

extern const char *const harm_names[HARM_CALLS];
extern CUcontext harm_context;
extern CUdeviceptr harm_dot; /* small, and never moved */

/* Block A of harm.c. */
struct harm_block {
	CUdeviceptr address;
	size_t bytes;
};
struct harm_block harm_block_a(void);

/*
 * Before the driver is called. Not CUDA_SUCCESS: it is not called, and that is its answer. HARM_UNMAP: behind
 * it, and of block A only.
 */
CUresult harm_called(enum harm_call call);

/* How often since the last such question. */
unsigned harm_count(enum harm_call call);
void harm_refuse(enum harm_call call);
void harm_accept(void);

/* Inside the next such call, once: "nested", "fork", "capture", … (see harm.c). */
CUresult harm_arm(enum harm_call call, const char *what);
/* The end of that capture, or of the thread with the node. */
CUresult harm_ended(void);

#endif
