/*
 * Calls a function of the table with all arguments zero: ZEROS (a, b, c) is (0, 0, 0), so that each call is compiled
 * with the row's own prototype. Structures are passed by value under two names only, extent and shared.
 */
#ifndef ROWS_ZERO_H
#define ROWS_ZERO_H

#define ZEROS(names) ZEROS_COUNTED names
#define ZEROS_COUNTED(...) ZEROS_PICK(_, ##__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__)
#define ZEROS_PICK(_, a, b, c, d, e, f, g, h, i, j, k, count, ...) ZEROS_##count
#define ZEROS_0(...) ()
#define ZEROS_1(a) (ZERO(a))
#define ZEROS_2(a, b) (ZERO(a), ZERO(b))
#define ZEROS_3(a, b, c) (ZERO(a), ZERO(b), ZERO(c))
#define ZEROS_4(a, b, c, d) (ZERO(a), ZERO(b), ZERO(c), ZERO(d))
#define ZEROS_5(a, b, c, d, e) (ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e))
#define ZEROS_6(a, b, c, d, e, f) (ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f))
#define ZEROS_7(a, b, c, d, e, f, g) (ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f), ZERO(g))
#define ZEROS_8(a, b, c, d, e, f, g, h) \
	(ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f), ZERO(g), ZERO(h))
#define ZEROS_9(a, b, c, d, e, f, g, h, i) \
	(ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f), ZERO(g), ZERO(h), ZERO(i))
#define ZEROS_10(a, b, c, d, e, f, g, h, i, j) \
	(ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f), ZERO(g), ZERO(h), ZERO(i), ZERO(j))
#define ZEROS_11(a, b, c, d, e, f, g, h, i, j, k) \
	(ZERO(a), ZERO(b), ZERO(c), ZERO(d), ZERO(e), ZERO(f), ZERO(g), ZERO(h), ZERO(i), ZERO(j), ZERO(k))

/* 0, or for an argument called extent or shared the structure zero_extent or zero_shared. */
#define ZERO(name) ZERO_SECOND(ZERO_IS_##name, 0, _)
#define ZERO_SECOND(...) ZERO_SECOND_(__VA_ARGS__)
#define ZERO_SECOND_(first, second, ...) second
#define ZERO_IS_extent _, zero_extent
#define ZERO_IS_shared _, zero_shared

#endif
