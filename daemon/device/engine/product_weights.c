/* Packs weights. The matrix is read once, as it lies; the micro-kernel's pack writes whole strips, so that of the
 * last one, which may be narrower, the next step overwrites what is too much, and the end has room for it. */
#include "daemon/device/engine/product_weights.h"

enum {
	PACK_ALIGN = 64,
	HEAD_BYTES = PACK_ALIGN,
	ROOM_BYTES = (UKERNEL_COLUMNS - UKERNEL_VECTOR) * UKERNEL_STEP_BYTES,
	/* Where that is not looked at: what 8 bits hold. */
	MOST_8 = 128,
};

void product_weights_init(struct product_weights *weights, enum isa isa, unsigned data_bytes,
			  unsigned weight_bytes, int64_t terms, int64_t columns, void *pack)
{
	/* Weights of 8 bits are widened: they take the place of the micro-kernel's data. */
	enum ukernel_type type = data_bytes == 1 ? UKERNEL_FX8 : UKERNEL_FX16;
	const struct ukernel *ukernel = ukernel_choose(type, isa);
	if (ukernel_is_wasteful(ukernel, (terms + ukernel->n_terms - 1) / ukernel->n_terms))
		ukernel = ukernel_choose_single(type, isa);
	*weights = (struct product_weights){
		.ukernel = ukernel,
		.data_bytes = data_bytes,
		.weight_bytes = weight_bytes,
		.terms = terms,
		.columns = columns,
		.n_steps = ukernel_whole(ukernel, (terms + ukernel->n_terms - 1) / ukernel->n_terms),
		.head = pack,
		.steps = pack ? (uint8_t *)pack + HEAD_BYTES : NULL,
	};
}

size_t product_weights_bytes(const struct product_weights *weights)
{
	int64_t last = product_weights_n_strips(weights) - 1;
	int64_t columns = last * UKERNEL_COLUMNS + product_weights_width(weights, last);
	int64_t bytes = columns * weights->n_steps * UKERNEL_STEP_BYTES + ROOM_BYTES;
	return (size_t)(HEAD_BYTES + (bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN);
}

int64_t product_weights_larger(int64_t most, const int16_t *line, int64_t n)
{
	int16_t low = 0, high = 0;
	for (int64_t i = 0; i < n; i++) {
		low = line[i] < low ? line[i] : low;
		high = line[i] > high ? line[i] : high;
	}
	most = -low > most ? -low : most;
	return high > most ? high : most;
}

/* One step of a strip, whose lines begin at these places. */
static void pack_step(const struct product_weights *weights, const uint8_t *const *lines, unsigned n,
		      int64_t high_off, uint8_t *to)
{
	const struct ukernel *u = weights->ukernel;
	const void *from[UKERNEL_TERMS_MAX];
	int16_t wide[UKERNEL_TERMS_MAX][UKERNEL_COLUMNS];
	for (unsigned j = 0; j < u->n_terms; j++) {
		from[j] = lines[j];
		if (weights->weight_bytes == weights->data_bytes)
			continue;
		for (unsigned i = 0; i < n; i++)
			wide[j][i] = ((const int8_t *)lines[j])[i];
		from[j] = wide[j];
	}
	u->pack(weights->data_bytes, from, n, high_off, to);
	for (unsigned j = 0; j < u->n_terms && weights->weight_bytes == 2; j++)
		weights->head->most = product_weights_larger(weights->head->most, from[j], n);
}

bool product_weights_pack(const struct product_weights *weights, const struct kernel_call *call,
			  const void *matrix)
{
	const struct ukernel *u = weights->ukernel;
	int64_t n_terms = u->n_terms, last = weights->terms - 1, pending = 0;
	weights->head->most = weights->weight_bytes == 1 ? MOST_8 : 0;
	for (int64_t step = 0; step < weights->n_steps >> u->by_bytes; step++)
		for (int64_t strip = 0; strip < product_weights_n_strips(weights); strip++) {
			const uint8_t *lines[UKERNEL_TERMS_MAX];
			unsigned n = product_weights_real(weights, strip);
			for (int64_t j = 0; j < n_terms; j++) {
				/* What lies behind the last row is met by zeros. */
				int64_t k = step * n_terms + j < last ? step * n_terms + j : last;
				lines[j] =
					(const uint8_t *)matrix +
					(k * weights->columns + strip * UKERNEL_COLUMNS) * weights->weight_bytes;
			}
			pack_step(weights, lines, n,
				  ukernel_high(u) * product_weights_width(weights, strip) * UKERNEL_STEP_BYTES,
				  product_weights_at(weights, strip, ukernel_step(u, step)));
			if (!kernel_look(call, n * n_terms, &pending))
				return false;
		}
	return true;
}
