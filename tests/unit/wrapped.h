/* Functions of the library that a test defines itself. meson.build names them for the linker (--wrap). */
#ifndef WRAPPED_H
#define WRAPPED_H

struct spill_launch_access;

void __wrap_spill_note(const char *code, const char *text);
void *__wrap_spill_before_launch(const struct spill_launch_access *access);
void __wrap_spill_after_launch(void *stopwatch);

#endif
