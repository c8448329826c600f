/* Of an archive, so that a test that has a main of its own does not get this one. */
#include "unit.h"

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
