/*
 * Requests that stay plain because their memory is exported. The driver refuses legacy IPC handles and SYNC_MEMOPS for memory
 * that is made of chunks, and a pointer that the program has cannot become plain. So it must be known at the request: by the
 * library that asks (policy/decide/exporters.def), or because an export of such memory was refused before.
 */
#ifndef SPILL_EXPORTING_H
#define SPILL_EXPORTING_H

#include "request.h"

/* Must it stay plain? A rule with place = movable overrules all, movable.enable = on the list. pre: it would be made of chunks */
bool spill_exporting_stays_plain(const struct spill_request *request);

/*
 * The driver has refused to export memory of so many bytes that this call site asked for: its requests of that size, by powers
 * of two, stay plain from now on. The address is kept for good: where another library comes to stand there, less is movable.
 */
void spill_exporting_learn(const void *site, uint64_t bytes);

#endif
