/* Start, errors, and cuGetProcAddress. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "green.h"

/* A function of any type, for addresses only. */
typedef void (*function)(void);

static const struct row_entry {
	const char *symbol, *base;
	int since;
	enum variant { LEGACY, PTDS, PTSZ } variant;
	function address;
} rows[ROWS];

/* -- functions that are not simulated ---------------------------------------------------------- */

static CUresult answer_missing(const char *symbol)
{
	sim_missing(symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Callers pass arguments of unknown types, which it ignores. */
#define MISSING(symbol, base, since, variant) \
	SIM_EXPORT CUresult symbol(void); \
	CUresult symbol(void) \
	{ \
		return answer_missing(#symbol); \
	}
#include "cuda_api.def"

static const struct row_entry rows[ROWS] = {
#define DRIVER(symbol, base, since, variant, parameters) {#symbol, #base, since, variant, (function)symbol},
#define MISSING(symbol, base, since, variant) {#symbol, #base, since, variant, (function)symbol},
#include "cuda_api.def"
};

/* -- entering ---------------------------------------------------------------------------------- */

CUresult driver_result(enum sim_status status)
{
	static const CUresult results[] = {
	    [SIM_OK] = CUDA_SUCCESS,
	    [SIM_INVALID] = CUDA_ERROR_INVALID_VALUE,
	    [SIM_NO_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
	    [SIM_NO_HOST_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
	    [SIM_NO_DEVICE] = CUDA_ERROR_NO_DEVICE,
	    [SIM_FORKED] = CUDA_ERROR_NOT_INITIALIZED,
	    [SIM_NOT_READY] = CUDA_ERROR_NOT_READY,
	    [SIM_NOT_FOUND] = CUDA_ERROR_NOT_FOUND,
	    [SIM_BAD_IMAGE] = CUDA_ERROR_INVALID_IMAGE,
	    [SIM_NOT_SUPPORTED] = CUDA_ERROR_NOT_SUPPORTED,
	    [SIM_BAD_CONTEXT] = CUDA_ERROR_CONTEXT_IS_DESTROYED,
	    [SIM_ILLEGAL_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
	    [SIM_LAUNCH_FAILED] = CUDA_ERROR_LAUNCH_FAILED,
	    [SIM_ALREADY] = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	    [SIM_NOT_REGISTERED] = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	    [SIM_CAPTURE_UNSUPPORTED] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	    [SIM_CAPTURE_INVALIDATED] = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
	    [SIM_CAPTURE_MERGE] = CUDA_ERROR_STREAM_CAPTURE_MERGE,
	    [SIM_CAPTURE_UNMATCHED] = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
	    [SIM_CAPTURE_UNJOINED] = CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
	    [SIM_CAPTURE_ISOLATION] = CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
	    [SIM_CAPTURE_IMPLICIT] = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
	    [SIM_CAPTURE_EVENT] = CUDA_ERROR_CAPTURED_EVENT,
	    [SIM_CAPTURE_WRONG_THREAD] = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	    [SIM_CAPTURE_STATE] = CUDA_ERROR_ILLEGAL_STATE,
	    [SIM_UNKNOWN] = CUDA_ERROR_UNKNOWN,
	};

	return results[status];
}

CUresult driver_enter(enum row row, enum needs needs, const void *caller)
{
	int code;

	if (sim_fault(rows[row].symbol, rows[row].base, caller, &code))
		return code < 0 ? CUDA_ERROR_OUT_OF_MEMORY : (CUresult)code;
	if (needs == NOTHING)
		return CUDA_SUCCESS;
	if (sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (needs == INIT)
		return driver_capture_forbids(row);
	struct sim_context *context = driver_current();
	if (!context)
		return driver_current_green() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	enum sim_status status = sim_context_status(context);
	return status ? driver_result(status) : driver_capture_forbids(row);
}

CUresult cuInit(unsigned int Flags)
{
	ENTER(cuInit, NOTHING);
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_init());
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	ENTER(cuDriverGetVersion, NOTHING);
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = driver_version;
	return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void)
{
	ENTER(cuProfilerStart, CONTEXT);
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	ENTER(cuProfilerStop, CONTEXT);
	return CUDA_SUCCESS;
}

/* -- errors ------------------------------------------------------------------------------------ */

static const struct {
	int number;
	const char *name, *text;
} errors[] = {
#define ERROR(number, name, text) {number, #name, text},
#include "cuda_errors.def"
};

static CUresult about_error(CUresult error, const char **out, bool name)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].number == (int)error)
			*out = name ? errors[i].name : errors[i].text;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	return about_error(error, pStr, true);
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	return about_error(error, pStr, false);
}

/* -- the resolver ------------------------------------------------------------------------------ */

/* The newest row for a program of `version`, per-thread if flagged. *known: the name has a row. */
static const struct row_entry *resolve_name(const char *base, int version, cuuint64_t flags, bool *known)
{
	const struct row_entry *best = NULL;
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	*known = false;
	for (const struct row_entry *row = rows; row < rows + ROWS; row++) {
		if (strcmp(row->base, base) || (row->variant != LEGACY && !per_thread) ||
		    row->since > driver_newest)
			continue;
		*known = true;
		if (row->since > version)
			continue;
		if (!best || row->variant > best->variant ||
		    (row->variant == best->variant && row->since > best->since))
			best = row;
	}
	return best;
}

/* SPILL_SIM_LOOKUPS: a file with a line per look-up: name, version, flags, and the symbol found. */
static void record_lookup(const char *base, int version, cuuint64_t flags, const struct row_entry *row)
{
	const char *path = getenv("SPILL_SIM_LOOKUPS");
	int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (file < 0)
		return;
	/* NVIDIA's runtime also asks without a name. */
	dprintf(file, "%s %d %llu %s\n", *base ? base : "-", version, (unsigned long long)flags,
	        row ? row->symbol : "-");
	close(file);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int driverVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolFound)
{
	bool known;

	ENTER(cuGetProcAddress_v2, NOTHING);
	if (!symbol || !pfn || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	const struct row_entry *row = resolve_name(symbol, driverVersion, flags, &known);
	record_lookup(symbol, driverVersion, flags, row);
	*pfn = row ? (void *)row->address : NULL;
	if (symbolFound)
		*symbolFound = row     ? CU_GET_PROC_ADDRESS_SUCCESS
		               : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
		                       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!row)
		sim_say("cuGetProcAddress(\"%s\", %d): not found", symbol, driverVersion);
	return row ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int driverVersion, cuuint64_t flags)
{
	ENTER(cuGetProcAddress, NOTHING);
	return cuGetProcAddress_v2(symbol, pfn, driverVersion, flags, NULL);
}

/* The private tables are not simulated. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	ENTER(cuGetExportTable, NOTHING);
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
