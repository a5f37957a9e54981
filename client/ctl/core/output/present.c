/* Places and tensors as JSON and as text. The names of the fields are a contract with scripts. */
#include "client/ctl/core/output/output.h"

#include <inttypes.h>
#include <stdarg.h>

#include "client/ctl/core/kernels/kernels.h"

enum { PRESENT_LINE_BYTES = 1024 };

static json_t *dims_object(const struct npumem_dims *dims)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "n", (json_int_t)dims->n, "c", (json_int_t)dims->c, "h",
			 (json_int_t)dims->h, "w", (json_int_t)dims->w);
}

json_t *present_place(const struct npumem_place *p)
{
	bool matrix = p->layout == NPUMEM_MATRIX;
	return json_pack("{s:o, s:o, s:o, s:I, s:o, s:I, s:o, s:I, s:I, s:{s:I, s:I, s:I, s:I}}", "address",
			 jsons_integer(p->address), "npu", jsons_integer(p->npu), "offset",
			 jsons_integer(p->offset), "start_npu", (json_int_t)p->start_npu, "w",
			 matrix ? json_integer(p->w) : json_null(), "channels_per_npu",
			 (json_int_t)p->channels_per_npu, "stride", dims_object(&p->stride), "bytes_per_npu",
			 (json_int_t)p->bytes_per_npu, "align_bytes", (json_int_t)p->align_bytes, "blocks", "data",
			 (json_int_t)p->blocks.data, "dummy", (json_int_t)p->blocks.dummy, "padding",
			 (json_int_t)p->blocks.padding, "empty", (json_int_t)p->blocks.empty);
}

int64_t present_bytes(const struct npumem_place *place)
{
	const struct npumem_blocks *blocks = &place->blocks;
	return blocks->data + blocks->dummy + blocks->padding + blocks->empty;
}

void present_tensor(json_t **object, const struct npumem_tensor *tensor)
{
	const struct npumem_place *p = &tensor->place;
	json_t *shape = json_pack("[I, I, I, I]", (json_int_t)p->shape.n, (json_int_t)p->shape.c,
				  (json_int_t)p->shape.h, (json_int_t)p->shape.w);
	json_t *more = json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:b, s:b, s:o}", "name",
				 jsons_text(tensor->name), "uid", (json_int_t)tensor->uid, "shape", shape, "dtype",
				 jsons_text(npumem_dtype_name(p->dtype)), "frac_bits", jsons_integer(p->frac_bits),
				 "layout", jsons_text(npumem_layout_name(p->layout)), "mode",
				 jsons_text(npumem_mode_name(p->mode)), "address", jsons_integer(p->address),
				 "bytes", (json_int_t)present_bytes(p), "bytes_per_npu",
				 (json_int_t)p->bytes_per_npu, "sealed", tensor->sealed, "dma_only",
				 tensor->dma_only, "pinned", tensor->pinned, "state", jsons_text(tensor->state));
	if (p->layout == NPUMEM_MATRIX) {
		jsons_put(&more, "rows", json_integer(p->rows));
		jsons_put(&more, "cols", json_integer(p->cols));
	}
	if (tensor->label[0])
		jsons_put(&more, "label", json_string(tensor->label));
	jsons_merge(object, more);
}

json_t *present_whole(const struct npumem_tensor *tensor)
{
	json_t *object = present_place(&tensor->place);
	present_tensor(&object, tensor);
	return object;
}

json_t *present_tensors(const struct npumem_tensor *const *list, unsigned n)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < n; i++) {
		json_t *one = json_object();
		present_tensor(&one, list[i]);
		jsons_append(&array, one);
	}
	return array;
}

json_t *present_done(const struct npumem_done *done)
{
	json_t *destroyed = json_array();
	for (unsigned i = 0; i < done->n_destroyed; i++) {
		const struct npumem_destroyed *d = done->destroyed[i];
		json_t *one = json_pack("{s:s, s:I, s:I, s:I, s:I}", "name", d->name, "npu", (json_int_t)d->npu,
					"offset", (json_int_t)d->offset, "bytes", (json_int_t)d->bytes,
					"total_bytes", (json_int_t)d->total_bytes);
		jsons_append(&destroyed, one);
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "saturated", (json_int_t)done->saturated,
			 "wrapped", (json_int_t)done->wrapped, "divided_by_zero",
			 (json_int_t)done->divided_by_zero, "macs", (json_int_t)done->macs, "ns",
			 (json_int_t)(done->end_ns - done->start_ns), "destroyed", destroyed, "warning",
			 jsons_text(done->warning));
}

const char *present_shape(const struct npumem_place *p, char *text)
{
	if (!p->dtype)
		snprintf(text, PRESENT_TEXT_BYTES, "-");
	else if (p->layout == NPUMEM_MATRIX)
		snprintf(text, PRESENT_TEXT_BYTES, "%" PRId64 " x %" PRId64 " (w %" PRId64 ")", p->rows, p->cols,
			 p->w);
	else
		snprintf(text, PRESENT_TEXT_BYTES, "[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", p->shape.n,
			 p->shape.c, p->shape.h, p->shape.w);
	return text;
}

const char *present_dtype(const struct npumem_place *p, char *text)
{
	const char *name = npumem_dtype_name(p->dtype);
	if (p->frac_bits != NPUMEM_ANY && name)
		snprintf(text, PRESENT_TEXT_BYTES, "%s Q.%" PRId64, name, p->frac_bits);
	else
		snprintf(text, PRESENT_TEXT_BYTES, "%s", name ? name : "-");
	return text;
}

const char *present_name(const struct npumem_tensor *tensor, uint32_t uid, char *text)
{
	if (!tensor->name[0] && tensor->label[0])
		snprintf(text, PRESENT_TEXT_BYTES, "(%s)", tensor->label);
	else if (tensor->uid != uid)
		snprintf(text, PRESENT_TEXT_BYTES, "%" PRIu32 ":%s", tensor->uid, tensor->name);
	else
		snprintf(text, PRESENT_TEXT_BYTES, "%s", tensor->name[0] ? tensor->name : "-");
	return text;
}

/* The rest of a line of which `at` columns are there, as printf; on a terminal in its width. */
static void put_wrapped(FILE *out, unsigned at, unsigned indent, const char *format, va_list arguments)
{
	char text[PRESENT_LINE_BYTES];
	va_list again;
	va_copy(again, arguments);
	unsigned columns = terminal_columns(fileno(out));
	int n = columns ? vsnprintf(text, sizeof(text), format, again) : -1;
	va_end(again);
	if (n < 0 || n >= (int)sizeof(text) || at + (unsigned)n <= columns) {
		vfprintf(out, format, arguments);
		fputc('\n', out);
	} else {
		describe_wrap(out, text, at, indent, columns);
	}
}

void present_line(FILE *out, const char *label, const char *format, ...)
{
	va_list arguments;
	unsigned at = (unsigned)fprintf(out, "  %-18s", label);
	va_start(arguments, format);
	put_wrapped(out, at, at, format, arguments);
	va_end(arguments);
}

void present_text(FILE *out, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	put_wrapped(out, 0, 2, format, arguments);
	va_end(arguments);
}

static void present_share(FILE *out, const char *label, int64_t bytes, int64_t all)
{
	present_line(out, label, "%-10" PRId64 " %5.1f %%", bytes,
		     all ? 100.0 * (double)bytes / (double)all : 0.0);
}

void present_lines(FILE *out, const struct npumem_place *p, const struct npumem_geometry *geometry)
{
	const struct npumem_dims *s = &p->stride;
	int64_t all = present_bytes(p), waste = all - p->blocks.data;
	if (p->address == NPUMEM_ANY)
		present_line(out, "address", "any multiple of %" PRId64, p->align_bytes);
	else
		present_line(out, "address", "%" PRId64 " (NPU %" PRId64 ", offset %" PRId64 ")", p->address,
			     p->npu, p->offset);
	present_line(out, "start NPU", "%" PRId64, p->start_npu);
	present_line(out, "channels per NPU", "%" PRId64 " (block rows)", p->channels_per_npu);
	present_line(out, "strides",
		     "n %" PRId64 "  c %" PRId64 "  h %" PRId64 "  w %" PRId64 ", in %s of %" PRId64 " byte%s",
		     s->n, s->c, s->h, s->w, p->lanes > 1 ? "packed elements" : "elements", p->word_bytes,
		     p->word_bytes == 1 ? "" : "s");
	present_line(out, "bytes per NPU", "%" PRId64 " of %" PRId64, p->bytes_per_npu, geometry->npu_bytes);
	present_line(out, "bytes on all NPUs", "%" PRId64, all);
	present_share(out, "  data", p->blocks.data, all);
	present_share(out, "  dummy", p->blocks.dummy, all);
	present_share(out, "  padding", p->blocks.padding, all);
	present_share(out, "  empty", p->blocks.empty, all);
	present_share(out, "  waste", waste, all);
}

/* ---- What npumem_info returned, as JSON. Owns nothing. ---- */

const char *facts_name(const char *name)
{
	return name ? name : "unknown";
}

const char *facts_chip(const struct npumem_geometry *geometry)
{
	static const char *const names[] = {
#define CHIP(name, npus, bytes, banks, eu) name,
#include <npumem/chips.def>
#undef CHIP
	};
	struct npumem_geometry chip;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (npumem_geometry_chip(names[i], &chip) && chip.n_npus == geometry->n_npus &&
		    chip.npu_bytes == geometry->npu_bytes && chip.n_banks == geometry->n_banks &&
		    chip.eu_bytes == geometry->eu_bytes)
			return names[i];
	return NULL;
}

static json_t *limits_object(const struct npumem_info *info)
{
	json_t *limits = json_object();
	for (unsigned i = 0; i < info->n_limits; i++) {
		const struct npumem_limit *limit = &info->limits[i];
		json_t *most = limit->most == UINT64_MAX ? json_null() : json_integer((json_int_t)limit->most);
		json_object_set_new(limits, limit->key,
				    json_pack("{s:o, s:I}", "most", most, "now", (json_int_t)limit->now));
	}
	return limits;
}

json_t *facts_object(const struct npumem_info *info)
{
	const struct npumem_geometry *g = &info->geometry;
	return json_pack(
		"{s:s, s:I, s:s?, s:I, s:I, s:I, s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:o, s:b}",
		"version", info->version, "features", (json_int_t)info->features, "chip", facts_chip(g), "npus",
		(json_int_t)g->n_npus, "npu_bytes", (json_int_t)g->npu_bytes, "banks", (json_int_t)g->n_banks,
		"eu_bytes", (json_int_t)g->eu_bytes, "rounding", facts_name(npumem_rounding_name(info->rounding)),
		"uninitialized", facts_name(npumem_uninitialized_name(info->uninitialized)), "unchecked_reuse",
		info->unchecked_reuse, "frame_bytes_max", (json_int_t)info->frame_bytes_max, "uid",
		(json_int_t)info->uid, "pid", (json_int_t)info->pid, "session", (json_int_t)info->session, "isa",
		info->isa, "socket", info->socket, "uptime_seconds", (double)info->uptime_ns / 1e9, "limits",
		limits_object(info), "remote", info->remote);
}
