/* Owns one engine and one stream for all. Written for the interface of oneDNN 2. */
#include "tests/bench/support/onednn.h"

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/peer.h"

#if DNNL_VERSION_MAJOR == 2

struct shape {
	int n;
	dnnl_dims_t dims;
	dnnl_format_tag_t plain; /* N,C,H,W and the like */
};

struct onednn {
	dnnl_primitive_desc_t choice;
	dnnl_primitive_t primitive, reorder_in, reorder_out;
	dnnl_memory_t in, out, weights, bias, scratchpad, user_in, user_out;
	char name[64];
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void expect(dnnl_status_t status)
{
	if (status != dnnl_success)
		peer_die("oneDNN refuses");
}

bool onednn_open(const char *isa)
{
	if (engine)
		return true;
	if (isa && !strcmp(isa, "avx2"))
		expect(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2));
	if (isa && !strcmp(isa, "avx512vnni"))
		expect(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16));
	expect(dnnl_engine_create(&engine, dnnl_cpu, 0));
	expect(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
	return true;
}

/* ---- shapes ---- */

static struct shape shape_of(const struct npumem_dims *d, bool flat)
{
	if (flat)
		return (struct shape){2, {d->n, d->c * d->h * d->w}, dnnl_ab};
	return (struct shape){4, {d->n, d->c, d->h, d->w}, dnnl_abcd};
}

/* The data of npumem's weights are [I,O,h,w]; what is in them makes no difference here. */
static struct shape weights_of(const struct call *call, int64_t groups)
{
	const struct npumem_dims *w = &call_find(call, "weights")->spec.shape;
	if (!strcmp(call->kernel, "fully_connected"))
		return (struct shape){2, {w->c, w->n}, dnnl_ab};
	if (groups > 1)
		return (struct shape){5, {groups, w->c / groups, w->n, w->h, w->w}, dnnl_abcde};
	return (struct shape){4, {w->c, w->n, w->h, w->w}, dnnl_abcd};
}

static int64_t groups_of(const struct call *call)
{
	if (!strcmp(call->kernel, "depthwise_conv2d"))
		return call_find(call, "in")->spec.shape.c;
	return call_param(call, NPUMEM_PARAM_GROUPS, 0, 1);
}

static dnnl_memory_desc_t describe(const struct shape *shape, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t desc;
	expect(dnnl_memory_desc_init_by_tag(&desc, shape->n, shape->dims, type, tag));
	return desc;
}

/* ---- the primitive ---- */

static void attributes(dnnl_primitive_attr_t *attr)
{
	const float scale = 1.0f / 2048;
	expect(dnnl_primitive_attr_create(attr));
	expect(dnnl_primitive_attr_set_output_scales(*attr, 1, 0, &scale));
	expect(dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user));
}

static bool choose(struct onednn *o, const struct call *call, const dnnl_memory_desc_t *in,
		   const dnnl_memory_desc_t *weights, const dnnl_memory_desc_t *bias,
		   const dnnl_memory_desc_t *out)
{
	union {
		dnnl_convolution_desc_t convolution;
		dnnl_inner_product_desc_t product;
	} desc;
	dnnl_primitive_attr_t attr;
	dnnl_dims_t stride, before, behind;
	for (unsigned i = 0; i < 2; i++) {
		stride[i] = call_param(call, NPUMEM_PARAM_STRIDE, i, 1);
		before[i] = call_param(call, NPUMEM_PARAM_PADDING, 2 * i, 0);
		behind[i] = call_param(call, NPUMEM_PARAM_PADDING, 2 * i + 1, 0);
	}
	if (!strcmp(call->kernel, "fully_connected"))
		expect(dnnl_inner_product_forward_desc_init(&desc.product, dnnl_forward_inference, in, weights,
							    bias, out));
	else if (!strcmp(call->kernel, "transpose_conv2d"))
		expect(dnnl_deconvolution_forward_desc_init(&desc.convolution, dnnl_forward_inference,
							    dnnl_deconvolution_direct, in, weights, bias, out,
							    stride, before, behind));
	else
		expect(dnnl_convolution_forward_desc_init(&desc.convolution, dnnl_forward_inference,
							  dnnl_convolution_direct, in, weights, bias, out, stride,
							  before, behind));
	attributes(&attr);
	bool found = dnnl_primitive_desc_create(&o->choice, &desc, attr, engine, NULL) == dnnl_success;
	dnnl_primitive_attr_destroy(attr);
	return found;
}

/* ---- memory ---- */

static dnnl_memory_t memory_of(const dnnl_memory_desc_t *desc)
{
	dnnl_memory_t memory;
	void *data;
	expect(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE));
	expect(dnnl_memory_get_data_handle(memory, &data));
	if (data)
		memset(data, 0, dnnl_memory_desc_get_size(desc));
	return memory;
}

static dnnl_memory_t asked_of(const struct onednn *o, dnnl_query_t what)
{
	return memory_of(dnnl_primitive_desc_query_md(o->choice, what, 0));
}

static dnnl_primitive_t reorder_of(dnnl_memory_t from, dnnl_memory_t to)
{
	const dnnl_memory_desc_t *a, *b;
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t reorder;
	expect(dnnl_memory_get_memory_desc(from, &a));
	expect(dnnl_memory_get_memory_desc(to, &b));
	expect(dnnl_reorder_primitive_desc_create(&desc, a, engine, b, engine, NULL));
	expect(dnnl_primitive_create(&reorder, desc));
	dnnl_primitive_desc_destroy(desc);
	return reorder;
}

static void run_reorder(dnnl_primitive_t reorder, dnnl_memory_t from, dnnl_memory_t to)
{
	const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	expect(dnnl_primitive_execute(reorder, stream, 2, arguments));
}

/* Filled as the call's data are, whatever order that means. */
static dnnl_memory_t filled(const struct shape *shape, const struct call *call, const char *role)
{
	const struct call_tensor *tensor = call_find(call, role);
	const dnnl_memory_desc_t desc = describe(shape, dnnl_s8, shape->plain);
	dnnl_memory_t memory = memory_of(&desc);
	void *to, *data = call_data(call, (unsigned)(tensor - call->tensors));
	expect(dnnl_memory_get_data_handle(memory, &to));
	memcpy(to, data, tensor->bytes);
	free(data);
	return memory;
}

static void make(struct onednn *o, const struct call *call, const struct shape *in, const struct shape *weights,
		 const struct shape *out)
{
	const dnnl_memory_desc_t plain_out = describe(out, dnnl_s8, out->plain);
	dnnl_memory_t user_weights = filled(weights, call, "weights");
	const char *name;
	o->user_in = filled(in, call, "in");
	o->user_out = memory_of(&plain_out);
	o->in = asked_of(o, dnnl_query_src_md);
	o->out = asked_of(o, dnnl_query_dst_md);
	o->weights = asked_of(o, dnnl_query_weights_md);
	o->bias = memory_of(dnnl_primitive_desc_query_md(o->choice, dnnl_query_weights_md, 1));
	o->scratchpad = asked_of(o, dnnl_query_scratchpad_md);
	o->reorder_in = reorder_of(o->user_in, o->in);
	o->reorder_out = reorder_of(o->out, o->user_out);
	dnnl_primitive_t reorder = reorder_of(user_weights, o->weights);
	run_reorder(reorder, user_weights, o->weights);
	expect(dnnl_stream_wait(stream));
	dnnl_primitive_destroy(reorder);
	dnnl_memory_destroy(user_weights);
	expect(dnnl_primitive_desc_query(o->choice, dnnl_query_impl_info_str, 0, (void *)&name));
	snprintf(o->name, sizeof(o->name), "%s", name);
	expect(dnnl_primitive_create(&o->primitive, o->choice));
	onednn_full(o);
}

struct onednn *onednn_new(const struct call *call)
{
	bool flat = !strcmp(call->kernel, "fully_connected");
	const struct npumem_dims *to = &call_find(call, "out")->spec.shape;
	struct shape in = shape_of(&call_find(call, "in")->spec.shape, flat), out = shape_of(to, flat);
	struct shape weights = weights_of(call, groups_of(call)), bias = {1, {to->c}, dnnl_a};
	const dnnl_memory_desc_t descs[] = {
		describe(&in, dnnl_s8, dnnl_format_tag_any), describe(&weights, dnnl_s8, dnnl_format_tag_any),
		describe(&bias, dnnl_s32, dnnl_a), describe(&out, dnnl_s8, dnnl_format_tag_any)};
	struct onednn *o = calloc(1, sizeof(*o));
	if (!o)
		peer_die("no memory");
	if (!choose(o, call, &descs[0], &descs[1], &descs[2], &descs[3])) {
		free(o);
		return NULL;
	}
	make(o, call, &in, &weights, &out);
	return o;
}

void onednn_free(struct onednn *o)
{
	if (!o)
		return;
	dnnl_memory_t memories[] = {o->in, o->out, o->weights, o->bias, o->scratchpad, o->user_in, o->user_out};
	for (unsigned i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
		dnnl_memory_destroy(memories[i]);
	dnnl_primitive_destroy(o->primitive);
	dnnl_primitive_destroy(o->reorder_in);
	dnnl_primitive_destroy(o->reorder_out);
	dnnl_primitive_desc_destroy(o->choice);
	free(o);
}

const char *onednn_choice(const struct onednn *o)
{
	return o->name;
}

/* ---- runs ---- */

static void execute(const struct onednn *o)
{
	const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, o->in},
					     {DNNL_ARG_WEIGHTS, o->weights},
					     {DNNL_ARG_BIAS, o->bias},
					     {DNNL_ARG_DST, o->out},
					     {DNNL_ARG_SCRATCHPAD, o->scratchpad}};
	expect(dnnl_primitive_execute(o->primitive, stream, 5, arguments));
}

void onednn_core(void *onednn)
{
	execute(onednn);
	expect(dnnl_stream_wait(stream));
}

void onednn_full(void *onednn)
{
	const struct onednn *o = onednn;
	run_reorder(o->reorder_in, o->user_in, o->in);
	execute(o);
	run_reorder(o->reorder_out, o->out, o->user_out);
	expect(dnnl_stream_wait(stream));
}

#else
#error "oneDNN 2 is wanted: CMakeLists.txt looks for it"
#endif
