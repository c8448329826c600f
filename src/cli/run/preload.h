/*
 * run: `spill run`. It puts libspill.so into LD_PRELOAD, sets the variables of the given options
 * and of the program's framework, and starts the program by exec.
 *
 * Nothing of the command stays in the process. It asks no driver, and refuses only settings that
 * the library would refuse.
 *
 * Begin with cli_run in run.c.
 */
#ifndef SPILL_CLI_PRELOAD_H
#define SPILL_CLI_PRELOAD_H

/* Appends libspill.so to LD_PRELOAD, and prints anything wrong or unexpected. */
int cli_preload(void);

#endif
