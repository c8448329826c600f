/*
 * gen: programs that the build runs to make documents and samples from the tables of policy/.
 *
 * gen_options makes docs/options.md, the example policy and a dictionary; gen_log the log's schema
 * and tables; gen_man manual pages; gen_profiles the shipped policies as C. Only these programs
 * print. None is installed. Begin reading with main in gen_options.c, whose parts share this
 * header.
 */
#ifndef SPILL_GEN_OPTIONS_H
#define SPILL_GEN_OPTIONS_H

struct spill_option;

/* Prints the form of the row's values: "size, %". */
void print_values(const struct spill_option *row);

/* gen_sample.c */
void print_sample(void);

#endif
