/*
 * Modules: ELF shared objects built with kernel.h. Each load makes a copy of the file. So two loads
 * of one file are two modules with their own data, and a later change of the file has no effect.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core_internal.h"
#define SIM_KERNEL_LOADER
#include "kernel.h"

struct sim_kernel {
	struct object object;
	struct sim_module *module;
	const struct sim_kernel_entry *entry;
	struct sim_kernel *next;
	atomic_bool loaded;
	atomic_bool spoilt;
	uint64_t room; /* device bytes, once it is loaded */
	_Alignas(16) char face[SIM_FACE];
};

struct sim_module {
	struct object object;
	struct sim_context *context;
	struct sim_module *next;
	void *handle;
	/* kept open: the dynamic loader knows a library by its name, which has the descriptor */
	int file;
	const struct sim_module_table *table;
	struct sim_kernel *kernels; /* kernels that were looked up */
	struct range *data;         /* its variables on the device, NULL: none */
	uint64_t context_id, room;  /* device bytes of a settled module */
	atomic_bool settled;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* Size of the ELF file at `image`. `limit` bytes of it are readable. 0: not a module of ours. */
static uint64_t image_bytes(const void *image, uint64_t limit)
{
	const Elf64_Ehdr *header = image;

	if (limit < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_type != ET_DYN ||
	    header->e_machine != MACHINE)
		return 0;
	uint64_t end = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	uint64_t programs_end = header->e_phoff + (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
	if (programs_end > limit || header->e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	const Elf64_Phdr *program = (const void *)((const char *)image + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (program[i].p_offset + program[i].p_filesz > end)
			end = program[i].p_offset + program[i].p_filesz;
	return end <= limit ? end : 0;
}

static bool write_all(int file, const char *data, uint64_t bytes)
{
	while (bytes) {
		ssize_t some = write(file, data, bytes);

		if (some < 0 && errno == EINTR)
			continue;
		if (some <= 0)
			return false;
		data += some;
		bytes -= (uint64_t)some;
	}
	return true;
}

static void close_module(struct sim_module *module)
{
	for (struct sim_kernel *kernel = module->kernels, *next; kernel; kernel = next) {
		next = kernel->next;
		room_give(module->context, module->context_id, kernel->room);
		object_delete(kernel);
	}
	if (module->data)
		alloc_module_gone(module->data);
	room_give(module->context, module->context_id, module->room);
	if (module->handle)
		dlclose(module->handle);
	if (module->file >= 0)
		close(module->file);
	object_delete(module);
}

static enum sim_status open_path(struct sim_module *module, const char *path)
{
	module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	module->table = module->handle ? dlsym(module->handle, "sim_module_table") : NULL;
	if (!module->table || module->table->version != 4) {
		const char *error = dlerror();

		sim_say("no module: %s", error ? error : "unknown version of kernel.h");
		return SIM_BAD_IMAGE;
	}
	*module->table->reach = guard_reach;
	*module->table->range = guard_range;
	return SIM_OK;
}

/* Lays out its variables in a row, each aligned as an allocation. */
static enum sim_status place_variables(struct sim_module *module)
{
	uint64_t bytes = 0;

	for (const struct sim_global_entry *const *entry = module->table->globals_start;
	     entry < module->table->globals_stop; entry++)
		bytes += round_up((*entry)->bytes, UNIT);
	enum sim_status status = bytes ? alloc_for_module(module->context, bytes, &module->data) : SIM_OK;
	if (status || !bytes)
		return status;
	uint64_t address = module->data->address;
	for (const struct sim_global_entry *const *entry = module->table->globals_start;
	     entry < module->table->globals_stop; entry++) {
		*(*entry)->address = address;
		address += round_up((*entry)->bytes, UNIT);
	}
	return SIM_OK;
}

enum sim_status sim_module_settle(struct sim_module *module)
{
	uint64_t room, data = module->data ? module->data->bytes : 0;

	if (atomic_load(&module->settled))
		return SIM_OK;
	enum sim_status status = room_take(module->context, SIM_ROOM_MODULE, data, &room);
	if (status)
		return status;
	if (atomic_exchange(&module->settled, true)) /* another thread was first */
		room_give(module->context, module->context_id, room);
	else
		module->room = room;
	return SIM_OK;
}

/* `path`: the file itself, for a process that may not write files this large, or NULL. */
static enum sim_status load_module(struct sim_context *context, const void *image, uint64_t limit,
                                   const char *path, bool lazily, struct sim_module **out)
{
	uint64_t bytes = image_bytes(image, limit);
	struct rlimit most;
	char name[64];

	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	if (!bytes)
		return SIM_BAD_IMAGE;
	struct sim_module *module = object_new(OBJECT_MODULE, sizeof(*module));
	if (!module)
		return SIM_NO_HOST_MEMORY;
	module->context = context;
	module->context_id = context->id;
	module->file = -1;
	/* A write beyond the limit would raise a signal that ends the program. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur >= bytes)
		module->file = memfd_create("sim-kernels", MFD_CLOEXEC);
	if (module->file >= 0 && write_all(module->file, image, bytes)) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", module->file);
		path = name;
	}
	enum sim_status status = path ? open_path(module, path) : SIM_NO_HOST_MEMORY;
	if (!status)
		status = place_variables(module);
	if (!status && !lazily)
		status = sim_module_settle(module);
	if (status) {
		close_module(module);
		return status;
	}
	pthread_mutex_lock(&lock);
	module->next = context->modules;
	context->modules = module;
	pthread_mutex_unlock(&lock);
	*out = module;
	return SIM_OK;
}

enum sim_status sim_module_load_data(struct sim_context *context, const void *image, struct sim_module **out)
{
	return image ? load_module(context, image, UINT64_MAX, NULL, false, out) : SIM_INVALID;
}

enum sim_status sim_module_load_lazily(struct sim_context *context, const void *image,
                                       struct sim_module **out)
{
	return image ? load_module(context, image, UINT64_MAX, NULL, true, out) : SIM_INVALID;
}

enum sim_status sim_module_load_file(struct sim_context *context, const char *path, struct sim_module **out)
{
	struct stat about;
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *image = MAP_FAILED;

	if (file < 0)
		return path ? SIM_NOT_FOUND : SIM_INVALID;
	if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
		image = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	if (image == MAP_FAILED)
		return SIM_BAD_IMAGE;
	enum sim_status status = load_module(context, image, (uint64_t)about.st_size, path, false, out);
	munmap(image, (size_t)about.st_size);
	return status;
}

/* Takes it out of its context's list. False: another thread was first. */
static bool take_out(struct sim_module *module)
{
	struct sim_module **link = &module->context->modules;

	while (*link && *link != module)
		link = &(*link)->next;
	bool found = *link;
	if (found)
		*link = module->next;
	return found;
}

enum sim_status sim_module_unload(struct sim_module *module)
{
	if (!sim_module_alive(module))
		return SIM_INVALID;
	sim_context_synchronize(module->context);
	pthread_mutex_lock(&lock);
	bool found = sim_module_alive(module) && take_out(module);
	pthread_mutex_unlock(&lock);
	if (found)
		close_module(module);
	return found ? SIM_OK : SIM_INVALID;
}

void module_context_gone(struct sim_context *context)
{
	pthread_mutex_lock(&lock);
	struct sim_module *module = context->modules, *next;
	context->modules = NULL;
	pthread_mutex_unlock(&lock);
	for (; module; module = next) {
		next = module->next;
		close_module(module);
	}
}

bool sim_module_alive(struct sim_module *module)
{
	return object_is(module, OBJECT_MODULE);
}

struct sim_context *sim_module_context(struct sim_module *module)
{
	return module->context;
}

uint64_t sim_image_bytes(const void *image, uint64_t limit)
{
	return image ? image_bytes(image, limit) : 0;
}

unsigned sim_module_kernel_count(struct sim_module *module)
{
	return (unsigned)(module->table->stop - module->table->start);
}

static struct sim_kernel *kernel_of(struct sim_module *module, const struct sim_kernel_entry *entry)
{
	struct sim_kernel *kernel = module->kernels;

	while (kernel && kernel->entry != entry)
		kernel = kernel->next;
	if (!kernel && (kernel = object_new(OBJECT_KERNEL, sizeof(*kernel)))) {
		kernel->module = module;
		kernel->entry = entry;
		kernel->next = module->kernels;
		module->kernels = kernel;
	}
	return kernel;
}

enum sim_status sim_module_kernel(struct sim_module *module, const char *name, struct sim_kernel **out)
{
	if (!sim_module_alive(module) || !name)
		return SIM_INVALID;
	for (const struct sim_kernel_entry *const *entry = module->table->start; entry < module->table->stop;
	     entry++) {
		if (strcmp((*entry)->name, name))
			continue;
		pthread_mutex_lock(&lock);
		struct sim_kernel *kernel = kernel_of(module, *entry);
		pthread_mutex_unlock(&lock);
		if (kernel)
			*out = kernel;
		return kernel ? SIM_OK : SIM_NO_HOST_MEMORY;
	}
	return SIM_NOT_FOUND;
}

enum sim_status sim_module_global(struct sim_module *module, const char *name, uint64_t *address,
                                  uint64_t *bytes)
{
	if (!sim_module_alive(module) || !name)
		return SIM_INVALID;
	for (const struct sim_global_entry *const *entry = module->table->globals_start;
	     entry < module->table->globals_stop; entry++) {
		if (strcmp((*entry)->name, name))
			continue;
		*address = *(*entry)->address;
		*bytes = (*entry)->bytes;
		return SIM_OK;
	}
	return SIM_NOT_FOUND;
}

bool sim_kernel_alive(struct sim_kernel *kernel)
{
	return object_is(kernel, OBJECT_KERNEL);
}

const char *sim_kernel_name(struct sim_kernel *kernel)
{
	return kernel->entry->name;
}

struct sim_module *sim_kernel_module(struct sim_kernel *kernel)
{
	return kernel->module;
}

bool sim_kernel_parameter(struct sim_kernel *kernel, size_t index, size_t *offset, size_t *bytes)
{
	const struct sim_kernel_entry *entry = kernel->entry;

	if (index >= entry->parameters)
		return false;
	*offset = (index + (index ? entry->first : 0)) * sizeof(u64);
	*bytes = (1 + (index ? 0 : entry->first)) * sizeof(u64);
	return true;
}

size_t sim_kernel_parameter_bytes(struct sim_kernel *kernel)
{
	return (kernel->entry->parameters + kernel->entry->first) * sizeof(u64);
}

uint64_t sim_kernel_local(struct sim_kernel *kernel)
{
	return kernel->entry->local;
}

void *sim_kernel_face(struct sim_kernel *kernel)
{
	return kernel->face;
}

bool sim_kernel_loaded(struct sim_kernel *kernel)
{
	return atomic_load(&kernel->loaded);
}

enum sim_status sim_kernel_load(struct sim_kernel *kernel)
{
	struct sim_module *module = kernel->module;
	uint64_t room;

	if (atomic_load(&kernel->loaded))
		return SIM_OK;
	if (atomic_load(&kernel->spoilt))
		return SIM_UNKNOWN;
	enum sim_status status = sim_module_settle(module);
	if (status)
		return status;
	status = room_take(module->context, SIM_ROOM_FUNCTION, 0, &room);
	if (status) {
		atomic_store(&kernel->spoilt, true);
		return status;
	}
	if (atomic_exchange(&kernel->loaded, true)) /* another thread was first */
		room_give(module->context, module->context_id, room);
	else
		kernel->room = room;
	return SIM_OK;
}

/* -- launching --------------------------------------------------------------------------------- */

struct launch {
	void (*run)(const u64 *parameters);
	struct sim_kernel_node about;
	void *pointers[SIM_PARAMETERS];
	u64 parameter[];
};

static void launch_now(void *data)
{
	const struct launch *launch = data;

	time_launch();
	launch->run(launch->parameter);
}

const struct sim_kernel_node *launch_about(const void *data)
{
	return &((const struct launch *)data)->about;
}

enum sim_status sim_launch(struct sim_stream *stream, struct sim_kernel *kernel,
                           const struct sim_shape *shape, const void *parameters)
{
	if (!sim_kernel_alive(kernel))
		return SIM_INVALID;
	enum sim_status status = sim_kernel_load(kernel);
	if (!status)
		status = sim_context_local(kernel->module->context, kernel->entry->local);
	if (status)
		return status;
	size_t bytes = sim_kernel_parameter_bytes(kernel), offset, size;
	struct launch *launch = malloc(sizeof(*launch) + bytes);
	if (!launch)
		return SIM_NO_HOST_MEMORY;
	launch->run = kernel->entry->run;
	memcpy(launch->parameter, parameters, bytes);
	for (unsigned i = 0; sim_kernel_parameter(kernel, i, &offset, &size); i++)
		launch->pointers[i] = (char *)launch->parameter + offset;
	launch->about = (struct sim_kernel_node){kernel, *shape, launch->pointers};
	return stream_submit(stream, SIM_NODE_KERNEL, launch_now, launch, false, false);
}
