/*
 * Requests that stay plain because their memory is exported.
 *
 * The driver refuses SYNC_MEMOPS for memory that is made of chunks, and legacy IPC handles, which
 * libspill cannot serve everywhere (ipc.h). A pointer that the program has cannot become plain
 * memory. So the request must be recognised: by
 * the library that asks (policy/decide/exporters.def), or because an export of such memory was
 * refused before.
 */
#ifndef SPILL_EXPORTING_H
#define SPILL_EXPORTING_H

#include "request.h"

/*
 * Must the request stay plain? A rule with place = movable overrules both ways, and movable.enable
 * = on overrules the list. pre: the memory would be made of chunks
 */
bool spill_exporting_stays_plain(const struct spill_request *request);

/*
 * Exportable memory that is not exported: the library that asks is known for that
 * (policy/decide/exporters.def).
 */
bool spill_exporting_keeps(const struct spill_request *request);

/*
 * The driver refused to export `bytes` that this call site asked for. From now on its requests of
 * that size class, a power of two, stay plain. The address is kept for good: if another library is
 * loaded there later, fewer of its requests are movable.
 */
void spill_exporting_learn(const void *site, uint64_t bytes);

#endif
