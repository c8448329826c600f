/* libspill.so for 32-bit programs (see meson.build here). A library needs at least one symbol. */
extern const char spill_i386[];
const char spill_i386[] = "libspill is for 64-bit programs; in this one it does nothing";
