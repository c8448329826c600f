/* Each hooked driver function is simulated, under the same base name and version. */
#include <stdio.h>
#include <string.h>

struct row {
	const char *symbol, *base;
	int since;
	int here;
};

static const struct row rows[] = {
#define DRIVER(symbol, base, since, variant, parameters) {#symbol, #base, since, 1},
#define MISSING(symbol, base, since, variant) {#symbol, #base, since, 0},
#include "cuda_api.def"
};

static const struct row hooks[] = {
#define HOOK(domain, ret, symbol, base, since, ...) DOMAIN_##domain(symbol, base, since)
#define DOMAIN_CUDA_DRIVER(symbol, base, since) {#symbol, #base, since, 1},
#define DOMAIN_CUDA_RUNTIME(symbol, base, since)
#define DOMAIN_HIP(symbol, base, since)
#define DOMAIN_NVML(symbol, base, since)
#include "hooks.def"
};

int main(void)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
		const struct row *row = rows, *end = rows + sizeof(rows) / sizeof(*rows);

		while (row < end && strcmp(row->symbol, hooks[i].symbol))
			row++;
		if (row == end || strcmp(row->base, hooks[i].base) || row->since != hooks[i].since ||
		    !row->here) {
			printf("%s (%s, %d): %s\n", hooks[i].symbol, hooks[i].base, hooks[i].since,
			       row == end  ? "unknown"
			       : row->here ? "another base or version"
			                   : "not implemented");
			wrong++;
		}
	}
	printf("%zu hooks, %u wrong\n", sizeof(hooks) / sizeof(*hooks), wrong);
	return wrong != 0;
}
