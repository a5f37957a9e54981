/* Calls of kernels for their tests: operands in arrays of exactly their size (so that a sanitizer sees a step past
 * the end), outputs and scratch memory poisoned before the run. */
#ifndef TESTS_DEVICE_KERNELS_CALLS_H
#define TESTS_DEVICE_KERNELS_CALLS_H

#include <stdlib.h>
#include <string.h>

#include "daemon/device/kernel_support/walk.h"
#include "tests/support/test.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/kernels/lanes.h"

enum { CALLS_ROLES_MAX = 12, CALLS_FAMILY_MAX = 6 };

struct calls {
	struct kernel_call call;
	const struct kernel *kernel;
	struct kernel_role roles[CALLS_ROLES_MAX];
	struct kernel_operand operands[CALLS_ROLES_MAX][CALLS_FAMILY_MAX];
	char names[CALLS_ROLES_MAX][NPUMEM_FIELD_KEY_BYTES];
	bool is_output[CALLS_ROLES_MAX];
	struct npumem_error error;
	_Alignas(16) uint8_t plan[KERNEL_PLAN_BYTES];
};

static inline size_t calls_bytes(const struct kernel_operand *operand)
{
	const struct npumem_dims *s = &operand->shape;
	return (size_t)(s->n * s->c * s->h * s->w) * npumem_dtype_bytes(operand->dtype);
}

static inline void calls_init(struct calls *c, int number)
{
	memset(c, 0, sizeof(*c));
	c->call.row = npumem_kernel_by_number(number);
	c->kernel = kernel_by_number(number);
	ck_assert_ptr_nonnull(c->call.row);
	ck_assert_ptr_nonnull(c->kernel);
	ck_assert_int_eq(c->kernel->number, number);
	c->call.roles = c->roles;
	c->call.plan = c->plan;
	c->call.rounding = NPUMEM_CONVERGENT;
	c->call.isa = isa_best();
	for (const char *role = c->call.row->roles; *role; role += strcspn(role, " "), role += strspn(role, " ")) {
		unsigned i = c->call.n_roles++;
		ck_assert_uint_lt(i, CALLS_ROLES_MAX);
		c->is_output[i] = *role == '>';
		size_t bytes = strcspn(role + c->is_output[i], " ?*");
		memcpy(c->names[i], role + c->is_output[i], bytes);
		c->roles[i] = (struct kernel_role){.name = c->names[i], .operands = c->operands[i]};
	}
}

static inline void calls_free(struct calls *c)
{
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; k < c->roles[i].n; k++)
			free(c->operands[i][k].data);
}

/* Adds an operand to a role (a second time: to its family) and returns its zeroed elements. */
static inline void *calls_add(struct calls *c, const char *role, int dtype, int64_t frac_bits, int64_t n,
			      int64_t ch, int64_t h, int64_t w)
{
	unsigned i = 0;
	while (i < c->call.n_roles && strcmp(c->names[i], role) != 0)
		i++;
	ck_assert_msg(i < c->call.n_roles, "no role %s", role);
	ck_assert_uint_lt(c->roles[i].n, CALLS_FAMILY_MAX);
	struct kernel_operand *operand = &c->operands[i][c->roles[i].n++];
	*operand = (struct kernel_operand){dtype, frac_bits, {n, ch, h, w}, NULL, {.base = NULL}};
	kernel_operand_dense(operand, calloc(1, calls_bytes(operand)));
	ck_assert_ptr_nonnull(operand->data);
	return operand->data;
}

static inline void calls_param(struct calls *c, int number, unsigned n, int64_t a, int64_t b, int64_t d, int64_t e)
{
	c->call.params.given[number] = (struct npumem_param){number, n, {a, b, d, e}};
}

/* Of all inputs: one array may be that of several roles, so that no kernel may change one. */
static inline uint64_t calls_inputs_hash(const struct calls *c)
{
	uint64_t hash = 0, word;
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; !c->is_output[i] && k < c->roles[i].n; k++) {
			const uint8_t *data = c->operands[i][k].data;
			size_t n = calls_bytes(&c->operands[i][k]);
			for (size_t b = 0; b < n; b += sizeof(word)) {
				word = 0;
				memcpy(&word, data + b, n - b < sizeof(word) ? n - b : sizeof(word));
				hash = hash * 31 + word;
			}
		}
	return hash;
}

/* What the kernel makes of its packed role, if anything. False where it was stopped. */
static inline bool calls_pack(struct calls *c, void **pack)
{
	size_t bytes = c->kernel->pack_bytes ? c->kernel->pack_bytes(&c->call) : 0;
	*pack = NULL;
	if (!bytes)
		return true;
	ck_assert_int_eq(posix_memalign(pack, 64, bytes), 0);
	memset(*pack, 0xa5, bytes);
	c->call.pack = *pack;
	return c->kernel->pack(&c->call, *pack);
}

static inline void calls_execute(struct calls *c)
{
	if (c->kernel->plan)
		c->kernel->plan(&c->call);
	size_t bytes = c->kernel->scratch_bytes ? c->kernel->scratch_bytes(&c->call) : 0;
	ck_assert_int_eq(posix_memalign(&c->call.scratch, 64, bytes + !bytes), 0);
	memset(c->call.scratch, 0xa5, bytes);
	memset(&c->call.counts, 0xa5, sizeof(c->call.counts));
	void *pack;
	ck_assert_int_gt(c->kernel->steps(&c->call), 0);
	if (c->kernel->check_data)
		ck_assert_msg(c->kernel->check_data(&c->call, &c->error) == 0, "refused: %s", c->error.message);
	if (calls_pack(c, &pack)) {
		test_spoil_stack(); /* a kernel that reads what it has not set finds no zeros */
		walk_run(c->kernel, &c->call);
	}
	free(pack);
	c->call.pack = NULL;
	free(c->call.scratch);
	c->call.scratch = NULL;
}

static inline void calls_once(struct calls *c)
{
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++)
			memset(c->operands[i][k].data, 0xa5, calls_bytes(&c->operands[i][k]));
	uint64_t hash = calls_inputs_hash(c);
	calls_execute(c);
	ck_assert_msg(calls_inputs_hash(c) == hash, "%s changed an input", c->call.row->name);
}

/* The first input that the first output may be, or -1. */
static inline int calls_in_place(const struct calls *c, unsigned out)
{
	const struct kernel_operand *a = &c->operands[out][0];
	for (unsigned i = 0; i < c->call.n_roles && c->kernel->in_place; i++) {
		const struct kernel_operand *b = &c->operands[i][0];
		if (!c->is_output[i] && c->roles[i].n > 0 && (c->kernel->by_feature >> i & 1) &&
		    a->dtype == b->dtype && !memcmp(&a->shape, &b->shape, sizeof(a->shape)))
			return (int)i;
	}
	return -1;
}

/* Runs on lanes what was run densely, one of the inputs being the output where `in_place`: the same results, and
 * nothing else written. */
static inline void calls_on_lanes(struct calls *c, bool in_place)
{
	struct kernel_operand dense[CALLS_ROLES_MAX][CALLS_FAMILY_MAX];
	uint8_t *memory[CALLS_ROLES_MAX][CALLS_FAMILY_MAX] = {{NULL}};
	struct kernel_counts counts = c->call.counts;
	memcpy(dense, c->operands, sizeof(dense));
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; (c->kernel->by_feature >> i & 1) && k < c->roles[i].n &&
				     lanes_feature_bytes(&c->operands[i][k]) >= KERNEL_FEATURE_BYTES_MIN;
		     k++)
			memory[i][k] = lanes_spread(&c->operands[i][k], c->is_output[i] ? NULL : dense[i][k].data);
	for (unsigned i = 0; i < c->call.n_roles && in_place; i++)
		if (c->is_output[i] && memory[i][0] && calls_in_place(c, i) >= 0)
			c->operands[i][0].features = c->operands[calls_in_place(c, i)][0].features;
	calls_execute(c);
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && memory[i][k] && k < c->roles[i].n; k++) {
			struct kernel_operand want = dense[i][k];
			uint8_t *expected = lanes_spread(&want, dense[i][k].data);
			const uint8_t *got = c->operands[i][k].features.base - LANES_GAP;
			ck_assert_msg(!memcmp(expected, got, lanes_bytes(&want)), "%s differs on lanes under %s",
				      c->call.row->name, isa_name((int)c->call.isa));
			free(expected);
		}
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; k < c->roles[i].n; k++)
			free(memory[i][k]);
	memcpy(c->operands, dense, sizeof(dense));
	ck_assert(!memcmp(&counts, &c->call.counts, sizeof(counts)));
}

/* Runs again under every other instruction set, on lanes too: nothing may differ. */
static inline void calls_again(struct calls *c)
{
	uint8_t *first[CALLS_ROLES_MAX][CALLS_FAMILY_MAX] = {{NULL}};
	struct kernel_counts counts = c->call.counts;
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++) {
			first[i][k] = malloc(calls_bytes(&c->operands[i][k]));
			memcpy(first[i][k], c->operands[i][k].data, calls_bytes(&c->operands[i][k]));
		}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
		c->call.isa = (enum isa)isa;
		calls_once(c);
		ck_assert_msg(!memcmp(&counts, &c->call.counts, sizeof(counts)), "%s counts otherwise under %s",
			      c->call.row->name, isa_name(isa));
		for (unsigned i = 0; i < c->call.n_roles; i++)
			for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++)
				ck_assert_msg(!memcmp(first[i][k], c->operands[i][k].data,
						      calls_bytes(&c->operands[i][k])),
					      "%s differs under %s", c->call.row->name, isa_name(isa));
		if (c->kernel->by_feature)
			calls_on_lanes(c, false);
		if (c->kernel->by_feature && c->kernel->in_place)
			calls_on_lanes(c, true);
	}
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; k < c->roles[i].n; k++)
			free(first[i][k]);
	c->call.isa = ISA_ANY;
}

/* The check passes; then the run, and where nobody watches it the same under every instruction set. */
static inline void calls_run(struct calls *c)
{
	npumem_error_clear(&c->error);
	ck_assert_msg(c->kernel->check(&c->call, &c->error) == 0, "refused: %s", c->error.message);
	calls_once(c);
	if (!c->call.progress)
		calls_again(c);
}

/* The check refuses, with a message that holds `text`. */
static inline void calls_refused(struct calls *c, const char *text)
{
	npumem_error_clear(&c->error);
	int status = c->kernel->check(&c->call, &c->error);
	if (status == 0 && c->kernel->check_data)
		status = c->kernel->check_data(&c->call, &c->error);
	ck_assert_msg(status == NPUMEM_INVALID && c->error.status == NPUMEM_INVALID, "not refused: %s", text);
	ck_assert_msg(strstr(c->error.message, text) != NULL, "'%s' does not say '%s'", c->error.message, text);
	ck_assert_ptr_null(strchr(c->error.message, '\n'));
}

static inline struct kernel_operand *calls_operand(struct calls *c, const char *role)
{
	unsigned i = 0;
	while (i < c->call.n_roles && strcmp(c->names[i], role) != 0)
		i++;
	ck_assert_msg(i < c->call.n_roles && c->roles[i].n > 0, "no role %s", role);
	return &c->operands[i][0];
}

/* A field of an operand: 'n', 'c', 'h', 'w', 't' for its type, 'f' for frac_bits. */
static inline void calls_set(struct kernel_operand *operand, char field, int64_t value)
{
	switch (field) {
	case 'n':
		operand->shape.n = value;
		break;
	case 'c':
		operand->shape.c = value;
		break;
	case 'h':
		operand->shape.h = value;
		break;
	case 'w':
		operand->shape.w = value;
		break;
	case 't':
		operand->dtype = (int)value;
		break;
	default:
		operand->frac_bits = value;
	}
}

/* Every extent and type of every role, and every parameter's values at the ends of 64 bits, where it has no
 * choices: each broken by itself is refused. For calls without leftover rows, where every extent follows from the
 * others. */
static inline void calls_break_all(struct calls *c)
{
	static const int64_t absurd[] = {INT64_MIN, -1, INT64_C(1) << 31, INT64_C(1) << 62, INT64_MAX};
	for (unsigned i = 0; i < c->call.n_roles; i++) {
		struct kernel_operand *operand = &c->operands[i][0], good = *operand;
		const int64_t extents[] = {good.shape.n, good.shape.c, good.shape.h, good.shape.w};
		for (unsigned d = 0; d < 4 && c->roles[i].n > 0; d++) {
			calls_set(operand, "nchw"[d], extents[d] + 1);
			calls_refused(c, c->call.row->name);
			calls_set(operand, "nchw"[d], extents[d] * 7);
			calls_refused(c, c->call.row->name);
			*operand = good;
		}
		for (int dtype = NPUMEM_INT8; dtype <= NPUMEM_FX16 && c->roles[i].n > 0; dtype++) {
			operand->dtype = dtype;
			if (dtype != good.dtype)
				calls_refused(c, c->call.row->name);
		}
		*operand = good;
	}
	for (unsigned p = 0; p < npumem_n_param_rows; p++) {
		const struct npumem_param_row *row = &npumem_param_rows[p];
		struct npumem_param good = c->call.params.given[row->number];
		if (*row->choices || !strstr(c->call.row->parameters, row->name))
			continue;
		for (unsigned v = 0; v < row->most; v++)
			for (unsigned a = 0; a < 5; a++) {
				calls_param(c, row->number, row->most, 1, 1, 1, 1);
				if (good.n_values > 0)
					c->call.params.given[row->number] = good;
				c->call.params.given[row->number].values[v] = absurd[a];
				calls_refused(c, c->call.row->name);
			}
		c->call.params.given[row->number] = good;
	}
	npumem_error_clear(&c->error);
	ck_assert_int_eq(c->kernel->check(&c->call, &c->error), 0);
}

/* A call that takes several steps tells all of its outputs' elements; one that is cancelled leaves early. */
static inline void calls_progress(struct calls *c)
{
	struct kernel_progress progress = {.piece = 1};
	int64_t elements = 0;
	c->call.progress = &progress;
	c->call.isa = isa_best();
	calls_run(c);
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++)
			elements += (int64_t)(calls_bytes(&c->operands[i][k]) /
					      npumem_dtype_bytes(c->operands[i][k].dtype));
	ck_assert_int_eq(progress.done, elements * KERNEL_PARTS);
	progress.done = 0;
	progress.cancelled = true;
	calls_run(c);
	ck_assert_int_le(progress.done, elements * KERNEL_PARTS);
	for (unsigned i = 0; i < c->call.n_roles; i++)
		for (unsigned k = 0; c->is_output[i] && k < c->roles[i].n; k++)
			ck_assert_int_eq(((uint8_t *)c->operands[i][k].data)[calls_bytes(&c->operands[i][k]) - 1],
					 0xa5);
	c->call.progress = NULL;
	c->call.isa = ISA_ANY;
}

static inline int64_t calls_get(const struct calls *c, unsigned role, int64_t i)
{
	const struct kernel_operand *operand = &c->operands[role][0];
	switch (operand->dtype) {
	case NPUMEM_INT8:
	case NPUMEM_FX8:
		return ((const int8_t *)operand->data)[i];
	case NPUMEM_UINT8:
		return ((const uint8_t *)operand->data)[i];
	case NPUMEM_INT16:
	case NPUMEM_FX16:
		return ((const int16_t *)operand->data)[i];
	case NPUMEM_UINT16:
		return ((const uint16_t *)operand->data)[i];
	case NPUMEM_INT32:
		return ((const int32_t *)operand->data)[i];
	default:
		return ((const uint32_t *)operand->data)[i];
	}
}

static inline void calls_put_in(struct kernel_operand *operand, int64_t i, int64_t value)
{
	switch (npumem_dtype_bytes(operand->dtype)) {
	case 1:
		((uint8_t *)operand->data)[i] = (uint8_t)value;
		break;
	case 2:
		((uint16_t *)operand->data)[i] = (uint16_t)value;
		break;
	default:
		((uint32_t *)operand->data)[i] = (uint32_t)value;
	}
}

static inline void calls_put(struct calls *c, unsigned role, int64_t i, int64_t value)
{
	calls_put_in(&c->operands[role][0], i, value);
}

/* Fills a role's (first) operand with samples of its whole container. */
static inline void calls_sample(struct calls *c, unsigned role, uint64_t *state)
{
	struct kernel_operand *operand = &c->operands[role][0];
	int64_t low, high, n = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype));
	ck_assert(npumem_dtype_range(operand->dtype, &low, &high));
	for (int64_t i = 0; i < n; i++)
		calls_put(c, role, i, oracle_sample(state, low, high));
}

/* Samples of the whole range, small ones, mostly the most negative one, or nothing but zeros. */
static inline void calls_fill(struct calls *c, unsigned role, uint64_t *state)
{
	struct kernel_operand *operand = &c->operands[role][0];
	int64_t n = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype)), low, high;
	ck_assert(npumem_dtype_range(operand->dtype, &low, &high));
	uint64_t how = oracle_random(state) % 16;
	int64_t small = 2 << oracle_random(state) % 8;
	for (int64_t i = 0; i < n; i++)
		calls_put(c, role, i,
			  how == 0		      ? 0
			  : how <= 5		      ? oracle_between(state, low, high)
			  : how <= 10		      ? oracle_between(state, low / small, high / small)
			  : oracle_random(state) % 16 ? low
						      : high);
}

/* The limits of relu= by its number, for results with `frac_bits` in a container [low, high]. */
static inline int64_t calls_relu(int64_t x, int64_t relu, int64_t frac_bits, int64_t low, int64_t high)
{
	int64_t ignored = 0;
	int64_t one = oracle_clamp(oracle_double(oracle_of(1), frac_bits), low, high, &ignored);
	int64_t minus_one = oracle_clamp(oracle_double(oracle_of(-1), frac_bits), low, high, &ignored);
	int64_t six = oracle_clamp(oracle_double(oracle_of(6), frac_bits), low, high, &ignored);
	int64_t bottom = relu <= 1 ? low : relu == 3 ? minus_one : 0;
	int64_t top = relu == 3 ? one : relu == 4 ? six : high;
	return x < bottom ? bottom : x > top ? top : x;
}

/* What a MAC kernel makes of an exact sum of products: bias, wrap, one rounding, one saturation, relu limits. */
static inline int64_t calls_weighted(const struct calls *c, int64_t sum, int64_t bias, int64_t acc_frac_bits,
				     int64_t bias_frac_bits, unsigned out, int64_t relu, int64_t *saturated,
				     int64_t *wrapped)
{
	const struct kernel_operand *operand = &c->operands[out][0];
	int64_t low, high;
	ck_assert(npumem_dtype_range(operand->dtype, &low, &high));
	struct oracle total =
		oracle_add(oracle_of(sum), oracle_double(oracle_of(bias), acc_frac_bits - bias_frac_bits));
	struct oracle held = oracle_wrap(total, operand->dtype == NPUMEM_FX8 ? 32 : 40, wrapped);
	int64_t y =
		oracle_result(held, acc_frac_bits - operand->frac_bits, c->call.rounding, low, high, saturated);
	return calls_relu(y, relu, operand->frac_bits, low, high);
}

/* The three type combinations of the kernels with weights. */
struct calls_types {
	int data, weights;
};
static const struct calls_types calls_fxn[] = {
	{NPUMEM_FX8, NPUMEM_FX8}, {NPUMEM_FX16, NPUMEM_FX16}, {NPUMEM_FX16, NPUMEM_FX8}};

#endif
