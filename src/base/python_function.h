/*
 * The Python function that the calling thread runs.
 *
 * Native code that allocates has mostly released the GIL, so no function of CPython that touches
 * objects can be called. But while a thread is in native code, nobody changes its frames. So their
 * names are read from memory, by the offsets of known versions (python_versions.def). Each address
 * is checked before it is read, and each object by its type. If something is not as expected, no
 * function is known. Python must be the program, or linked to it.
 */
#ifndef SPILL_PYTHON_FUNCTION_H
#define SPILL_PYTHON_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes "model.py:Model.forward" into text[size]. Of the calling functions the innermost counts
 * that is in no installed package; else the innermost that is in no framework with an allocator of
 * its own; else the innermost. False, and `text` is undefined: the thread runs no Python function, or
 * it cannot be told.
 */
bool spill_python_function(char *text, size_t size);

#endif
