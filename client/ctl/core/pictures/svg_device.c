/* The device with its tensors as SVG. Tensors that overlap are drawn as one cluster, stronger kinds over weaker
 * ones. */
#include "client/ctl/core/pictures/svg.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/pictures/picture.h"

enum { DEVICE_SCALE_HEIGHT = 960, DEVICE_GAP = 6 };

/* Tensors that overlap share a cluster: their place in the picture is by offset, their size to one scale. */
struct cluster {
	unsigned first, n;
	int64_t from, to;
};

struct device {
	const struct npumem_geometry *geometry;
	const struct npumem_tensor **sorted;
	unsigned n;
	const struct svg_device *how;
	struct svg_columns columns;
	double y;	      /* where the next one goes */
	double label, offset; /* below the last label, and the last offset */
};

/* Not to scale, but more for more: a tensor of one small block can still be named. */
static double height_of(const struct device *device, int64_t bytes)
{
	double height = SVG_LINE;
	if (device->how->to_scale)
		return (double)DEVICE_SCALE_HEIGHT * (double)bytes / (double)device->geometry->npu_bytes;
	for (int64_t size = 128; size < bytes; size *= 2)
		height += 5;
	return height;
}

/* Offsets that would lie upon each other are left out. */
static void device_offset(struct svg *svg, struct device *device, double y, int64_t offset)
{
	if (y < device->offset)
		return;
	svg_offset(svg, y + 10, offset);
	device->offset = y + 12;
}

static void device_free(struct svg *svg, struct device *device, int64_t offset, int64_t bytes)
{
	double right = svg_columns_right(&device->columns),
	       height = device->how->to_scale ? height_of(device, bytes) : SVG_LINE;
	char text[128], size[SVG_BYTES_TEXT];
	const char *what = picture_gap(device->how->hidden);
	snprintf(text, sizeof(text), "%s per NPU %s", svg_bytes(bytes, size), what);
	svg_rect(svg, SVG_LEFT, device->y, right - SVG_LEFT, height, SVG_FREE, SVG_PLAIN,
		 "%s: all NPUs, offsets %" PRId64 " to %" PRId64 ", %" PRId64 " bytes each", what, offset,
		 offset + bytes - 1, bytes);
	if (height >= 14)
		svg_text(svg, (SVG_LEFT + right) / 2, device->y + height / 2 + 4, "m", text);
	device_offset(svg, device, device->y, offset);
	device->y += height + (device->how->to_scale ? 0 : DEVICE_GAP);
}

static struct cluster cluster_at(const struct device *device, unsigned first)
{
	const struct npumem_place *place = &device->sorted[first]->place;
	struct cluster cluster = {first, 1, place->offset, place->offset + place->bytes_per_npu};
	while (first + cluster.n < device->n && device->sorted[first + cluster.n]->place.offset < cluster.to) {
		place = &device->sorted[first + cluster.n++]->place;
		if (place->offset + place->bytes_per_npu > cluster.to)
			cluster.to = place->offset + place->bytes_per_npu;
	}
	return cluster;
}

static void tensor_label(struct svg *svg, struct device *device, const struct npumem_tensor *tensor, double at)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES], size[SVG_BYTES_TEXT];
	char text[3 * PRESENT_TEXT_BYTES + 96];
	const struct npumem_place *p = &tensor->place;
	double right = svg_columns_right(&device->columns), line = at > device->label ? at : device->label;
	snprintf(text, sizeof(text), "%s: %s %s, %s, %s per NPU from NPU %" PRId64 "%s%s%s",
		 present_name(tensor, device->how->uid, name), present_dtype(p, dtype), present_shape(p, shape),
		 npumem_layout_name(p->layout), svg_bytes(p->bytes_per_npu, size), p->start_npu,
		 tensor->dma_only ? ", DMA only" : "", strcmp(tensor->state, "ok") ? ", " : "",
		 strcmp(tensor->state, "ok") ? tensor->state : "");
	svg_line(svg, right + 3, at + 2, right + 14, line + 9);
	svg_text(svg, svg_marks(svg, right + 18, line, tensor), line + 13, "", text);
	device_offset(svg, device, at, p->offset);
	device->label = line + SVG_LINE;
}

/* Whether the byte at an offset of an NPU is in an empty block of another tensor of the cluster. */
static bool cluster_lends(const struct device *device, const struct cluster *cluster, unsigned borrower,
			  int64_t npu, int64_t offset)
{
	for (unsigned i = cluster->first; i < cluster->first + cluster->n; i++) {
		const struct npumem_place *p = &device->sorted[i]->place;
		if (i == borrower || offset < p->offset || offset >= p->offset + p->bytes_per_npu)
			continue;
		if (picture_kinds(device->geometry, p, npu, offset - p->offset, offset - p->offset + 1) &
		    NPUMEM_BYTE_EMPTY)
			return true;
	}
	return false;
}

/* Data in empty blocks of others is of its own kind. */
static void cluster_lent(const struct device *device, const struct cluster *cluster, unsigned i,
			 struct svg_box *box)
{
	const struct npumem_place *p = &device->sorted[i]->place;
	for (int64_t column = 0; column < device->columns.n; column++)
		for (int step = 0; step < box->steps; step++) {
			uint16_t *kind = &box->bits[column * box->steps + step];
			int64_t offset = p->offset + p->bytes_per_npu * step / box->steps;
			if (*kind == NPUMEM_BYTE_DATA &&
			    cluster_lends(device, cluster, i, device->columns.first[column], offset))
				*kind = SVG_LENT;
		}
}

/* Looks at a tensor of the cluster. */
static void cluster_box(const struct device *device, const struct cluster *cluster, double height, unsigned i,
			struct svg_box *box)
{
	const struct npumem_tensor *tensor = device->sorted[i];
	const struct npumem_place *p = &tensor->place;
	double scale = height / (double)(cluster->to - cluster->from);
	*box = (struct svg_box){.geometry = device->geometry,
				.tensor = tensor,
				.columns = &device->columns,
				.y = device->y + scale * (double)(p->offset - cluster->from),
				.height = scale * (double)p->bytes_per_npu,
				.colour = svg_colour(present_called(tensor))};
	svg_box_new(box);
	if (cluster->n > 1)
		cluster_lent(device, cluster, i, box);
}

/* Stronger kinds over weaker ones, so that a guest shows in the empty block that it borrows. */
static void cluster_boxes(struct svg *svg, const struct device *device, const struct cluster *cluster,
			  struct svg_box *boxes)
{
	static const unsigned order[] = {SVG_NOTHING,	    NPUMEM_BYTE_EMPTY, NPUMEM_BYTE_PADDING,
					 NPUMEM_BYTE_DUMMY, NPUMEM_BYTE_DATA,  SVG_LENT};
	char name[PRESENT_TEXT_BYTES];
	for (unsigned k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (unsigned i = 0; i < cluster->n; i++) {
			boxes[i].name = present_name(boxes[i].tensor, device->how->uid, name);
			svg_box_draw(svg, &boxes[i], order[k], order[k]);
		}
}

static void cluster_draw(struct svg *svg, struct device *device, const struct cluster *cluster)
{
	double height = height_of(device, cluster->to - cluster->from), labels = SVG_LINE * (double)cluster->n;
	struct svg_box *boxes = memory_new(cluster->n, sizeof(*boxes));
	if (!device->how->to_scale && height < labels)
		height = labels;
	for (unsigned i = 0; i < cluster->n; i++)
		cluster_box(device, cluster, height, cluster->first + i, &boxes[i]);
	cluster_boxes(svg, device, cluster, boxes);
	for (unsigned i = 0; i < cluster->n; i++) {
		const struct npumem_tensor *tensor = device->sorted[cluster->first + i];
		double below =
			(double)(tensor->place.offset - cluster->from) / (double)(cluster->to - cluster->from);
		tensor_label(svg, device, tensor, device->y + height * below);
		memory_free(boxes[i].bits);
	}
	device->y += height + (device->how->to_scale ? 0 : DEVICE_GAP);
}

static void device_draw(struct svg *svg, struct device *device)
{
	int64_t end = 0;
	svg_columns_numbers(svg, &device->columns);
	for (unsigned i = 0; i < device->n;) {
		struct cluster cluster = cluster_at(device, i);
		if (cluster.from > end)
			device_free(svg, device, end, cluster.from - end);
		cluster_draw(svg, device, &cluster);
		end = cluster.to;
		i += cluster.n;
	}
	if (end < device->geometry->npu_bytes)
		device_free(svg, device, end, device->geometry->npu_bytes - end);
}

void svg_device_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		     unsigned n, const struct svg_device *how)
{
	struct device device = {.geometry = geometry, .how = how, .y = SVG_TOP};
	char text[128], size[SVG_BYTES_TEXT], all[SVG_BYTES_TEXT];
	struct svg svg;
	device.sorted = picture_sort(tensors, n, &device.n);
	svg_columns_of(&device.columns, geometry, device.sorted, device.n);
	snprintf(text, sizeof(text), "%" PRId64 " NPUs of %s", geometry->n_npus,
		 svg_bytes(geometry->npu_bytes, size));
	svg_begin(&svg, out, text);
	snprintf(text, sizeof(text), "%u tensor%s; %s in all; offsets are bytes in each NPU", device.n,
		 present_s(device.n), svg_bytes(geometry->n_npus * geometry->npu_bytes, all));
	svg_subtitle(&svg, 0, text);
	svg_subtitle(&svg, 1,
		     how->to_scale ? "heights are to scale"
				   : "heights are not to scale; kinds that take turns are side by side");
	if (device.columns.n < geometry->n_npus)
		svg_subtitle(&svg, 2, "NPUs that look alike share a column");
	device_draw(&svg, &device);
	svg_end(&svg);
}
