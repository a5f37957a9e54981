/* The device with its tensors as SVG. Tensors that overlap are drawn as one cluster, stronger kinds over weaker
 * ones. */
#include "client/ctl/core/pictures/svg_device.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/ctl/core/pictures/picture.h"
#include "client/ctl/core/present.h"
#include "client/ctl/core/pictures/svg.h"

enum { DEVICE_LABELS = 300 /* room for names at the right */ };

/* Not to scale, but more for more: a tensor of one small block can still be named. */
static double height_of(int64_t bytes)
{
	double height = SVG_LINE;
	for (int64_t size = 128; size < bytes; size *= 2)
		height += 5;
	return height;
}

static void device_free_bytes(FILE *out, const struct svg_columns *columns, double y, int64_t offset,
			      int64_t bytes, bool hidden)
{
	char text[80];
	double right = svg_column_x(columns, columns->n - 1) + columns->width;
	snprintf(text, sizeof(text), "%" PRId64 " bytes per NPU %s", bytes, picture_gap(hidden));
	svg_offset(out, y + 12, offset);
	svg_text(out, (SVG_LEFT + right) / 2, y + 13, "class=\"m s\"", text);
}

/* Tensors that overlap share a cluster: their place in the picture is by offset, their size to one scale. */
struct cluster {
	unsigned first, n;
	int64_t from, to;
};

static struct cluster cluster_at(const struct npumem_tensor *const *sorted, unsigned n, unsigned first)
{
	const struct npumem_place *place = &sorted[first]->place;
	struct cluster cluster = {first, 1, place->offset, place->offset + place->bytes_per_npu};
	while (first + cluster.n < n && sorted[first + cluster.n]->place.offset < cluster.to) {
		place = &sorted[first + cluster.n++]->place;
		if (place->offset + place->bytes_per_npu > cluster.to)
			cluster.to = place->offset + place->bytes_per_npu;
	}
	return cluster;
}

static void cluster_labels(FILE *out, const struct svg_columns *columns, const struct npumem_tensor *const *sorted,
			   const struct cluster *cluster, double y, double height, uint32_t uid)
{
	char name[PRESENT_TEXT_BYTES], dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	char text[3 * PRESENT_TEXT_BYTES + 32];
	double right = svg_column_x(columns, columns->n - 1) + columns->width, below = y;
	for (unsigned i = cluster->first; i < cluster->first + cluster->n; i++) {
		const struct npumem_place *p = &sorted[i]->place;
		double at =
			y + height * (double)(p->offset - cluster->from) / (double)(cluster->to - cluster->from);
		double line = at > below ? at : below;
		snprintf(text, sizeof(text), "%s: %s %s", present_name(sorted[i], uid, name),
			 present_dtype(p, dtype), present_shape(p, shape));
		fprintf(out, "<path class=\"l\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", right + 3, at + 2, right + 14,
			line + 9);
		svg_text(out, right + 18, line + 13, "", text);
		svg_offset(out, line + 12, p->offset);
		below = line + SVG_LINE;
	}
}

static int cluster_draw(FILE *out, const struct npumem_geometry *geometry, const struct svg_columns *columns,
			const struct npumem_tensor *const *sorted, const struct cluster *cluster, double y,
			double height, struct npumem_error *error)
{
	/* Stronger kinds over weaker ones, so that a guest shows in the empty block that it borrows. */
	for (unsigned k = 0; k < SVG_KINDS; k++)
		for (unsigned i = cluster->first; i < cluster->first + cluster->n; i++) {
			const struct npumem_place *p = &sorted[i]->place;
			double scale = height / (double)(cluster->to - cluster->from);
			struct svg_box box;
			int status =
				svg_box_new(geometry, p, columns, y + scale * (double)(p->offset - cluster->from),
					    scale * (double)p->bytes_per_npu, &box, error);
			if (status)
				return status;
			bool guest = i > cluster->first && svg_kinds[k].bit == NPUMEM_BYTE_DATA;
			svg_box_draw(out, &box, &svg_kinds[k], guest ? &svg_guest_data : &svg_kinds[k]);
			free(box.bits);
		}
	return 0;
}

static double cluster_height(const struct npumem_tensor *const *sorted, const struct cluster *cluster)
{
	double height = height_of(cluster->to - cluster->from), labels = SVG_LINE * (double)cluster->n;
	(void)sorted;
	return height > labels ? height : labels;
}

int svg_device_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		    unsigned n, uint32_t uid, bool hidden, struct npumem_error *error)
{
	struct svg_columns columns = svg_columns_of(geometry->n_npus, 2);
	unsigned n_sorted;
	const struct npumem_tensor **sorted = picture_sort(tensors, n, &n_sorted);
	if (!sorted)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %u tensors", n);
	double height = SVG_TOP + 60;
	int64_t end = 0;
	for (unsigned i = 0; i < n_sorted;) {
		struct cluster cluster = cluster_at(sorted, n_sorted, i);
		height += cluster_height(sorted, &cluster) + 6 + (cluster.from > end ? SVG_LINE + 6 : 0);
		end = cluster.to;
		i += cluster.n;
	}
	char title[96], subtitle[96];
	snprintf(title, sizeof(title), "%" PRId64 " NPUs of %" PRId64 " bytes", geometry->n_npus,
		 geometry->npu_bytes);
	snprintf(subtitle, sizeof(subtitle), "%u tensors; offsets are bytes in each NPU, heights are not to scale",
		 n_sorted);
	svg_begin(out, svg_column_x(&columns, columns.n) + DEVICE_LABELS, height + SVG_LINE + 6, title, subtitle);
	svg_npus(out, &columns);
	double y = SVG_TOP;
	int status = 0;
	bool guests = false;
	end = 0;
	for (unsigned i = 0; i < n_sorted && !status;) {
		struct cluster cluster = cluster_at(sorted, n_sorted, i);
		guests |= cluster.n > 1;
		double tall = cluster_height(sorted, &cluster);
		if (cluster.from > end) {
			device_free_bytes(out, &columns, y, end, cluster.from - end, hidden);
			y += SVG_LINE + 6;
		}
		status = cluster_draw(out, geometry, &columns, sorted, &cluster, y, tall, error);
		cluster_labels(out, &columns, sorted, &cluster, y, tall, uid);
		y += tall + 6;
		end = cluster.to;
		i += cluster.n;
	}
	if (end < geometry->npu_bytes)
		device_free_bytes(out, &columns, y, end, geometry->npu_bytes - end, hidden);
	svg_end(out, y + SVG_LINE + 20, guests);
	free(sorted);
	return status;
}
