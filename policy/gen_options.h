/* Inside the generator: what its parts share. */
#ifndef SPILL_GEN_OPTIONS_H
#define SPILL_GEN_OPTIONS_H

struct spill_option;

/* "size, %": how the row's values are written, on standard output. */
void print_values(const struct spill_option *row);

/* gen_sample.c */
void print_sample(void);

/* gen_variables.c */
void print_variables(void);

/* gen_words.c */
void print_words(void);

#endif
