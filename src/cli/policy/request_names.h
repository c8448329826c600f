#ifndef SPILL_CLI_REQUEST_NAMES_H
#define SPILL_CLI_REQUEST_NAMES_H

/*
 * The functions whose requests a rule can match, by the names that the library compares with `api`.
 * The end is NULL. Made from shim/hooks.def by gen_hooks.
 */
extern const char *const cli_request_names[];

#endif
