/*
 * run: `spill run`. A program with LD_PRELOAD and the settings of its options in its environment,
 * by exec.
 *
 * It stays out of the program: exec leaves nothing of the command in the process. It asks no driver,
 * and refuses only settings that the library would refuse.
 *
 * Begin with cli_run in run.c.
 */
#ifndef SPILL_CLI_PRELOAD_H
#define SPILL_CLI_PRELOAD_H

/*
 * Puts libspill.so into LD_PRELOAD behind what is there, once. CLI_FINE, or CLI_FINDINGS after it has said what is wrong. Of what is
 * right and a person may not expect it says one line.
 */
int cli_preload(void);

#endif
