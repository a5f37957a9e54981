#include <stdio.h>

#include "tests/unit/daemon/rpc/talk.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

/* A list of operations under construction. */
struct list {
	Npumem__V1__SubmitRequest request;
	size_t n;
	struct item {
		Npumem__V1__Operation operation;
		Npumem__V1__WriteRequest write;
		Npumem__V1__ReadRequest read;
		Npumem__V1__FillRequest fill;
		Npumem__V1__CopyRequest copy;
		Npumem__V1__RunRequest run;
		Npumem__V1__Operand operands[2], *operand_list[2];
		Npumem__V1__Ref refs[2];
	} * items;
	Npumem__V1__Operation **pointers;
};

static void list_init(struct list *list, size_t most)
{
	*list = (struct list){.items = calloc(most, sizeof(struct item)),
			      .pointers = calloc(most, sizeof(void *))};
	npumem__v1__submit_request__init(&list->request);
}

static void list_deinit(struct list *list)
{
	free(list->items);
	free(list->pointers);
}

static struct item *add(struct list *list, unsigned group, int kind, const char *first, const char *second)
{
	struct item *item = &list->items[list->n];
	npumem__v1__operation__init(&item->operation);
	list->pointers[list->n++] = &item->operation;
	list->request.n_operations = list->n;
	list->request.operations = list->pointers;
	item->refs[0] = talk_ref(0, first);
	item->refs[1] = talk_ref(0, second);
	item->operation.group = group;
	item->operation.kind_case = (Npumem__V1__Operation__KindCase)kind;
	return item;
}

static void add_fill(struct list *list, unsigned group, const char *name, int64_t value)
{
	struct item *item = add(list, group, NPUMEM__V1__OPERATION__KIND_FILL, name, "");
	npumem__v1__fill_request__init(&item->fill);
	item->operation.fill = &item->fill;
	item->fill.tensor = &item->refs[0];
	item->fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	item->fill.integer = value;
}

static void add_read(struct list *list, unsigned group, const char *name, int64_t first, int64_t count)
{
	struct item *item = add(list, group, NPUMEM__V1__OPERATION__KIND_READ, name, "");
	npumem__v1__read_request__init(&item->read);
	item->operation.read = &item->read;
	item->read.tensor = &item->refs[0];
	item->read.first = first;
	item->read.count = count;
}

static void add_copy(struct list *list, unsigned group, const char *destination, const char *source)
{
	struct item *item = add(list, group, NPUMEM__V1__OPERATION__KIND_COPY, destination, source);
	npumem__v1__copy_request__init(&item->copy);
	item->operation.copy = &item->copy;
	item->copy.destination = &item->refs[0];
	item->copy.source = &item->refs[1];
}

static void add_relu(struct list *list, unsigned group, const char *in, const char *out)
{
	struct item *item = add(list, group, NPUMEM__V1__OPERATION__KIND_RUN, in, out);
	npumem__v1__run_request__init(&item->run);
	item->operation.run = &item->run;
	item->run.kernel = NPUMEM__V1__KERNEL__RELU;
	item->run.n_operands = 2;
	item->run.operands = item->operand_list;
	for (unsigned i = 0; i < 2; i++) {
		npumem__v1__operand__init(&item->operands[i]);
		item->operand_list[i] = &item->operands[i];
		item->operands[i].role = i ? "out" : "in";
		item->operands[i].tensor = &item->refs[i];
	}
}

static void tensors(void)
{
	static char *const names[] = {"a", "b", "c", "d"};
	for (unsigned i = 0; i < 4; i++) {
		struct talk_spec spec;
		Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
		allocation.spec = talk_spec(&spec, 8, 16);
		allocation.spec->dtype = NPUMEM__V1__DTYPE__FX8;
		allocation.spec->frac_bits_given_case = NPUMEM__V1__SPEC__FRAC_BITS_GIVEN_FRAC_BITS;
		allocation.name = names[i];
		Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
		ck_assert_int_eq(TALK(&talk, alloc, ALLOC, &request), 0);
	}
}

TEST(a_list_runs_in_order)
{
	struct list list;
	tensors();
	list_init(&list, 10);
	add_fill(&list, 0, "a", -3);
	add_copy(&list, 0, "b", "a");
	add_relu(&list, 0, "a", "c");
	add_read(&list, 0, "b", 0, 0);
	add_fill(&list, 0, "b", 9);
	add_read(&list, 0, "b", 5, 2);
	add_read(&list, 0, "c", 0, 1);
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	ck_assert_uint_eq(talk.response->submitted->n_done, 7);
	ck_assert_uint_eq(talk.response->submitted->done[0]->data.len, 0);
	ck_assert_uint_eq(talk.response->submitted->done[3]->data.len, 128);
	ck_assert_int_eq((int8_t)talk.response->submitted->done[3]->data.data[127], -3);
	ck_assert_uint_eq(talk.response->submitted->done[5]->data.len, 2);
	ck_assert_int_eq((int8_t)talk.response->submitted->done[5]->data.data[1], 9);
	ck_assert_int_eq((int8_t)talk.response->submitted->done[6]->data.data[0], -3); /* relu=none */
	list_deinit(&list);
	list_init(&list, 1);
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	ck_assert_uint_eq(talk.response->submitted->n_done, 0);
	list_deinit(&list);
}

TEST(the_first_refusal_ends_the_list)
{
	struct list list;
	tensors();
	list_init(&list, 10);
	add_fill(&list, 0, "a", 1);
	add_read(&list, 0, "a", 0, 4);
	add_fill(&list, 0, "b", 999);
	add_fill(&list, 0, "a", 2);
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_INVALID,
		   "operation 2 (fill b): fill value 999");
	ck_assert_int_eq(talk_field(&talk, "operation"), 2);
	ck_assert_uint_eq(talk.response->submitted->n_done, 2);
	ck_assert_uint_eq(talk.response->submitted->done[1]->data.len, 4);
	ck_assert_int_eq(talk.response->submitted->done[1]->data.data[3], 1);
	list_deinit(&list);
	list_init(&list, 10);
	add_fill(&list, 0, "a", 3);
	add_fill(&list, 0, "nobody", 3);
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_NOT_FOUND,
		   "operation 1: there is no tensor nobody");
	ck_assert_int_eq(talk_field(&talk, "operation"), 1);
	ck_assert_ptr_null(talk.response->submitted);
	list_deinit(&list);
	list_init(&list, 10);
	add(&list, 0, 0, "", "");
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_INVALID, "operation 0: ");
	list_deinit(&list);
}

TEST(a_conflict_refuses_the_whole_group)
{
	struct list list;
	tensors();
	list_init(&list, 10);
	add_fill(&list, 0, "a", 5);
	add_fill(&list, 7, "b", 5);
	add_relu(&list, 7, "a", "c");
	add_copy(&list, 7, "d", "c"); /* reads what the kernel writes */
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_ABORTED);
	ck_assert_int_eq(talk_field(&talk, "first"), 2);
	ck_assert_int_eq(talk_field(&talk, "second"), 3);
	talk_says(&talk, "operations 2 (run relu out=c) and 3 (copy d)");
	ck_assert_uint_eq(talk.response->submitted->n_done, 1);
	list_deinit(&list);
	/* The same in two groups is right, and so is an order within one lane. */
	list_init(&list, 10);
	add_fill(&list, 7, "b", 5);
	add_copy(&list, 7, "d", "b");
	add_relu(&list, 7, "a", "c");
	add_copy(&list, 8, "d", "c");
	add_relu(&list, 8, "c", "b");
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	ck_assert_uint_eq(talk.response->submitted->n_done, 5);
	list_deinit(&list);
}

TEST(counts_have_limits)
{
	struct list list;
	tensors();
	list_init(&list, 1025);
	for (unsigned i = 0; i < 257; i++)
		add_fill(&list, 1, "a", 1);
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_INVALID, "257");
	talk_says(&talk, "256");
	ck_assert_ptr_null(talk.response->submitted);
	list.n = 0;
	for (unsigned i = 0; i < 1024; i++)
		add_fill(&list, 0, "a", 1);
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	ck_assert_uint_eq(talk.response->submitted->n_done, 1024);
	add_fill(&list, 0, "a", 1);
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_INVALID, "1025");
	list_deinit(&list);
}

TEST(an_answer_beyond_a_frame_is_refused_before_anything_runs)
{
	struct device_options options = {
		.geometry = {.n_npus = 64, .npu_bytes = 512 << 10, .n_banks = 8, .eu_bytes = 128},
		.uninitialized = NPUMEM_ALLOW,
	};
	struct list list;
	talk_again(&talk, &options);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "big", 64, 100000), 0);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "small", 1, 1), 0);
	list_init(&list, 10);
	add_fill(&list, 0, "small", 77);
	for (unsigned i = 0; i < 3; i++)
		add_read(&list, 0, "big", 0, 0);
	talk_fails(&talk, TALK(&talk, submit, SUBMIT, &list.request), NPUMEM_INVALID, "16777216");
	ck_assert_ptr_null(talk.response->submitted);
	list.n = 3;
	list.request.n_operations = 3;
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	ck_assert_uint_eq(talk.response->submitted->done[2]->data.len, 6400000);
	list_deinit(&list);
}

/* A tensor at an address of an NPU. */
static struct tensor *place(struct session *session, const char *name, int64_t c, int64_t w, int64_t address)
{
	struct device_request request = world_request(c, w);
	struct tensor *tensor;
	request.spec.dtype = NPUMEM_FX8;
	request.spec.frac_bits = 0;
	request.spec.address = address;
	request.reuse = session == &talk.session ? NPUMEM_NEVER : NPUMEM_UNCHECKED;
	ck_assert_msg(!tensors_alloc(session, &request, &name, 1, &tensor, &talk.world.error), "%s",
		      talk.world.error.message);
	return tensor;
}

/* A kernel writes the footprint of "out", which has no data on the last NPU: there lies a guest. */
TEST(what_a_kernel_destroys_is_told_behind_a_long_read, .to = 2)
{
	enum { NPUS = 64, NPU_BYTES = 512 << 10, READ = 9 << 20 };
	struct device_options options = {
		.geometry = {.n_npus = NPUS, .npu_bytes = NPU_BYTES, .n_banks = 8, .eu_bytes = 128},
		.uninitialized = NPUMEM_ALLOW,
		.allow_unchecked = true,
	};
	const Npumem__V1__Done *done;
	struct tensor *guest;
	struct list list;
	talk_again(&talk, &options);
	ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "big", NPUS, READ / NPUS), 0);
	place(&talk.session, "in", NPUS - 1, 128, 400 << 10);
	place(&talk.session, "out", NPUS - 1, 128, 401 << 10);
	guest = place(_i ? &talk.stranger : &talk.neighbour, "guest", 1, 16, (NPUS - 1) * NPU_BYTES + (401 << 10));
	guest->all_written = true;
	list_init(&list, 2);
	add_read(&list, 0, "big", 0, READ);
	add_relu(&list, 0, "in", "out");
	ck_assert_int_eq(TALK(&talk, submit, SUBMIT, &list.request), 0);
	done = talk.response->submitted->done[1];
	ck_assert_uint_eq(done->n_destroyed, 1);
	ck_assert_int_eq(done->destroyed[0]->npu, NPUS - 1);
	/* The handle of another user's tensor is not told. */
	ck_assert_uint_eq(done->destroyed[0]->handle, _i ? 0 : guest->handle);
	list_deinit(&list);
}
