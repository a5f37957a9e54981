/* The verdict looks at one place exactly. The search asks the same of every offset at once: bytes that may not be
 * entered are painted into maps, one for each group of NPUs on which the new tensor has the same block rows, so
 * that a few maps of one NPU's size stand for all NPUs. */
#include "daemon/device/reuse.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/device/meet.h"
#include "daemon/device/overlap.h"
#include "daemon/device/runs.h"

struct verdict {
	const struct device *device;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	const struct asker *asker;
	int status;
};

static void add_range(const struct asker *asker, const char *name, const struct meet_range *range)
{
	npumem_error_text(asker->error, "tensor", name);
	npumem_error_number(asker->error, "npu", range->npu);
	npumem_error_number(asker->error, "offset", range->offset);
	npumem_error_number(asker->error, "bytes", range->bytes);
}

/* The message is "<before><name><after> on NPU ..., bytes ...; <remedy>". */
static bool refuse(struct verdict *verdict, const struct tensor *tensor, const struct meet_range *range,
		   const char *before, const char *after, const char *remedy)
{
	char name[ASKER_NAME_BYTES];
	asker_name(verdict->asker, tensor, name);
	verdict->status =
		npumem_error_set(verdict->asker->error, NPUMEM_FAILED_PRECONDITION,
				 "%s%s%s on NPU %" PRId64 ", bytes %" PRId64 " to %" PRId64 "; %s", before, name,
				 after, range->npu, range->offset, range->offset + range->bytes - 1, remedy);
	add_range(verdict->asker, name, range);
	return false;
}

/* Where the one's data lies in the other's footprint: the bytes that lockstep would destroy. There are some, since
 * a tensor has data at its first offset, and of two that meet one starts within the other. */
static void hazard(const struct npumem_geometry *geometry, const struct npumem_place *a,
		   const struct npumem_place *b, struct meet_range *range)
{
	if (!meet_first(geometry, a, MEET_DATA, b, MEET_FOOTPRINT, range))
		meet_first(geometry, a, MEET_FOOTPRINT, b, MEET_DATA, range);
}

static bool judge(void *ctx, struct tensor *tensor)
{
	struct verdict *verdict = ctx;
	const struct npumem_geometry *geometry = &verdict->device->options.geometry;
	const struct npumem_place *place = verdict->place;
	struct meet_range range;
	if (!meet_first(geometry, place, MEET_FOOTPRINT, &tensor->place, MEET_FOOTPRINT, &range))
		return true;
	if (meet_first(geometry, place, MEET_DATA, &tensor->place, MEET_DATA, &range))
		return refuse(verdict, tensor, &range, "the new tensor's data would lie on data of ", "",
			      "data over data is always refused: choose another address or start NPU");
	if (verdict->wish->reuse == NPUMEM_UNCHECKED)
		return true;
	if (meet_first(geometry, place, MEET_DATA, &tensor->place, NPUMEM_BYTE_PADDING, &range))
		return refuse(verdict, tensor, &range, "the new tensor's data would lie in padding of ", "",
			      "only empty blocks can be reused: choose another address or start NPU");
	hazard(geometry, place, &tensor->place, &range);
	if (!tensor_is_dma_only(tensor))
		return refuse(
			verdict, tensor, &range, "a kernel may write ", ", whose footprint meets the new tensor's",
			verdict->wish->dma_only ? "seal it, or allocate it dma_only"
						: "seal it, or allocate it dma_only; and allocate the new one "
						  "dma_only");
	if (!verdict->wish->dma_only)
		return refuse(verdict, tensor, &range,
			      "a kernel may write the new tensor, whose footprint meets that of ", "",
			      "allocate the new one dma_only");
	return true;
}

int reuse_verdict(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		  const struct asker *asker)
{
	struct verdict verdict = {.device = device, .place = place, .wish = wish, .asker = asker};
	overlap_each(device, place->offset, place->bytes_per_npu, NULL, judge, &verdict);
	return verdict.status;
}

/* ---- the search ---- */

enum { NARROW = 4, N_GROUPS };

/* A stretch of the new tensor's data, from its start. */
struct stretch {
	unsigned group;
	int64_t from, bytes;
};

struct search {
	const struct device *device;
	const struct npumem_place *place;
	const struct reuse_wish *wish;
	uint8_t *maps[N_GROUPS]; /* by group: bytes that data may not enter */
	uint8_t *hard;		 /* bytes that not even the footprint may enter */
	int64_t group_npu[N_GROUPS];
	struct stretch *stretches;
	size_t n_stretches, capacity;
};

/* NPUs differ only in having the first and the last block row or not, but for the one with a narrow last channel.
 */
static unsigned group_of(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t last = (place->start_npu + place->shape.c - 1) % geometry->n_npus;
	if (npu == last && place->last_w != place->shape.w)
		return NARROW;
	return (npu >= place->start_npu ? 1U : 0U) | (npu <= last ? 2U : 0U);
}

static bool npu_has_data(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	return (npu - place->start_npu + geometry->n_npus) % geometry->n_npus < place->shape.c;
}

static bool stretch_count(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct search *search = ctx;
	(void)offset;
	(void)bytes;
	unsigned group = group_of(&search->device->options.geometry, search->place, npu);
	if (search->group_npu[group] < 0)
		search->group_npu[group] = npu;
	search->capacity += search->group_npu[group] == npu;
	return true;
}

static bool stretch_add(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct search *search = ctx;
	unsigned group = group_of(&search->device->options.geometry, search->place, npu);
	if (search->group_npu[group] == npu)
		search->stretches[search->n_stretches++] = (struct stretch){group, offset, bytes};
	return true;
}

static bool paint_tensor(void *ctx, struct tensor *tensor)
{
	struct search *search = ctx;
	const struct npumem_geometry *geometry = &search->device->options.geometry;
	const struct npumem_place *place = &tensor->place;
	if (search->wish->reuse == NPUMEM_IF_SAFE && !search->wish->any_writer && !tensor_is_dma_only(tensor)) {
		memset(search->hard + place->offset, 1, (size_t)place->bytes_per_npu);
		return true;
	}
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		if (npu_has_data(geometry, search->place, npu))
			npumem_place_paint(geometry, place, npu, 0, place->bytes_per_npu,
					   search->maps[group_of(geometry, search->place, npu)] + place->offset);
	return true;
}

/* The last byte in a stretch of `map` that has one of `kinds`; -1 where none has. */
static int64_t last_blocked(const uint8_t *map, int64_t from, int64_t bytes, unsigned kinds)
{
	for (int64_t i = from + bytes; i-- > from;)
		if (map[i] & kinds)
			return i;
	return -1;
}

/* 0 where the tensor fits at `offset`; else the next offset worth a try. */
static int64_t try_at(const struct search *search, int64_t offset)
{
	unsigned kinds = MEET_DATA;
	int64_t blocked = last_blocked(search->hard, offset, search->place->bytes_per_npu, 1);
	if (blocked >= 0)
		return blocked + 1;
	if (search->wish->reuse == NPUMEM_IF_SAFE)
		kinds |= NPUMEM_BYTE_PADDING;
	for (size_t i = 0; i < search->n_stretches; i++) {
		const struct stretch *stretch = &search->stretches[i];
		blocked =
			last_blocked(search->maps[stretch->group], offset + stretch->from, stretch->bytes, kinds);
		if (blocked >= 0)
			return blocked - stretch->from + 1;
	}
	return 0;
}

static int search_begin(struct search *search)
{
	const struct heap *heap = search->device->heap;
	size_t npu_bytes = (size_t)search->device->options.geometry.npu_bytes;
	struct npumem_place origin = *search->place;
	origin.offset = 0;
	for (unsigned g = 0; g < N_GROUPS; g++)
		search->group_npu[g] = -1;
	runs_each(&search->device->options.geometry, &origin, true, stretch_count, search);
	search->stretches = heap_zalloc(heap, search->capacity, sizeof(*search->stretches));
	uint8_t *maps = heap_zalloc(heap, N_GROUPS + 1, npu_bytes);
	search->hard = maps;
	if (!search->stretches || !maps)
		return -ENOMEM;
	for (unsigned g = 0; g < N_GROUPS; g++)
		search->maps[g] = maps + (g + 1) * npu_bytes;
	runs_each(&search->device->options.geometry, &origin, true, stretch_add, search);
	overlap_each(search->device, 0, search->device->options.geometry.npu_bytes, NULL, paint_tensor, search);
	return 0;
}

int reuse_search(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		 int64_t *offset)
{
	struct search search = {.device = device, .place = place, .wish = wish};
	int64_t last = device->options.geometry.npu_bytes - place->bytes_per_npu;
	int status = NPUMEM_RESOURCE_EXHAUSTED;
	if (wish->reuse == NPUMEM_IF_SAFE && !wish->dma_only && !wish->any_writer)
		return status;
	if (search_begin(&search)) {
		status = -ENOMEM;
	} else {
		int64_t align = place->align_bytes;
		for (int64_t at = 0, next; at <= last; at = (next + align - 1) / align * align) {
			next = try_at(&search, at);
			if (next == 0) {
				*offset = at;
				status = 0;
				break;
			}
		}
	}
	heap_free(device->heap, search.stretches);
	heap_free(device->heap, search.hard);
	return status;
}
