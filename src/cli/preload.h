/* LD_PRELOAD for a program that is run under libspill.so. */
#ifndef SPILL_CLI_PRELOAD_H
#define SPILL_CLI_PRELOAD_H

/*
 * Puts libspill.so into LD_PRELOAD behind what is there, once. CLI_FINE, or CLI_FINDINGS after it has said what is wrong. Of what is
 * right and a person may not expect it says one line.
 */
int cli_preload(void);

#endif
