/*
 * The answers that the program gets about its memory, and the driver's own answers without the
 * library.
 */
#include "movable.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver's own function, from its table of symbols: every other way leads to a hook. */
static void *driver_symbol(const char *name)
{
	struct link_map *library;
	const ElfW(Sym) *symbol = NULL;
	const char *names = NULL;

	if (dlinfo(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), RTLD_DI_LINKMAP, &library))
		return NULL;
	for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			symbol = (const void *)entry->d_un.d_ptr;
		if (entry->d_tag == DT_STRTAB)
			names = (const void *)entry->d_un.d_ptr;
	}
	/* The strings lie behind the symbols, as every linker has them. */
	for (; symbol && (const char *)symbol < names; symbol++)
		if (!strcmp(names + symbol->st_name, name))
			return (void *)(library->l_addr + symbol->st_value);
	return NULL;
}

char movable_side(CUdeviceptr address)
{
	static CUresult (*driver)(void *, CUpointer_attribute, CUdeviceptr);
	int type = 0;

	if (!driver)
		*(void **)&driver = driver_symbol("cuPointerGetAttribute");
	if (!driver)
		exit(64);
	CUresult result = driver(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
	return result ? '?' : type == CU_MEMORYTYPE_DEVICE ? 'd' : 'h';
}

void movable_where(const char *letter, const struct block *block)
{
	printf("where %s ", letter);
	for (uint64_t at = 0; at < block->bytes; at += MOVABLE_GRANULE)
		putchar(movable_side(block->address + at));
	putchar('\n');
}

/* Addresses as distances, so that two runs can be compared. */
CUresult movable_ask(const struct block *block)
{
	static CUpointer_attribute attributes[] = {
	    CU_POINTER_ATTRIBUTE_CONTEXT,          CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
	    CU_POINTER_ATTRIBUTE_IS_MANAGED,       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
	    CU_POINTER_ATTRIBUTE_MAPPED,           CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
	};
	const unsigned count = sizeof(attributes) / sizeof(*attributes);
	uint64_t points[] = {0, block->bytes / 2 + 1, block->bytes - 1};
	unsigned long long first_id = 0;

	for (unsigned p = 0; p < 3; p++) {
		CUdeviceptr at = block->address + points[p], base = 0;
		size_t bytes = 0;
		for (unsigned i = 0; i < count; i++) {
			unsigned long long one = 0, several = 0;
			void *value = &several;
			CUresult result = cuPointerGetAttribute(&one, attributes[i], at);
			CUresult again = cuPointerGetAttributes(1, &attributes[i], &value, at);
			unsigned long long from =
			    attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER     ? at
			    : attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ? block->address
			    : attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ? (uintptr_t)movable_context
			                                                    : 0;
			printf("at %u attribute %d: %d %llx %d %llx\n", p, attributes[i], result,
			       result ? 0 : one - from, again, several - (several ? from : 0));
		}
		unsigned long long id = 0;
		CUresult result = cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
		first_id = p ? first_id : id;
		printf("at %u id %d same %d\n", p, result, id == first_id && id != 0);
		result = cuMemGetAddressRange_v2(&base, &bytes, at);
		printf("at %u range %d %lld %zu\n", p, result, (long long)(base - block->address), bytes);
	}
	return CUDA_SUCCESS;
}

static CUresult set_memops(const struct block *block, bool right)
{
	const unsigned on = 1;

	return cuPointerSetAttribute(
	    &on, right ? CU_POINTER_ATTRIBUTE_SYNC_MEMOPS : CU_POINTER_ATTRIBUTE_IS_MANAGED, block->address);
}

CUresult movable_export(const char *word, const struct block *block)
{
	CUmemGenericAllocationHandle handle;
	CUipcMemHandle ipc;
	int descriptor;

	if (!strcmp(word, "ipc"))
		return cuIpcGetMemHandle(&ipc, block->address);
	if (!strcmp(word, "memops") || !strcmp(word, "wrong"))
		return set_memops(block, !strcmp(word, "memops"));
	if (!strcmp(word, "retain")) {
		CUresult result = cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)block->address);
		return result ? result : cuMemRelease(handle);
	}
	return cuMemGetHandleForAddressRange(&descriptor, block->address, block->bytes,
	                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}
