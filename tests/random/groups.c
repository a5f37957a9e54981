#include "tests/random/groups.h"
bool groups_run(uint64_t seed, char *wrong, size_t bytes)
{
	(void)seed; (void)wrong; (void)bytes;
	return true;
}
