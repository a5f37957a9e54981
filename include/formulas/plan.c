/* Answers to layout questions beyond the place itself, without allocating. */
#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"
#include "include/formulas/widths.h"

static void plan_banks(const struct npumem_geometry *geometry, struct npumem_plan *plan)
{
	int64_t bank_bytes = geometry->npu_bytes / geometry->n_banks;
	int64_t offset = plan->place.offset == NPUMEM_ANY ? 0 : plan->place.offset;
	plan->first_bank = offset / bank_bytes;
	plan->last_bank = (offset + plan->place.bytes_per_npu - 1) / bank_bytes;
}

/* Block rows, ceil((Q + C) / X), only grow with the start NPU, so none can do better than NPU 0. */
static void plan_start(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
		       struct npumem_plan *plan)
{
	struct npumem_spec first = *spec;
	first.start_npu = 0;
	first.address = NPUMEM_ANY;
	struct npumem_place place;
	if (npumem_place_resolve(geometry, &first, &place, NULL) == 0)
		plan->best_start_saves = plan->place.bytes_per_npu - place.bytes_per_npu;
}

static void plan_widths(const struct npumem_geometry *geometry, struct npumem_plan *plan)
{
	const struct npumem_place *place = &plan->place;
	plan->n_widths = widths_table(geometry, place->start_npu, place->words_n, place->cols, place->word_bytes,
				      plan->widths, NPUMEM_PLAN_WIDTHS_MAX);
	while (plan->n_widths > 0 && plan->widths[plan->n_widths - 1].bytes_per_npu > geometry->npu_bytes)
		plan->n_widths--;
}

int npumem_plan(const struct npumem_geometry *geometry, const struct npumem_spec *spec, struct npumem_plan *plan,
		struct npumem_error *error)
{
	struct npumem_plan p = {0};
	int status = npumem_place_resolve(geometry, spec, &p.place, error);
	if (status)
		return status;
	p.waste = p.place.blocks.dummy + p.place.blocks.padding + p.place.blocks.empty;
	plan_banks(geometry, &p);
	plan_start(geometry, spec, &p);
	if (p.place.cols > 0)
		plan_widths(geometry, &p);
	*plan = p;
	return 0;
}
