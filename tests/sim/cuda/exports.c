/* usage: exports VERSION. Writes a version script that hides the functions of later drivers. */
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *symbol;
	int since;
} functions[] = {
#define DRIVER(symbol, base, since, variant, parameters) {#symbol, since},
#define MISSING(symbol, base, since, variant) {#symbol, since},
#include "cuda_api.def"
};

int main(int count, char **arguments)
{
	int version = count == 2 ? atoi(arguments[1]) : 0;

	if (!version)
		return 2;
	printf("{\n\tlocal:\n");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (functions[i].since > version)
			printf("\t\t%s;\n", functions[i].symbol);
	printf("};\n");
	return 0;
}
