#include "property.h"

/* splitmix64 (Steele, Lea, Flood 2014): any state is a good one, so that a seed and a number make one. */
uint64_t chance_any(struct chance *chance)
{
	uint64_t mixed = chance->state += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

uint64_t chance_below(struct chance *chance, uint64_t limit)
{
	return chance_any(chance) % limit;
}

bool chance_once_in(struct chance *chance, unsigned times)
{
	return chance_below(chance, times) == 0;
}
