/* What the packed kernels must do, for their tests: every combination of types either refused or run over samples
 * and compared with a formula, in plain arithmetic and by the vendor's rules ("value -> rounded shift ->
 * saturate", "floor((v + 2^(r-1)) / 2^r)"), with which the product shares no code. */
#ifndef TESTS_SUPPORT_PACKED_ORACLE_H
#define TESTS_SUPPORT_PACKED_ORACLE_H

#include <stdio.h>

#include "tests/unit/daemon/device/kernels/calls.h"

static const int packed_oracle_dtypes[] = {NPUMEM_INT8, NPUMEM_UINT8, NPUMEM_INT16, NPUMEM_UINT16};
enum { PACKED_ORACLE_DTYPES = 4 };

/* A call: types by role, in2 being a constant's where the kernel has no such role (0: not said), 0 for no acc. */
struct packed_call {
	int in1, in2, acc, out;
	int64_t value, lshift, rshift;
};

/* One element's operands, acc already shifted left, and the type of out. */
struct packed_terms {
	int64_t in1, in2, acc;
	int out;
};
typedef int64_t packed_formula(const struct packed_terms *terms);
typedef bool packed_types(const struct packed_call *call);

/* ---- which types a kernel takes ---- */

static inline bool packed_oracle_is_wide(int dtype)
{
	return dtype == NPUMEM_INT16 || dtype == NPUMEM_UINT16;
}

static inline bool packed_oracle_one_width(const struct packed_call *call)
{
	return packed_oracle_is_wide(call->in1) == packed_oracle_is_wide(call->in2);
}

static inline bool packed_oracle_narrow(const struct packed_call *call)
{
	return !packed_oracle_is_wide(call->in1) && !packed_oracle_is_wide(call->in2);
}

static inline bool packed_oracle_mac_types(const struct packed_call *call)
{
	return packed_oracle_narrow(call) && packed_oracle_is_wide(call->acc) && packed_oracle_is_wide(call->out);
}

static inline bool packed_oracle_order_types(const struct packed_call *call)
{
	return call->in1 == call->in2 && packed_oracle_is_wide(call->in1) == packed_oracle_is_wide(call->out);
}

static inline bool packed_oracle_logical_types(const struct packed_call *call)
{
	return packed_oracle_is_wide(call->in1) && packed_oracle_is_wide(call->in2) && call->out == call->in1;
}

static inline bool packed_oracle_arithmetic_types(const struct packed_call *call)
{
	return packed_oracle_logical_types(call) && call->in1 == NPUMEM_INT16;
}

/* ---- calls ---- */

static inline int packed_oracle_role(const struct calls *c, const char *name)
{
	for (unsigned i = 0; i < c->call.n_roles; i++)
		if (strcmp(c->names[i], name) == 0)
			return (int)i;
	return -1;
}

static inline int packed_oracle_value_dtype(int dtype)
{
	for (int i = 0; i < PACKED_ORACLE_DTYPES; i++)
		if (packed_oracle_dtypes[i] == dtype)
			return i + 2;
	return 0;
}

static inline void packed_oracle_set_up(struct calls *c, int kernel, const struct packed_call *call, int64_t w)
{
	calls_init(c, kernel);
	const char *params = c->call.row->parameters;
	calls_add(c, "in1", call->in1, 0, 3, 2, 1, w);
	if (packed_oracle_role(c, "in2") >= 0)
		calls_add(c, "in2", call->in2, 0, 3, 2, 1, w);
	if (packed_oracle_role(c, "acc") >= 0)
		calls_add(c, "acc", call->acc, 0, 3, 2, 1, w);
	calls_add(c, "out", call->out, 0, 3, 2, 1, w);
	if (strstr(params, "value")) {
		calls_param(c, NPUMEM_PARAM_VALUE, 1, call->value, 0, 0, 0);
		calls_param(c, NPUMEM_PARAM_VALUE_DTYPE, call->in2 != 0, packed_oracle_value_dtype(call->in2), 0,
			    0, 0);
	}
	if (strstr(params, "lshift"))
		calls_param(c, NPUMEM_PARAM_LSHIFT, 1, call->lshift, 0, 0, 0);
	if (strstr(params, "rshift"))
		calls_param(c, NPUMEM_PARAM_RSHIFT, 1, call->rshift, 0, 0, 0);
}

static inline int64_t packed_oracle_floor(int64_t x, int64_t divisor)
{
	return x / divisor - (x % divisor < 0);
}

static inline int64_t packed_oracle_result(int64_t value, int64_t rshift, int dtype, int64_t *saturated)
{
	int64_t low, high, divisor = (int64_t)1 << rshift;
	ck_assert(npumem_dtype_range(dtype, &low, &high));
	int64_t y = rshift == 0 ? value : packed_oracle_floor(value + divisor / 2, divisor);
	*saturated += y < low || y > high;
	return y < low ? low : y > high ? high : y;
}

/* "wrap32": to signed 32 bits. */
static inline int64_t packed_oracle_wrap(int64_t value, int64_t *wrapped)
{
	int64_t turn = (int64_t)1 << 32;
	int64_t turns = packed_oracle_floor(value + turn / 2, turn);
	*wrapped += turns != 0;
	return value - turns * turn;
}

static inline void packed_oracle_compare(struct calls *c, const struct packed_call *call, packed_formula *formula)
{
	int in1 = packed_oracle_role(c, "in1"), in2 = packed_oracle_role(c, "in2");
	int acc = packed_oracle_role(c, "acc"), out = packed_oracle_role(c, "out");
	int64_t n = (int64_t)(calls_bytes(&c->operands[in1][0]) / npumem_dtype_bytes(call->in1));
	int64_t saturated = 0, wrapped = 0;
	for (int64_t i = 0; i < n; i++) {
		struct packed_terms terms = {
			.in1 = calls_get(c, (unsigned)in1, i),
			.in2 = in2 < 0 ? call->value : calls_get(c, (unsigned)in2, i),
			.acc = acc < 0 ? 0 : calls_get(c, (unsigned)acc, i) * ((int64_t)1 << call->lshift),
			.out = call->out,
		};
		int64_t value = formula(&terms);
		if (acc >= 0)
			value = packed_oracle_wrap(value, &wrapped);
		int64_t want = packed_oracle_result(value, call->rshift, call->out, &saturated);
		if (calls_get(c, (unsigned)out, i) != want)
			ck_abort_msg("%s in1 %s %lld in2 %s %lld acc %lld rshift %lld out %s is %lld, not %lld",
				     c->call.row->name, npumem_dtype_name(call->in1), (long long)terms.in1,
				     npumem_dtype_name(call->in2), (long long)terms.in2, (long long)terms.acc,
				     (long long)call->rshift, npumem_dtype_name(call->out),
				     (long long)calls_get(c, (unsigned)out, i), (long long)want);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, acc >= 0 ? n : 0);
	ck_assert_int_eq(c->call.counts.divided_by_zero, 0);
}

/* Shifts that a kernel without the parameter does not see are 0. */
static inline void packed_oracle_sample_params(const struct calls *c, struct packed_call *call, uint64_t *state)
{
	static const int64_t shifts[] = {0, 1, 2, 7, 15, 16, 30, 31};
	const char *params = c->call.row->parameters;
	int64_t low, high;
	call->rshift = strstr(params, "rshift") ? shifts[oracle_random(state) % 8] : 0;
	call->lshift = strstr(params, "lshift") ? shifts[oracle_random(state) % 8] : 0;
	ck_assert(npumem_dtype_range(call->in2, &low, &high));
	call->value = oracle_sample(state, low, high);
	call->value = call->value < low ? low : call->value; /* a sample near 0 may be negative */
}

static inline void packed_oracle_one(int kernel, struct packed_call call, bool taken, packed_formula *formula,
				     uint64_t *state)
{
	for (int round = 0; round < (taken ? 4 : 1); round++) {
		struct calls c;
		packed_oracle_set_up(&c, kernel, &call, 1);
		packed_oracle_sample_params(&c, &call, state);
		calls_free(&c);
		packed_oracle_set_up(&c, kernel, &call, round == 0 ? 87 : 3); /* around a block, twice */
		c.call.rounding = (enum npumem_rounding)(1 + round % 3);      /* the device's: not for these */
		if (!taken) {
			calls_refused(&c, ", but must be ");
		} else {
			for (unsigned role = 0; role < c.call.n_roles; role++)
				calls_sample(&c, role, state);
			calls_run(&c);
			packed_oracle_compare(&c, &call, formula);
		}
		calls_free(&c);
	}
}

/* Every combination of types: run where `types` takes it, refused where not. */
static inline void packed_oracle_every_type(int kernel, packed_types *types, packed_formula *formula)
{
	uint64_t state = (uint64_t)kernel;
	struct calls c;
	calls_init(&c, kernel);
	bool has_acc = packed_oracle_role(&c, "acc") >= 0;
	ck_assert(c.kernel->in_place);
	for (int i = 0; i < 64; i++)
		for (int acc = 0; acc < (has_acc ? PACKED_ORACLE_DTYPES : 1); acc++) {
			struct packed_call call = {
				.in1 = packed_oracle_dtypes[i % 4],
				.in2 = packed_oracle_dtypes[i / 4 % 4],
				.acc = has_acc ? packed_oracle_dtypes[acc] : 0,
				.out = packed_oracle_dtypes[i / 16],
			};
			packed_oracle_one(kernel, call, types(&call), formula, &state);
		}
}

/* ---- what every packed kernel refuses ---- */

static inline void packed_oracle_refuses(int kernel, const struct packed_call *good)
{
	static const int others[] = {NPUMEM_INT32, NPUMEM_UINT32, NPUMEM_FP32, NPUMEM_FX8, NPUMEM_FX16};
	struct calls c;
	char text[NPUMEM_MESSAGE_BYTES];
	packed_oracle_set_up(&c, kernel, good, 5);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	for (unsigned role = 0; role < c.call.n_roles; role++) {
		struct kernel_operand was = c.operands[role][0];
		for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			c.operands[role][0].dtype = others[i];
			snprintf(text, sizeof(text), "%s: %s is %s, but must be int8, uint8, int16 or uint16",
				 c.call.row->name, c.names[role], npumem_dtype_name(others[i]));
			calls_refused(&c, text);
		}
		c.operands[role][0] = was;
		if (role == 0)
			continue;
		c.operands[role][0].shape = (struct npumem_dims){3, 2, 1, 1};
		snprintf(text, sizeof(text), "%s: %s has W 1, but in1 has 5", c.call.row->name, c.names[role]);
		calls_refused(&c, text);
		c.operands[role][0] = was;
	}
	calls_param(&c, NPUMEM_PARAM_ROUNDING, 1, NPUMEM_UP, 0, 0, 0);
	c.call.rounding = NPUMEM_UP;
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_param(&c, NPUMEM_PARAM_ROUNDING, 1, NPUMEM_NEAREST, 0, 0, 0);
	c.call.rounding = NPUMEM_NEAREST;
	calls_refused(&c, "rounding is nearest, but packed operations round up");
	calls_free(&c);
}

static inline void packed_oracle_refuses_shift(int kernel, const struct packed_call *good, int param)
{
	static const int64_t wrong[] = {-1, 32, INT64_MAX, INT64_MIN};
	const char *name = npumem_param_by_number(param)->name;
	struct calls c;
	char text[NPUMEM_MESSAGE_BYTES];
	packed_oracle_set_up(&c, kernel, good, 5);
	ck_assert_ptr_nonnull(strstr(c.call.row->parameters, name));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		calls_param(&c, param, 1, wrong[i], 0, 0, 0);
		snprintf(text, sizeof(text), "%s: %s is %lld, but must be 0 to 31", c.call.row->name, name,
			 (long long)wrong[i]);
		calls_refused(&c, text);
	}
	calls_free(&c);
}

/* A constant of each type that the kernel takes with in1: its ends, and one past them. */
static inline void packed_oracle_refuses_value(int kernel, const struct packed_call *good, packed_types *types)
{
	struct calls c;
	char text[NPUMEM_MESSAGE_BYTES];
	for (int i = 0; i < PACKED_ORACLE_DTYPES; i++) {
		struct packed_call call = *good;
		int64_t low, high;
		call.in2 = packed_oracle_dtypes[i];
		if (!types(&call))
			continue;
		npumem_dtype_range(call.in2, &low, &high);
		const int64_t values[] = {low, high, low - 1, high + 1, INT64_MIN, INT64_MAX};
		for (int k = 0; k < 6; k++) {
			call.value = values[k];
			packed_oracle_set_up(&c, kernel, &call, 5);
			snprintf(text, sizeof(text), "%s: value %s is %lld, but must be %lld to %lld",
				 c.call.row->name, npumem_dtype_name(call.in2), (long long)values[k],
				 (long long)low, (long long)high);
			if (k < 2)
				ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
			else
				calls_refused(&c, text);
			calls_free(&c);
		}
	}
	packed_oracle_set_up(&c, kernel, good, 5);
	calls_param(&c, NPUMEM_PARAM_VALUE, 0, 0, 0, 0, 0);
	calls_refused(&c, "value is missing");
	calls_param(&c, NPUMEM_PARAM_VALUE, 1, 1, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_VALUE_DTYPE, 1, 6, 0, 0, 0);
	calls_refused(&c, "value_dtype is number 6, but its choices are 1 to 5");
	calls_param(&c, NPUMEM_PARAM_VALUE_DTYPE, 1, 0, 0, 0, 0);
	calls_refused(&c, "value_dtype is number 0, but its choices are 1 to 5");
	calls_free(&c);
}

/* Without value_dtype= the constant has type `dtype`. */
static inline void packed_oracle_default_dtype(int kernel, struct packed_call call, int dtype)
{
	struct calls c;
	char text[NPUMEM_MESSAGE_BYTES];
	int64_t low, high;
	npumem_dtype_range(dtype, &low, &high);
	call.in2 = 0;
	call.value = low;
	packed_oracle_set_up(&c, kernel, &call, 5);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_param(&c, NPUMEM_PARAM_VALUE_DTYPE, 1, 1, 0, 0, 0); /* "default", said */
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_param(&c, NPUMEM_PARAM_VALUE, 1, low - 1, 0, 0, 0);
	snprintf(text, sizeof(text), "value %s is %lld", npumem_dtype_name(dtype), (long long)low - 1);
	calls_refused(&c, text);
	calls_free(&c);
}

/* ---- shifts ---- */

/* The 16 bits of x shifted by the low 8 bits of `by`, a place at a time; `sign` is what comes in from the left. */
static inline int64_t packed_oracle_shift(int64_t x, int64_t by, bool keep_sign)
{
	int64_t amount = by - packed_oracle_floor(by, 256) * 256;
	int64_t bits = x - packed_oracle_floor(x, 65536) * 65536;
	for (; amount >= 128 && amount < 256; amount++)
		bits = bits / 2 + (keep_sign && bits >= 32768 ? 32768 : 0);
	for (; amount > 0 && amount < 128; amount--)
		bits = bits * 2 % 65536;
	return bits;
}

/* Every amount that 8 bits hold and some that they do not, for a kernel of shifts. */
static inline void packed_oracle_every_amount(int kernel, struct packed_call call, packed_formula *formula)
{
	uint64_t state = (uint64_t)kernel + 1;
	for (call.value = -300; call.value <= 300; call.value++) {
		struct calls c;
		packed_oracle_set_up(&c, kernel, &call, 2);
		calls_sample(&c, 0, &state);
		for (int64_t i = 0; packed_oracle_role(&c, "in2") >= 0 && i < 12; i++)
			calls_put(&c, (unsigned)packed_oracle_role(&c, "in2"), i, call.value);
		calls_run(&c);
		packed_oracle_compare(&c, &call, formula);
		calls_free(&c);
	}
}

#endif
