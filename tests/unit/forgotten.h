/*
 * Memory that a forked child forgets, because it is its parent's. LeakSanitizer, where it runs, does
 * not take for lost what is allocated between the two calls.
 */
#ifndef SPILL_FORGOTTEN_H
#define SPILL_FORGOTTEN_H

__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

static inline void forgotten_begin(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

static inline void forgotten_end(void)
{
	if (__lsan_enable)
		__lsan_enable();
}

#endif
