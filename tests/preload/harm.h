/*
 * harm.c has the words. harm_inside.c has the code that runs inside the driver's calls, which
 * harm_front.c reports.
 */
#ifndef HARM_H
#define HARM_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda_api.h"

enum harm_call { HARM_DEVICE, HARM_HOST, HARM_COPY, HARM_MARK, HARM_PINNED, HARM_INFO, HARM_CALLS };

extern const char *const harm_names[HARM_CALLS];
extern CUcontext harm_context;
extern CUdeviceptr harm_dot; /* small, and never moved */

/* Before the driver is called. Not CUDA_SUCCESS: it is not called, and that is its answer. */
CUresult harm_called(enum harm_call call);

/* How often since the last such question. */
unsigned harm_count(enum harm_call call);
void harm_refuse(enum harm_call call);
void harm_accept(void);

/* Inside the next such call, once: "nested", "fork", "capture" or "global" (see harm.c). */
CUresult harm_arm(enum harm_call call, const char *what);
/* The end of that capture. */
CUresult harm_captured(void);

#endif
