/* A program that has no vendor's library at all. */
#include "rows.h"

int rows_begin(void)
{
	return 0;
}

int rows_last_error(void)
{
	return 0;
}
