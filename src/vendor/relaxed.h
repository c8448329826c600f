/*
 * Calls that need a thread whose capture mode is relaxed. In a strict thread they fail and break the
 * captures that forbid them: the thread's own, and those of other threads in the global mode
 * (docs/measurements.md, "Facts about the vendor"). Such a capture may begin at any moment, also
 * between a look at the table of captures (capture.h) and the call. So each such call of libspill is
 * made relaxed. The mode is the program's, and it is back behind the call.
 *
 * CUDA Driver API, cuThreadExchangeStreamCaptureMode. HIP has the same modes.
 */
#ifndef SPILL_RELAXED_H
#define SPILL_RELAXED_H

/*
 * The value of `call`. `exchange` is the vendor's function, or NULL in a version without captures;
 * `mode` its type of modes, and `relaxed` its name for this one. A second exchange that returns an error, which may be that of earlier
 * work, is made again. The names are long because `call` must not meet them.
 */
#define SPILL_RELAXED(mode, relaxed, exchange, call) \
	__extension__({ \
		mode relaxed_before = relaxed; \
		bool relaxed_changed = (exchange) && !(exchange)(&relaxed_before); \
		__typeof__(call) relaxed_value = (call); \
		if (relaxed_changed && (exchange)(&relaxed_before)) \
			(exchange)(&relaxed_before); \
		relaxed_value; \
	})

#endif
