/* Between messages and structs, both ways, without taking memory or checking values.
 * A member that a message leaves out becomes the struct's default, and the other way round. */
#include "proto/convert.h"

/* Bytes of a terminal's control at `text`: U+0080 to U+009F are, as those of ASCII. */
static size_t control_bytes(const unsigned char *text)
{
	if (text[0] == 0xc2 && text[1] >= 0x80 && text[1] < 0xa0)
		return 2;
	return text[0] < ' ' || text[0] == 127;
}

void convert_text_from(const char *from, char *to, size_t bytes)
{
	size_t n = 0;

	while (from && *from && n + 1 < bytes) {
		size_t control = control_bytes((const unsigned char *)from);

		to[n++] = control ? '?' : *from;
		from += control ? control : 1;
	}
	to[n] = 0;
}

void convert_dims_from(const Npumem__V1__Dims *message, struct npumem_dims *dims)
{
	*dims = (struct npumem_dims){0, 0, 0, 0};
	if (message)
		*dims = (struct npumem_dims){message->n, message->c, message->h, message->w};
}

void convert_spec_from(const Npumem__V1__Spec *message, struct npumem_spec *spec)
{
	npumem_spec_init(spec);
	if (!message)
		return;
	spec->dtype = (int)message->dtype;
	spec->layout = (int)message->layout;
	spec->mode = (int)message->mode;
	convert_dims_from(message->shape, &spec->shape);
	convert_dims_from(message->stride, &spec->stride);
	spec->rows = message->rows;
	spec->cols = message->cols;
	spec->w = message->w;
	if (message->frac_bits_given_case == NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS)
		spec->frac_bits = message->frac_bits;
	if (message->start_npu_given_case == NPUMEM__V1__SPEC__START_NPU_GIVEN_START_NPU)
		spec->start_npu = message->start_npu;
	if (message->address_given_case == NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS)
		spec->address = message->address;
}

static int64_t words_n(int64_t n, int64_t lanes)
{
	return n / lanes + (n % lanes != 0);
}

/* What a place has beyond its message follows from mode and type. */
static void derive_words(struct npumem_place *place)
{
	static const struct {
		int mode;
		int64_t lanes;
	} modes[] = {
#define MODE(NAME, name, number, lanes, bytes, fp32) {number, lanes},
#include <npumem/modes.def>
#undef MODE
	};

	place->lanes = 1;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i].mode == place->mode)
			place->lanes = modes[i].lanes;
	place->word_bytes = place->lanes * npumem_dtype_bytes(place->dtype);
	place->words_n = words_n(place->shape.n, place->lanes);
}

void convert_place_from(const Npumem__V1__Place *message, struct npumem_place *place)
{
	*place = (struct npumem_place){
		.frac_bits = NPUMEM_ANY, .address = NPUMEM_ANY, .npu = NPUMEM_ANY, .offset = NPUMEM_ANY};
	if (!message)
		return;
	place->dtype = (int)message->dtype;
	place->layout = (int)message->layout;
	place->mode = (int)message->mode;
	convert_dims_from(message->shape, &place->shape);
	convert_dims_from(message->stride, &place->stride);
	place->rows = message->rows;
	place->cols = message->cols;
	place->w = message->w;
	place->last_w = message->last_w;
	place->start_npu = message->start_npu;
	place->channels_per_npu = message->channels_per_npu;
	place->bytes_per_npu = message->bytes_per_npu;
	place->align_bytes = message->align_bytes;
	if (message->frac_bits_given_case == NPUMEM__V1__PLACE__FRAC_BITS_GIVEN_FRAC_BITS)
		place->frac_bits = message->frac_bits;
	if (message->address_given_case == NPUMEM__V1__PLACE__ADDRESS_GIVEN_ADDRESS)
		place->address = message->address;
	if (message->npu_given_case == NPUMEM__V1__PLACE__NPU_GIVEN_NPU)
		place->npu = message->npu;
	if (message->offset_given_case == NPUMEM__V1__PLACE__OFFSET_GIVEN_OFFSET)
		place->offset = message->offset;
	if (message->blocks)
		place->blocks = (struct npumem_blocks){message->blocks->data, message->blocks->dummy,
						       message->blocks->padding, message->blocks->empty};
	derive_words(place);
}

void convert_dims_to(const struct npumem_dims *dims, Npumem__V1__Dims *message)
{
	npumem__v1__dims__init(message);
	message->n = dims->n;
	message->c = dims->c;
	message->h = dims->h;
	message->w = dims->w;
}

static bool dims_given(const struct npumem_dims *dims)
{
	return dims->n || dims->c || dims->h || dims->w;
}

void convert_spec_to(const struct npumem_spec *spec, struct convert_spec *to)
{
	Npumem__V1__Spec *message = &to->message;

	npumem__v1__spec__init(message);
	message->dtype = (Npumem__V1__Dtype)spec->dtype;
	message->layout = (Npumem__V1__Layout)spec->layout;
	message->mode = (Npumem__V1__Mode)spec->mode;
	if (dims_given(&spec->shape)) {
		convert_dims_to(&spec->shape, &to->shape);
		message->shape = &to->shape;
	}
	if (dims_given(&spec->stride)) {
		convert_dims_to(&spec->stride, &to->stride);
		message->stride = &to->stride;
	}
	message->rows = spec->rows;
	message->cols = spec->cols;
	message->w = spec->w;
	if (spec->frac_bits != NPUMEM_ANY) {
		message->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
		message->frac_bits = spec->frac_bits;
	}
	if (spec->start_npu != NPUMEM_ANY) {
		message->start_npu_given_case = NPUMEM__V1__SPEC__START_NPU_GIVEN_START_NPU;
		message->start_npu = spec->start_npu;
	}
	if (spec->address != NPUMEM_ANY) {
		message->address_given_case = NPUMEM__V1__SPEC__ADDRESS_GIVEN_ADDRESS;
		message->address = spec->address;
	}
}

void convert_place_to(const struct npumem_place *place, struct convert_place *to)
{
	Npumem__V1__Place *message = &to->message;

	npumem__v1__place__init(message);
	npumem__v1__blocks__init(&to->blocks);
	convert_dims_to(&place->shape, &to->shape);
	convert_dims_to(&place->stride, &to->stride);
	to->blocks.data = place->blocks.data;
	to->blocks.dummy = place->blocks.dummy;
	to->blocks.padding = place->blocks.padding;
	to->blocks.empty = place->blocks.empty;
	message->dtype = (Npumem__V1__Dtype)place->dtype;
	message->layout = (Npumem__V1__Layout)place->layout;
	message->mode = (Npumem__V1__Mode)place->mode;
	message->shape = &to->shape;
	message->stride = &to->stride;
	message->blocks = &to->blocks;
	message->rows = place->rows;
	message->cols = place->cols;
	message->w = place->w;
	message->last_w = place->last_w;
	message->start_npu = place->start_npu;
	message->channels_per_npu = place->channels_per_npu;
	message->bytes_per_npu = place->bytes_per_npu;
	message->align_bytes = place->align_bytes;
	if (place->frac_bits != NPUMEM_ANY) {
		message->frac_bits_given_case = NPUMEM__V1__PLACE__FRAC_BITS_GIVEN_FRAC_BITS;
		message->frac_bits = place->frac_bits;
	}
	if (place->address != NPUMEM_ANY) {
		message->address_given_case = NPUMEM__V1__PLACE__ADDRESS_GIVEN_ADDRESS;
		message->address = place->address;
		message->npu_given_case = NPUMEM__V1__PLACE__NPU_GIVEN_NPU;
		message->npu = place->npu;
		message->offset_given_case = NPUMEM__V1__PLACE__OFFSET_GIVEN_OFFSET;
		message->offset = place->offset;
	}
}
