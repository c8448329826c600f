/*
 * The code behind a call: the return addresses of this thread's stack.
 *
 * The unwinder is the compiler's own (_Unwind_Backtrace), linked in and hidden. It reads the stack
 * by the tables of each object, without a check. So it steps only through frames that the caller
 * vouches for. Compilers write these tables for each function that they compile.
 */
#ifndef SPILL_CALL_STACK_H
#define SPILL_CALL_STACK_H

/*
 * The return address that lies `behind` frames behind `site`, a return address of this thread's
 * stack; 0: `site` itself. NULL if the stack does not lead there. pre: the frames between this
 * call and the wanted one are of compiled code
 */
const void *spill_call_stack_behind(const void *site, unsigned behind);

#endif
