/* The array's geometry: the chip presets, and the limits that every other formula relies on.
 * A geometry that passed its check keeps every address below 2^40 and every offset below 2^30. */
#include <inttypes.h>
#include <string.h>

#include <npumem/layout.h>

struct chip {
	const char *name;
	struct npumem_geometry geometry;
};

static const struct chip chips[] = {
#define CHIP(name, n_npus, npu_bytes, n_banks, eu_bytes) {name, {n_npus, npu_bytes, n_banks, eu_bytes}},
#include <npumem/chips.def>
#undef CHIP
};

void npumem_geometry_default(struct npumem_geometry *geometry)
{
	*geometry = chips[0].geometry;
}

bool npumem_geometry_chip(const char *name, struct npumem_geometry *geometry)
{
	for (size_t i = 0; name && i < sizeof(chips) / sizeof(chips[0]); i++) {
		if (!strcmp(chips[i].name, name)) {
			*geometry = chips[i].geometry;
			return true;
		}
	}
	return false;
}

int npumem_geometry_check(const struct npumem_geometry *g, struct npumem_error *error)
{
	if (g->n_npus < 1 || g->n_npus > NPUMEM_NPUS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " NPUs is not in 1..%d", g->n_npus,
					NPUMEM_NPUS_MAX);
	if (g->npu_bytes < NPUMEM_NPU_BYTES_QUANTUM || g->npu_bytes > NPUMEM_NPU_BYTES_MAX ||
	    g->npu_bytes % NPUMEM_NPU_BYTES_QUANTUM != 0)
		return npumem_error_set(
			error, NPUMEM_INVALID, "%" PRId64 " bytes per NPU is not a multiple of %d in %d..%" PRId64,
			g->npu_bytes, NPUMEM_NPU_BYTES_QUANTUM, NPUMEM_NPU_BYTES_QUANTUM, NPUMEM_NPU_BYTES_MAX);
	if (g->n_banks < 1 || g->npu_bytes % g->n_banks != 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%" PRId64 " banks do not divide the %" PRId64 " bytes of an NPU",
					g->n_banks, g->npu_bytes);
	if (g->eu_bytes < 4 || g->eu_bytes > 128 || (g->eu_bytes & (g->eu_bytes - 1)) != 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%" PRId64 " EU bytes is not a power of two in 4..128", g->eu_bytes);
	return 0;
}
