/* From messages to structs. Invariant: a place that passes here has extents, strides and sizes whose products fit
 * 64 bits. Keeps nothing. */
#include "client/lib/messages/reply.h"

#include <string.h>

/* No extent, count or stride of a device with at most 2^30 bytes per NPU can be larger. */
#define REPLY_EXTENT_MAX (INT64_C(1) << 40)
enum { REPLY_WARNING_BYTES = 512 };

void reply_error(const Npumem__V1__Response *response, struct npumem_error *error)
{
	char text[NPUMEM_FIELD_TEXT_BYTES], key[NPUMEM_FIELD_KEY_BYTES], message[NPUMEM_MESSAGE_BYTES];
	int status = npumem_status_name((int)response->status) ? (int)response->status : NPUMEM_INTERNAL;
	npumem_error_clear(error);
	convert_text_from(response->message, message, sizeof(message));
	if (message[0])
		npumem_error_set(error, status, "%s", message);
	else
		npumem_error_set(error, status, "the daemon gave no reason (status %d)", (int)response->status);
	for (size_t i = 0; i < response->n_fields; i++) {
		const Npumem__V1__Field *field = response->fields[i];
		convert_text_from(field->key, key, sizeof(key));
		if (field->value_case == NPUMEM__V1__FIELD__VALUE_NUMBER) {
			npumem_error_number(error, key, field->number);
		} else if (field->value_case == NPUMEM__V1__FIELD__VALUE_TEXT) {
			convert_text_from(field->text, text, sizeof(text));
			npumem_error_text(error, key, text);
		}
	}
}

int reply_info(const Npumem__V1__Info *message, struct npumem_info *info)
{
	*info = (struct npumem_info){
		.features = message->features,
		.geometry = {.n_npus = message->n_npus,
			     .npu_bytes = message->npu_bytes,
			     .n_banks = message->n_banks,
			     .eu_bytes = message->eu_bytes},
		.rounding = (int)message->rounding,
		.uninitialized = (int)message->uninitialized,
		.unchecked_reuse = message->unchecked_reuse,
		.frame_bytes_max = message->frame_bytes_max,
		.uid = message->uid,
		.pid = message->pid,
		.session = message->session,
	};
	convert_text_from(message->version, info->version, sizeof(info->version));
	convert_text_from(message->isa, info->isa, sizeof(info->isa));
	info->uptime_ns = message->uptime_ns;
	convert_text_from(message->socket, info->socket, sizeof(info->socket));
	for (size_t i = 0; i < message->n_limits && i < NPUMEM_LIMITS_MAX; i++) {
		struct npumem_limit *limit = &info->limits[info->n_limits++];
		convert_text_from(message->limits[i]->key, limit->key, sizeof(limit->key));
		limit->most = message->limits[i]->most;
		limit->now = message->limits[i]->now;
	}
	return npumem_geometry_check(&info->geometry, NULL) ? -1 : 0;
}

void reply_stat(const Npumem__V1__Stat *message, struct npumem_stat *stat)
{
	*stat = (struct npumem_stat){
		.total = message->total,
		.data = message->data,
		.dummy = message->dummy,
		.padding = message->padding,
		.empty = message->empty,
		.free = message->free,
		.lent = message->lent,
		.largest_free = message->largest_free,
		.tensors = message->tensors,
		.views = message->views,
		.sessions = message->sessions,
		.packs = message->packs,
		.uncounted = message->uncounted,
	};
}

static bool within(int64_t value, int64_t low, int64_t high)
{
	return value >= low && value <= high;
}

static bool dims_within(const struct npumem_dims *dims, int64_t low, int64_t high)
{
	return within(dims->n, low, high) && within(dims->c, low, high) && within(dims->h, low, high) &&
	       within(dims->w, low, high);
}

/* The bytes of the elements are below 2^41: 1024 NPUs of 2^30 bytes, and a view can hold no more than its base. */
static bool elements_fit(const struct npumem_dims *shape, int64_t bytes)
{
	return !__builtin_mul_overflow(bytes, shape->n, &bytes) &&
	       !__builtin_mul_overflow(bytes, shape->c, &bytes) &&
	       !__builtin_mul_overflow(bytes, shape->h, &bytes) &&
	       !__builtin_mul_overflow(bytes, shape->w, &bytes) && bytes <= 2 * REPLY_EXTENT_MAX;
}

/* The way from the first element to the last one of a dimension, in bytes; a stride over extent 1 is never gone.
 */
static bool reach_fits(int64_t extent, int64_t stride, int64_t word_bytes)
{
	int64_t bytes;
	return !__builtin_mul_overflow(extent - 1, stride, &bytes) &&
	       !__builtin_mul_overflow(bytes, word_bytes, &bytes) && bytes <= NPUMEM_NPU_BYTES_MAX;
}

static int reply_place(const Npumem__V1__Place *message, struct npumem_place *place)
{
	if (!npumem_dtype_bytes((int)message->dtype) || !npumem_layout_name((int)message->layout) ||
	    !npumem_mode_name((int)message->mode) || !message->shape || !message->stride)
		return -1;
	convert_place_from(message, place);
	const struct npumem_place *p = place;
	bool fixed = npumem_dtype_is_fixed(p->dtype), matrix = p->layout == NPUMEM_MATRIX;
	if (!within(p->frac_bits, fixed ? 0 : NPUMEM_ANY, fixed ? NPUMEM_FRAC_BITS_MAX : NPUMEM_ANY) ||
	    !dims_within(&p->shape, 1, REPLY_EXTENT_MAX) ||
	    !elements_fit(&p->shape, npumem_dtype_bytes(p->dtype)) || !dims_within(&p->stride, 0, INT64_MAX) ||
	    !within(p->lanes, 1, 4) || !within(p->word_bytes, 1, 8) || !within(p->words_n, 1, p->shape.n) ||
	    !within(p->last_w, 1, p->shape.w) || !within(p->start_npu, 0, NPUMEM_NPUS_MAX - 1) ||
	    !within(p->channels_per_npu, 1, NPUMEM_NPU_BYTES_MAX) ||
	    !within(p->bytes_per_npu, 1, NPUMEM_NPU_BYTES_MAX) ||
	    !within(p->align_bytes, 1, NPUMEM_NPU_BYTES_MAX) ||
	    !within(p->address, NPUMEM_ANY, 2 * REPLY_EXTENT_MAX) ||
	    !within(p->npu, NPUMEM_ANY, NPUMEM_NPUS_MAX - 1) ||
	    !within(p->offset, NPUMEM_ANY, NPUMEM_NPU_BYTES_MAX))
		return -1;
	if (matrix && (!within(p->rows, 1, REPLY_EXTENT_MAX) || !within(p->cols, 1, REPLY_EXTENT_MAX)))
		return -1;
	return reach_fits(p->words_n, p->stride.n, p->word_bytes) &&
			       reach_fits(p->channels_per_npu, p->stride.c, p->word_bytes) &&
			       reach_fits(p->shape.h, p->stride.h, p->word_bytes) &&
			       reach_fits(p->shape.w, p->stride.w, p->word_bytes)
		       ? 0
		       : -1;
}

int reply_tensor(const Npumem__V1__Tensor *message, struct npumem_tensor *tensor)
{
	*tensor = (struct npumem_tensor){
		.handle = message->handle,
		.uid = message->uid,
		.sealed = message->sealed,
		.dma_only = message->dma_only,
		.pinned = message->pinned,
		.lends = message->lends,
		.borrows = message->borrows,
		.base = message->base_handle,
		.unwritten_bytes = message->unwritten_bytes,
		.damaged_bytes = message->damaged_bytes,
		.reuse = (int)message->reuse,
	};
	tensor->n_grants = message->n_grants < NPUMEM_GRANTS_MAX ? (unsigned)message->n_grants : NPUMEM_GRANTS_MAX;
	for (unsigned i = 0; i < tensor->n_grants; i++)
		tensor->grants[i] =
			(struct npumem_grant){message->grants[i]->uid, (int)message->grants[i]->access};
	convert_text_from(message->name, tensor->name, sizeof(tensor->name));
	convert_text_from(message->label, tensor->label, sizeof(tensor->label));
	convert_text_from(message->base_name, tensor->base_name, sizeof(tensor->base_name));
	convert_text_from(message->state, tensor->state, sizeof(tensor->state));
	return message->place ? reply_place(message->place, &tensor->place) : 0;
}

int reply_plan(const Npumem__V1__Plan *message, struct npumem_plan *plan)
{
	*plan = (struct npumem_plan){
		.waste = message->waste,
		.first_bank = message->first_bank,
		.last_bank = message->last_bank,
		.best_start_npu = message->best_start_npu,
		.best_start_saves = message->best_start_saves,
	};
	for (size_t i = 0; i < message->n_widths && i < NPUMEM_PLAN_WIDTHS_MAX; i++)
		plan->widths[plan->n_widths++] = (struct npumem_width){
			.w = message->widths[i]->w,
			.channels = message->widths[i]->channels,
			.channels_per_npu = message->widths[i]->channels_per_npu,
			.bytes_per_npu = message->widths[i]->bytes_per_npu,
		};
	return message->place ? reply_place(message->place, &plan->place) : -1;
}

void *reply_rows(struct result *result, size_t n, size_t bytes)
{
	void **rows = result_array(result, n, sizeof(*rows));
	for (size_t i = 0; i < n && rows; i++) {
		rows[i] = result_take(result, bytes);
		if (!rows[i])
			return NULL;
	}
	return rows;
}

static struct npumem_destroyed **reply_destroyed(const Npumem__V1__Done *message, struct result *result)
{
	struct npumem_destroyed **rows = reply_rows(result, message->n_destroyed, sizeof(**rows));
	for (size_t i = 0; i < message->n_destroyed && rows; i++) {
		const Npumem__V1__Destroyed *from = message->destroyed[i];
		*rows[i] = (struct npumem_destroyed){.handle = from->handle,
						     .npu = from->npu,
						     .offset = from->offset,
						     .bytes = from->bytes,
						     .total_bytes = from->total_bytes};
		convert_text_from(from->name, rows[i]->name, sizeof(rows[i]->name));
	}
	return rows;
}

static bool take_costs(const Npumem__V1__Costs *message, struct npumem_done *done, struct result *result)
{
	struct npumem_costs *costs = result_take(result, sizeof(*costs));
	if (!costs)
		return false;
	*costs = (struct npumem_costs){
		.macs = (int64_t)message->macs,
		.dma_bytes = (int64_t)message->dma_bytes,
		.read_bytes = (int64_t)message->read_bytes,
		.written_bytes = (int64_t)message->written_bytes,
		.npus = (int64_t)message->npus,
		.lanes = (int64_t)message->lanes,
	};
	done->costs = costs;
	return true;
}

struct npumem_done *reply_done(const Npumem__V1__Done *message, struct result *result)
{
	struct npumem_done *done = result_take(result, sizeof(*done));
	char warning[REPLY_WARNING_BYTES];
	if (!done)
		return NULL;
	done->saturated = message->saturated;
	done->wrapped = message->wrapped;
	done->divided_by_zero = message->divided_by_zero;
	done->macs = message->macs;
	done->start_ns = message->start_ns;
	done->end_ns = message->end_ns;
	done->warning = "";
	if (message->n_destroyed) {
		done->destroyed = (const struct npumem_destroyed *const *)reply_destroyed(message, result);
		done->n_destroyed = (unsigned)message->n_destroyed;
	}
	if (message->costs && !take_costs(message->costs, done, result))
		return NULL;
	if (message->warning[0]) {
		convert_text_from(message->warning, warning, sizeof(warning));
		done->warning = result_text(result, warning);
	}
	return done->warning && (done->destroyed || !done->n_destroyed) ? done : NULL;
}

void reply_move(const Npumem__V1__Move *message, struct npumem_move *move)
{
	*move = (struct npumem_move){
		.handle = message->handle,
		.from_address = message->from_address,
		.to_address = message->to_address,
		.bytes_per_npu = message->bytes_per_npu,
	};
	convert_text_from(message->name, move->name, sizeof(move->name));
}

void reply_event(const Npumem__V1__Event *message, struct npumem_event *event)
{
	*event = (struct npumem_event){
		.handle = message->handle,
		.uid = message->uid,
		.pid = message->pid,
		.session = message->session,
		.bytes = message->bytes,
		.time_ns = message->time_ns,
		.lost = message->lost,
		.request = message->request_id,
		.done = message->done,
		.total = message->total,
		.status = (int)message->status,
	};
	convert_text_from(message->kind, event->kind, sizeof(event->kind));
	convert_text_from(message->name, event->name, sizeof(event->name));
	convert_text_from(message->message, event->message, sizeof(event->message));
}
