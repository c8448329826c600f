/*
 * Every process of a session loads the library, and most never use a GPU. What these need of it at
 * their start and at their end shares few pages, because each page costs a page fault.
 */
#ifndef SPILL_AT_START_H
#define SPILL_AT_START_H

/* Of a function that runs in such a process, beside the constructors. */
#define SPILL_AT_START_CODE __attribute__((section(".text.startup")))

/* Of a variable that such a process reads or writes. It lies on the page that the loader clears. */
#define SPILL_AT_START_DATA __attribute__((section(".data.at_start")))

#endif
