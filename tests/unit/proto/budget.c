#include "proto/budget.h"

#include <stdlib.h>
#include <string.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/message.h"
#include "tests/support/test.h"

/* A heap that counts, and can fail its i-th allocation and all after it. */
struct counter {
	size_t n_alive, n_allocs, fail_at;
};

static void *counter_alloc(void *ctx, size_t bytes)
{
	struct counter *counter = ctx;
	if (counter->fail_at && ++counter->n_allocs >= counter->fail_at)
		return NULL;
	counter->n_alive++;
	return malloc(bytes);
}

static void counter_free(void *ctx, void *memory)
{
	struct counter *counter = ctx;
	if (memory)
		counter->n_alive--;
	free(memory);
}

/* A message with something of everything: lists, merged duplicates, unknown fields, strings, bytes. */
static size_t sample_pack(uint8_t *to)
{
	Npumem__V1__Operation operations[40], *list[40];
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	Npumem__V1__Operand operand = NPUMEM__V1__OPERAND__INIT, *operands[3] = {&operand, &operand, &operand};
	Npumem__V1__Param param = NPUMEM__V1__PARAM__INIT, *params[2] = {&param, &param};
	int64_t values[4] = {1, -2, 3, 400};
	uint8_t data[100] = {1, 2, 3};
	ref.name = "weights.0";
	Npumem__V1__WriteRequest write = {MESSAGE(write_request), .tensor = &ref,
					  .data = (ProtobufCBinaryData){sizeof(data), data}};
	operand.role = "in";
	operand.tensor = &ref;
	param.key = NPUMEM__V1__PARAM_KEY__PARAM_PADDING;
	param.n_values = 4;
	param.values = values;
	Npumem__V1__RunRequest run = {MESSAGE(run_request), .n_operands = 3, .operands = operands, .n_params = 2,
				      .params = params};
	for (unsigned i = 0; i < 40; i++) {
		npumem__v1__operation__init(&operations[i]);
		list[i] = &operations[i];
		operations[i].group = i;
		operations[i].kind_case =
			i & 1 ? NPUMEM__V1__OPERATION__KIND_WRITE : NPUMEM__V1__OPERATION__KIND_RUN;
		if (i & 1)
			operations[i].write = &write;
		else
			operations[i].run = &run;
	}
	Npumem__V1__SubmitRequest submit = {MESSAGE(submit_request), .n_operations = 40, .operations = list};
	Npumem__V1__Request request = {MESSAGE(request), .id = 77, .call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT,
				       .submit = &submit};
	size_t used = npumem__v1__request__pack(&request, to);
	/* The same again: the later one of a oneof takes the earlier one's place. Then fields of nobody. */
	memcpy(to + used, to, used);
	used *= 2;
	static const uint8_t unknown[] = {0xf2, 0x07, 3, 'a', 'b', 'c'};
	for (unsigned i = 0; i < 40; i++, used += sizeof(unknown))
		memcpy(to + used, unknown, sizeof(unknown));
	/* open { tensor { handle } tensor { name } }: merged. */
	static const uint8_t twice[] = {0x52, 17, 0x0a, 9,    0x09, 1,	  1, 1,	  1,  1,
					1,    1,  1,	0x0a, 4,    0x12, 2, 'a', 'b'};
	memcpy(to + used, twice, sizeof(twice));
	return used + sizeof(twice);
}

TEST(a_message_unpacks_and_chunks_are_reused)
{
	struct counter counter = {0};
	struct budget budget;
	uint8_t bytes[16384];
	size_t n = sample_pack(bytes);
	budget_init(&budget, counter_alloc, counter_free, &counter);
	for (unsigned i = 0; i < 5; i++) {
		budget_reset(&budget, n);
		Npumem__V1__Request *request = npumem__v1__request__unpack(&budget.allocator, n, bytes);
		ck_assert_ptr_nonnull(request);
		ck_assert_int_eq(request->call_case, NPUMEM__V1__REQUEST__CALL_OPEN);
		ck_assert_str_eq(request->open->tensor->name, "ab");
		ck_assert_uint_eq(request->base.n_unknown_fields, 40);
		ck_assert(!budget.exceeded);
	}
	budget_reset(&budget, 0);
	ck_assert_uint_le(counter.n_alive, 1);
	budget_deinit(&budget);
	ck_assert_uint_eq(counter.n_alive, 0);
}

TEST(the_limit_ends_an_unpack_cleanly_wherever_it_strikes)
{
	struct counter counter = {0};
	struct budget budget;
	uint8_t bytes[16384];
	size_t n = sample_pack(bytes), whole;
	budget_init(&budget, counter_alloc, counter_free, &counter);
	budget_reset(&budget, n);
	ck_assert_ptr_nonnull(npumem__v1__request__unpack(&budget.allocator, n, bytes));
	whole = budget.spent;
	for (size_t limit = 0; limit < whole; limit += 16) {
		budget_reset(&budget, n);
		budget.limit = limit;
		ck_assert_ptr_null(npumem__v1__request__unpack(&budget.allocator, n, bytes));
		ck_assert(budget.exceeded);
		ck_assert_uint_le(budget.spent, limit);
	}
	budget_deinit(&budget);
	ck_assert_uint_eq(counter.n_alive, 0);
}

/* One allocation fails and those after it succeed: protobuf-c must not run on into the hole. */
struct hole {
	ProtobufCAllocator *inner;
	size_t n_allocs, fail_at;
};

static void *hole_alloc(void *data, size_t bytes)
{
	struct hole *hole = data;
	if (++hole->n_allocs == hole->fail_at)
		return NULL;
	return hole->inner->alloc(hole->inner->allocator_data, bytes);
}

static void hole_free(void *data, void *memory)
{
	(void)data;
	(void)memory;
}

TEST(every_single_allocation_may_fail)
{
	struct counter counter = {0};
	struct budget budget;
	uint8_t bytes[16384];
	size_t n = sample_pack(bytes), fail_at = 0;
	Npumem__V1__Request *request;
	budget_init(&budget, counter_alloc, counter_free, &counter);
	do {
		struct hole hole = {&budget.allocator, 0, ++fail_at};
		ProtobufCAllocator allocator = {hole_alloc, hole_free, &hole};
		budget_reset(&budget, n);
		request = npumem__v1__request__unpack(&allocator, n, bytes);
		ck_assert(!request == (hole.n_allocs >= fail_at));
	} while (!request);
	ck_assert_uint_gt(fail_at, 100);
	budget_deinit(&budget);
	ck_assert_uint_eq(counter.n_alive, 0);
}

TEST(a_heap_without_memory_is_not_an_exceeded_budget)
{
	struct counter counter = {.fail_at = 1};
	struct budget budget;
	uint8_t bytes[16384];
	size_t n = sample_pack(bytes);
	budget_init(&budget, counter_alloc, counter_free, &counter);
	budget_reset(&budget, n);
	ck_assert_ptr_null(npumem__v1__request__unpack(&budget.allocator, n, bytes));
	ck_assert(!budget.exceeded);
	ck_assert(budget.starved);
	budget_reset(&budget, n);
	ck_assert(!budget.starved);
	budget_deinit(&budget);
}

TEST(empty_messages_do_not_buy_memory)
{
	/* submit with 1 MiB of empty operations, 2 bytes each and 64 times that in memory. */
	struct counter counter = {0};
	struct budget budget;
	size_t n = (1 << 20) + 5;
	uint8_t *bytes = calloc(1, n);
	memcpy(bytes, "\x92\x01\x80\x80\x40", 5);
	for (size_t i = 5; i < n; i += 2)
		bytes[i] = 0x0a;
	budget_init(&budget, counter_alloc, counter_free, &counter);
	budget_reset(&budget, n);
	ck_assert_ptr_null(npumem__v1__request__unpack(&budget.allocator, n, bytes));
	ck_assert(budget.exceeded);
	ck_assert_uint_le(budget.spent, budget_limit(n));
	ck_assert_uint_lt(budget_limit(n), 40 << 20);
	budget_deinit(&budget);
	ck_assert_uint_eq(counter.n_alive, 0);
	free(bytes);
}

TEST(the_limit_of_any_size_is_a_number)
{
	ck_assert_uint_ge(budget_limit(0), 65536);
	ck_assert_uint_ge(budget_limit(1000), 65536 + 32000);
	ck_assert_uint_lt(budget_limit((size_t)16 << 20), (size_t)160 << 20);
	ck_assert_uint_eq(budget_limit(SIZE_MAX), SIZE_MAX);
	ck_assert_uint_eq(budget_limit(SIZE_MAX / 8), SIZE_MAX);
}
