/* Comparisons. Where an array is not what is expected, the expected one is put in its place, so that each layer is
 * judged by itself; one placement after another, each with tensors of its own. */
#include "client/ctl/network/networks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/network.h"
#include "client/ctl/core/pictures/svg.h"

/* The comparison of an operation in this placement: one for all samples. */
static struct layers_case *find_case(struct layers *layers, size_t operation)
{
	for (size_t i = layers->n; i-- > 0 && layers->cases[i].item == layers->item;)
		if (layers->cases[i].operation == operation)
			return &layers->cases[i];
	return NULL;
}

static struct layers_case *add_case(struct layers *layers, size_t operation)
{
	struct layers_case *known = layers->samples ? find_case(layers, operation) : NULL;
	if (known)
		return known;
	struct layers_case *one = memory_grow(&layers->cases, layers->n++, sizeof(*one));
	*one = (struct layers_case){.operation = operation, .item = layers->item};
	if (layers->variant)
		variant_text(layers->variant, one->placed, sizeof(one->placed));
	else
		snprintf(one->placed, sizeof(one->placed), "[as written]");
	return one;
}

static void refuse(struct layers_case *one, const char *reason)
{
	one->passed = false;
	one->reason = memory_text("%s", reason);
}

/* What the operations of the file that i stands for took. */
static uint64_t time_of(const struct execute *execute, size_t i)
{
	const struct network_operation *operations = execute->network->operations;
	uint64_t ns = 0;
	for (size_t k = i; k-- > 0 && operations[k].place == operations[i].place;)
		if (operations[k].kind == NETWORK_RUN)
			ns += execute->results[k].ns;
	return ns;
}

/* What the kernels since the comparison before i counted, of all samples so far. */
static void count_since(const struct execute *execute, size_t i, struct layers_case *one)
{
	one->saturated = one->wrapped = 0;
	for (size_t k = i; k-- > 0 && execute->network->operations[k].kind != NETWORK_EXPECT;) {
		one->saturated += execute->results[k].saturated + execute->results[k].quantized;
		one->wrapped += execute->results[k].wrapped;
	}
}

/* ---- one array ---- */

static size_t sample_at(const struct execute *execute)
{
	return execute->samples ? execute->samples->at : 0;
}

/* The array that was read and the expected one; `reals` NULL: integers are expected. */
static void add_part(struct compare *compare, const struct stream *stream, const void *is, const void *expected,
		     const float *reals, size_t n)
{
	if (reals)
		compare_add_reals(compare, stream->dtype, stream->frac_bits, is, expected, reals, n);
	else
		compare_add(compare, stream->dtype, is, expected, n);
}

/* Half of the segment is for what is expected, half for what is there; `writes`: the other way. */
static int walk(struct layers *layers, size_t i, struct compare *compare, bool writes, struct npumem_error *why)
{
	struct execute *execute = &layers->execute;
	const struct network_operation *operation = &execute->network->operations[i];
	uint64_t handle = execute->tensors[operation->tensor]->handle;
	struct stream stream;
	size_t n_samples;
	int status = batch_reserve(execute->batch, BATCH_SEGMENT_BYTES, why);
	if (!status)
		status = files_open_expected(execute->network, operation,
					     &execute->tensors[operation->tensor]->place, execute->info->rounding,
					     sample_at(execute), &n_samples, &stream, why);
	if (status)
		return status;
	const struct npumem_segment *segment = execute->batch->segment;
	size_t half = segment->bytes / 2 / 64 * 64;
	float *reals = stream.converts && !writes ? memory_new(half / stream.element_bytes, sizeof(*reals)) : NULL;
	char *expected = (char *)segment->base + half;
	while (stream.at < stream.n && !status) {
		size_t first = stream.at, left = stream.n - first, most = half / stream.element_bytes;
		int64_t n = (int64_t)(left < most ? left : most);
		stream.reals = reals;
		status = stream_read(&stream, expected, (size_t)n, why);
		if (status)
			break;
		if (writes)
			status = npumem_write_segment(execute->ctl->npumem, handle, segment, half, NULL,
						      (int64_t)first, n, why);
		else
			status = npumem_read_segment(execute->ctl->npumem, handle, segment, 0, NULL,
						     (int64_t)first, n, NULL, why);
		if (!status && !writes)
			add_part(compare, &stream, segment->base, expected, reals, (size_t)n);
	}
	memory_free(reals);
	return stream_close(&stream, status, why);
}

/* The placement of the tensor as a file of its own. */
static int draw(struct layers *layers, struct layers_case *one, struct npumem_error *why)
{
	const struct execute *execute = &layers->execute;
	const struct network_operation *operation = &execute->network->operations[one->operation];
	const struct npumem_tensor *tensor = execute->tensors[operation->tensor];
	char *path = memory_text("%s/failure-%zu-%zu.svg", layers->pictures, layers->item + 1,
				 (size_t)(one - layers->cases) + 1);
	/* In the network it has a name, on the device none. */
	struct npumem_tensor drawn = {.uid = execute->info->uid, .place = tensor->place};
	snprintf(drawn.name, sizeof(drawn.name), "%s", execute->network->tensors[operation->tensor].name);
	struct svg_mark mark = {.what = "the first element that differs"};
	compare_locate(&one->compare, &execute->info->geometry, &tensor->place, &mark.npu, &mark.offset);
	FILE *file = fopen(path, "w");
	if (file)
		svg_tensor_draw(file, &execute->info->geometry, &drawn, drawn.uid, &mark);
	if (!file || fclose(file))
		return npumem_error_set(why, NPUMEM_INTERNAL, "%.200s: %s", path, strerror(errno));
	one->picture = path;
	return 0;
}

/* Reports the difference. */
static void differs(const struct layers *layers, struct layers_case *one)
{
	const struct execute *execute = &layers->execute;
	const struct network_operation *operation = &execute->network->operations[one->operation];
	char text[LAYERS_REASON_BYTES], reason[LAYERS_REASON_BYTES + 128];
	const struct npumem_tensor *tensor = execute->tensors[operation->tensor];
	snprintf(reason, sizeof(reason), "%.63s%s", execute->network->tensors[operation->tensor].name,
		 compare_text(&one->compare, &execute->info->geometry, &tensor->place, text, sizeof(text)));
	refuse(one, reason);
}

static bool is_near(const struct layers *layers, const struct compare *compare)
{
	return !compare->n_differ || compare_snr(compare) >= layers->least_snr;
}

static int compare_expected(void *context, size_t i)
{
	struct layers *layers = context;
	struct layers_case *one = add_case(layers, i);
	struct compare now = {.n = 0};
	struct npumem_error why = {.status = 0};
	one->ns = time_of(&layers->execute, i);
	if (walk(layers, i, &now, false, &why)) {
		/* Told of the placement as a whole. */
		if (!one->compared)
			layers->n--;
		return execute_failed(&layers->execute, i, &why);
	}
	/* The first sample runs again where not all tensors had room at once. */
	if (!sample_at(&layers->execute))
		one->compare = (struct compare){.n = 0};
	compare_merge(&one->compare, &now);
	one->compared = true;
	one->is_real = layers->execute.network->operations[i].converts;
	count_since(&layers->execute, i, one);
	one->passed = is_near(layers, &one->compare);
	if (!one->passed)
		differs(layers, one);
	if (is_near(layers, &now))
		return CTL_OK;
	/* The layers behind it are judged by what this one was to give. */
	if ((layers->pictures && !one->picture && draw(layers, one, &why)) || walk(layers, i, NULL, true, &why))
		return execute_failed(&layers->execute, i, &why);
	return CTL_OK;
}

/* ---- placements ---- */

/* An operation was refused: that is the outcome of what it belongs to, and what comes after it was not reached. */
static void broken_off(struct layers *layers, const struct npumem_error *error)
{
	const struct network *network = layers->execute.network;
	size_t failed = layers->execute.failed == EXECUTE_NONE ? 0 : layers->execute.failed;
	char reason[LAYERS_REASON_BYTES], number[24];
	network_number(&network->operations[failed], number);
	bool told = false;
	for (size_t i = failed; i < network->n_operations; i++) {
		if (network->operations[i].kind != NETWORK_EXPECT)
			continue;
		if (told)
			snprintf(reason, sizeof(reason), "not reached, as operation %s failed", number);
		else
			snprintf(reason, sizeof(reason), "%s", error->message);
		told = true;
		refuse(add_case(layers, i), reason);
	}
	if (!told)
		refuse(add_case(layers, failed), error->message);
}

int layers_init(struct layers *layers, struct ctl *ctl, const struct network *network)
{
	layers->ctl = ctl;
	int code = execute_init(&layers->execute, ctl, network);
	layers->is_ready = !code;
	layers->execute.expect = compare_expected;
	layers->execute.context = layers;
	return code;
}

/* How many samples the floats are of, by the first operation that expects some; 1 where none does. */
static size_t count_samples(const struct layers *layers)
{
	const struct network *network = layers->execute.network;
	size_t n = 1;
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct network_operation *operation = &network->operations[i];
		struct npumem_place place;
		struct npumem_error why;
		struct stream stream;
		if (operation->kind != NETWORK_EXPECT || !operation->converts ||
		    !network_array(network, operation->tensor, &place) ||
		    files_open_expected(network, operation, &place, NPUMEM_CONVERGENT, 0, &n, &stream, &why))
			continue;
		stream_close(&stream, 0, &why);
		break;
	}
	return n;
}

int layers_run(struct layers *layers, const struct variant *variant)
{
	struct ctl *ctl = layers->ctl;
	layers->variant = layers->execute.variant = variant;
	layers->n_samples = layers->samples ? count_samples(layers) : 1;
	int code = layers->samples ? samples_run(&layers->execute, layers->samples, layers->n_samples)
				   : execute_run(&layers->execute);
	struct npumem_error error = ctl->error;
	if (code && error.status != NPUMEM_UNAVAILABLE) {
		npumem_error_clear(&ctl->error);
		broken_off(layers, &error);
		code = CTL_OK;
	}
	layers->n_failed = 0;
	for (size_t i = 0; i < layers->n; i++)
		layers->n_failed += !layers->cases[i].passed;
	return code ? code : execute_reset(&layers->execute);
}

void layers_end(struct layers *layers)
{
	if (layers->is_ready)
		execute_deinit(&layers->execute);
	layers->is_ready = false;
}
