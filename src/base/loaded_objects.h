/*
 * The objects that are loaded, for whoever looks through them. dl_iterate_phdr(3) holds a lock of the loader, which a fork in
 * another thread copies as it is: the child would wait for it for ever, when it looks itself. So all our looks are under a
 * lock that fork takes as well, unless a look takes long: it may wait for the thread that forks. What the program's own threads do in the loader while another one forks is between the two.
 */
#ifndef SPILL_LOADED_OBJECTS_H
#define SPILL_LOADED_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* As dl_iterate_phdr(3). pre: `visit` calls nothing that takes a lock */
int spill_loaded_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

/* True inside a look of this thread, whose dl_iterate_phdr may be another library's wrapper. */
bool spill_loaded_objects_looking(void);

void spill_loaded_objects_fork_prepare(void);
void spill_loaded_objects_fork_parent(void);
void spill_loaded_objects_fork_child(void);

#endif
