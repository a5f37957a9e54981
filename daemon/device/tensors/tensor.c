/* A tensor's place, packed and unpacked. Owns nothing. Invariant: a place that was set is returned as it was. */
#include "daemon/device/tensors/tensor.h"

static struct npumem_dims wide(const struct tensor_dims *dims)
{
	return (struct npumem_dims){dims->n, dims->c, dims->h, dims->w};
}

static struct tensor_dims narrow(const struct npumem_dims *dims)
{
	return (struct tensor_dims){(int32_t)dims->n, (int32_t)dims->c, (int32_t)dims->h, (int32_t)dims->w};
}

/* Field by field: of an initializer the compiler makes a second copy, which takes as long again. */
struct npumem_place tensor_place(const struct tensor *tensor)
{
	const struct tensor_packed *packed = &tensor->packed;
	bool is_matrix = packed->layout == NPUMEM_MATRIX;
	struct npumem_place place;

	place.dtype = (int)packed->dtype;
	place.frac_bits = tensor_frac_bits(tensor);
	place.layout = (int)packed->layout;
	place.mode = (int)packed->mode;
	place.shape = wide(&packed->shape);
	place.rows = is_matrix ? packed->shape.n : 0;
	place.cols = is_matrix ? tensor_columns(tensor) : 0;
	place.w = is_matrix ? packed->shape.w : 0;
	place.last_w = packed->last_w;
	place.lanes = packed->lanes;
	place.word_bytes = packed->word_bytes;
	place.words_n = tensor_words_n(tensor);
	place.stride = wide(&packed->stride);
	place.start_npu = packed->start_npu;
	place.channels_per_npu = packed->channels_per_npu;
	place.bytes_per_npu = packed->bytes_per_npu;
	place.align_bytes = packed->align_bytes;
	place.address = packed->address;
	place.npu = packed->address == NPUMEM_ANY ? NPUMEM_ANY : packed->start_npu;
	place.offset = packed->offset;
	place.blocks.data = tensor_data_bytes(tensor);
	place.blocks.dummy = tensor_filled_bytes(tensor) - tensor_data_bytes(tensor);
	place.blocks.padding = packed->padding;
	place.blocks.empty = packed->empty;
	return place;
}

void tensor_set_place(struct tensor *tensor, const struct npumem_place *place)
{
	struct tensor_packed *packed = &tensor->packed;

	packed->padding = (uint64_t)place->blocks.padding;
	packed->start_npu = (uint64_t)place->start_npu;
	packed->dtype = (unsigned)place->dtype;
	packed->layout = (unsigned)place->layout;
	packed->mode = (unsigned)place->mode;
	packed->empty = (uint64_t)place->blocks.empty;
	packed->frac_bits = (uint64_t)(place->frac_bits + 1);
	packed->lanes = (uint64_t)place->lanes;
	packed->word_bytes = (uint64_t)place->word_bytes;
	packed->address = place->address;
	packed->align_bytes = (uint64_t)place->align_bytes;
	packed->shape = narrow(&place->shape);
	packed->stride = narrow(&place->stride);
	packed->last_w = (int32_t)place->last_w;
	packed->offset = (int32_t)place->offset;
	packed->bytes_per_npu = (int32_t)place->bytes_per_npu;
	packed->channels_per_npu = (int32_t)place->channels_per_npu;
}
