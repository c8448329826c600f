/*
 * Kernels for the simulator and for a real GPU from one source.
 *
 *	SIM_KERNEL(add, (u64 ptr, u64 words, u64 value), (ptr, words, value))
 *	{
 *		word *p = SIM_ADDRESS(word, ptr);
 *
 *		SIM_FOR (i, words)
 *			p[i] += value;
 *	}
 *
 * Every parameter is a u64, so the simulator can pass it without a compiler's help. One exception:
 * SIM_KERNEL_WITH_STRUCT(name, struct views, v, words, seed) begins with a structure by value. The
 * structure consists of whole words, and two words follow it.
 * SIM_KERNEL_WITH_LOCAL gives the local memory of a thread, which a GPU's compiler finds by itself.
 * SIM_RANGE(u64, ptr, words, times) is SIM_ADDRESS for a range that the kernel uses `times` times.
 * The simulator's model of time counts it (time.c). Not for kernels that wait for the host.
 * SIM_ROUNDS(times) is 1 on the simulator, where time.c is enough.
 * SIM_GLOBAL(u64, sums, 4) is a variable of the module, zero at first. SIM_VARIABLE(u64, sums)
 * points to it.
 *
 * A C compiler makes a function that runs the whole grid as one thread, for a shared object of the
 * simulator: gcc -shared -fPIC -o kernels.so kernels.c.
 * For a real GPU, nvcc -x cu -cubin (or -fatbin) makes a kernel of the same name.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#if defined(__CUDACC__) || defined(__HIPCC__)

typedef unsigned long long u64;

#define SIM_KERNEL(name, parameters, arguments) extern "C" __global__ void name parameters
#define SIM_KERNEL_WITH_LOCAL(name, parameters, arguments, bytes) extern "C" __global__ void name parameters
#define SIM_KERNEL_WITH_STRUCT(name, type, value, second, third) \
	extern "C" __global__ void name(type value, u64 second, u64 third)
#define SIM_GLOBAL(type, name, count) \
	extern "C" { \
	__device__ type name[count]; \
	}
#define SIM_VARIABLE(type, name) (name)
#define SIM_ADDRESS(type, address) ((type *)(address))
#define SIM_RANGE(type, address, count, times) ((type *)(address))
#define SIM_ROUNDS(times) (times)
#define SIM_FOR(i, count) \
	for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < (count); \
	     i += gridDim.x * (u64)blockDim.x)
#define SIM_SPIN() ((void)0)
#define SIM_FENCE() __threadfence_system()
#define SIM_ONCE if (blockIdx.x == 0 && threadIdx.x == 0)
#define SIM_ADD(pointer, value) atomicAdd((pointer), (value))

#else

#include <sched.h>
#include <stdint.h>

typedef unsigned long long u64;

/* The loader's view of a module. Version 4: parameters follow each other in words of 8 bytes. */
struct sim_kernel_entry {
	const char *name;
	void (*run)(const u64 *parameters);
	unsigned parameters;
	u64 local;      /* bytes per thread */
	unsigned first; /* further words of the first parameter; all others have one word */
};

struct sim_global_entry {
	const char *name;
	u64 bytes;
	u64 *address; /* set by the loader: its place on the device */
};

struct sim_module_table {
	unsigned version;
	const struct sim_kernel_entry *const *start, *const *stop;
	void *(**reach)(
	    /* set by the loader: turns a device address into a pointer, which faults if bad */
	    uint64_t address);
	void *(**range)(
	    /* the same for a range that the kernel uses `times` times, which takes time (time.c) */
	    uint64_t address, uint64_t bytes, uint64_t times);
	const struct sim_global_entry *const *globals_start, *const *globals_stop; /* NULL: none */
};

#ifndef SIM_KERNEL_LOADER /* not for the simulator itself, which needs the types only */

static void *(*sim_reach)(uint64_t address) __attribute__((unused));
static void *(*sim_range)(uint64_t address, uint64_t bytes, uint64_t times) __attribute__((unused));
__attribute__((visibility("hidden"))) extern const struct sim_kernel_entry *const __start_sim_kernels[];
__attribute__((visibility("hidden"))) extern const struct sim_kernel_entry *const __stop_sim_kernels[];
__attribute__((visibility("hidden"), weak)) extern const struct sim_global_entry *const __start_sim_globals[];
__attribute__((visibility("hidden"), weak)) extern const struct sim_global_entry *const __stop_sim_globals[];
__attribute__((visibility("default"), weak)) extern const struct sim_module_table sim_module_table;
__attribute__((visibility("default"), weak)) const struct sim_module_table sim_module_table = {
    4,          __start_sim_kernels, __stop_sim_kernels, &sim_reach,
    &sim_range, __start_sim_globals, __stop_sim_globals};

#define SIM_GLOBAL(type_, name_, count_) \
	static u64 name_##_address; \
	static const struct sim_global_entry name_##_global = {#name_, sizeof(type_) * (count_), \
	                                                       &name_##_address}; \
	__attribute__((section("sim_globals"), \
	               used)) static const struct sim_global_entry *const name_##_global_listed = \
	    &name_##_global;
#define SIM_VARIABLE(type, name) SIM_ADDRESS(type, name##_address)

#define SIM_KERNEL(name_, parameters_, arguments_) SIM_KERNEL_WITH_LOCAL(name_, parameters_, arguments_, 0)
#define SIM_KERNEL_WITH_LOCAL(name_, parameters_, arguments_, local_) \
	static void name_##_body parameters_; \
	static void name_##_run(const u64 *sim_parameter) \
	{ \
		SIM_CALL(name_##_body, SIM_COUNT arguments_); \
	} \
	static const struct sim_kernel_entry name_##_entry = {#name_, name_##_run, SIM_COUNT arguments_, \
	                                                      local_, 0}; \
	SIM_LIST(name_) static void name_##_body parameters_
#define SIM_KERNEL_WITH_STRUCT(name_, type_, value_, second_, third_) \
	_Static_assert(sizeof(type_) % 8 == 0 && sizeof(type_) <= 240, \
	               "words; SIM_PARAMETER_BYTES of core.h"); \
	static void name_##_body(type_ value_, u64 second_, u64 third_); \
	static void name_##_run(const u64 *sim_parameter) \
	{ \
		const u64 *sim_behind = sim_parameter + sizeof(type_) / 8; \
		name_##_body(*(const type_ *)sim_parameter, sim_behind[0], sim_behind[1]); \
	} \
	static const struct sim_kernel_entry name_##_entry = {#name_, name_##_run, 3, 0, \
	                                                      sizeof(type_) / 8 - 1}; \
	SIM_LIST(name_) static void name_##_body(type_ value_, u64 second_, u64 third_)
#define SIM_LIST(name_) \
	__attribute__((section("sim_kernels"), \
	               used)) static const struct sim_kernel_entry *const name_##_listed = &name_##_entry;

#define SIM_COUNT(...) SIM_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SIM_COUNT_(a, b, c, d, e, f, g, h, count, ...) count
#define SIM_CALL(body, count) SIM_CALL_(body, count)
#define SIM_CALL_(body, count) SIM_CALL_##count(body, sim_parameter)
#define SIM_CALL_1(body, p) body(p[0])
#define SIM_CALL_2(body, p) body(p[0], p[1])
#define SIM_CALL_3(body, p) body(p[0], p[1], p[2])
#define SIM_CALL_4(body, p) body(p[0], p[1], p[2], p[3])
#define SIM_CALL_5(body, p) body(p[0], p[1], p[2], p[3], p[4])
#define SIM_CALL_6(body, p) body(p[0], p[1], p[2], p[3], p[4], p[5])
#define SIM_CALL_7(body, p) body(p[0], p[1], p[2], p[3], p[4], p[5], p[6])
#define SIM_CALL_8(body, p) body(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])

#define SIM_ADDRESS(type, address) ((type *)sim_reach(address))
#define SIM_RANGE(type, address, count, times) ((type *)sim_range(address, (count) * sizeof(type), times))
#define SIM_ROUNDS(times) 1
#define SIM_FOR(i, count) for (u64 i = 0; i < (count); i++)
#define SIM_SPIN() sched_yield()                            /* in a loop that waits for the host */
#define SIM_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST) /* for the host and other devices */
#define SIM_ONCE if (1)
#define SIM_ADD(pointer, value) __atomic_fetch_add((pointer), (value), __ATOMIC_RELAXED)

#endif
#endif
#endif
