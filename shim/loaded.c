#include "libc_symbol.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "symbol_table.h"

/* The loader's list. Weak, because a strong reference would add a NEEDED entry for the loader. */
#pragma weak _r_debug
/* Our own dynamic section, which identifies our entry in the list. */
extern Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

void *spill_loaded_function(const char *soname, const char *name)
{
	const struct link_map *list = &_r_debug ? _r_debug.r_map : NULL;
	const struct link_map *map = list;
	struct spill_symbol_table table;
	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	if (!map)
		/* the list belongs to another namespace, which has its own C library */
		return NULL;
	for (map = list; map; map = map->l_next)
		if (spill_symbol_table_read(map->l_ld, map->l_addr, &table) && table.soname &&
		    spill_symbol_is(table.soname, soname))
			return spill_symbol_table_find(&table, name, STT_FUNC);
	return NULL;
}
