/* The blocking calls, each against an answer that is already there; and all of them with every allocation failing.
 */
#include <pthread.h>

#include "tests/unit/client/lib/failing.h"
#include "tests/unit/client/lib/one_peer.h"

static void answer_info(uint64_t id, int64_t n_npus)
{
	Npumem__V1__Info info = {MESSAGE(info),
				 .version = (char *)(uintptr_t) "1.2\033[2J3",
				 .n_npus = n_npus,
				 .npu_bytes = 1024,
				 .n_banks = 4,
				 .eu_bytes = 128,
				 .rounding = NPUMEM__V1__ROUNDING__UP,
				 .uid = 77};
	PEER_ANSWER(&peer, id, info, INFO, &info);
}

TEST(info_is_checked)
{
	const struct npumem_info *info;
	answer_info(1, 4);
	ck_assert_int_eq(npumem_info(peer.npumem, &info, NULL), 0);
	ck_assert_int_eq(info->geometry.n_npus, 4);
	ck_assert_int_eq(info->rounding, NPUMEM_UP);
	ck_assert_uint_eq(info->uid, 77);
	ck_assert_str_eq(info->version, "1.2?[2J3"); /* nothing that a terminal obeys */
	/* A geometry that the formulas could not compute with. */
	struct npumem_error error;
	answer_info(2, 0);
	ck_assert_int_eq(npumem_info(peer.npumem, &info, &error), NPUMEM_UNAVAILABLE);
}

TEST(refusals_bring_their_fields)
{
	Npumem__V1__Field fields[2] = {NPUMEM__V1__FIELD__INIT, NPUMEM__V1__FIELD__INIT},
			  *list[] = {&fields[0], &fields[1]};
	struct npumem_error error;
	fields[0].key = (char *)(uintptr_t) "largest_n";
	fields[0].value_case = NPUMEM__V1__FIELD__VALUE_NUMBER;
	fields[0].number = 5;
	fields[1].key = (char *)(uintptr_t) "in_the_way";
	fields[1].value_case = NPUMEM__V1__FIELD__VALUE_TEXT;
	fields[1].text = (char *)(uintptr_t) "y";
	Npumem__V1__Response response = {MESSAGE(response),
					 .id = 1,
					 .status = NPUMEM__V1__STATUS__RESOURCE_EXHAUSTED,
					 .message = (char *)(uintptr_t) "full",
					 .n_fields = 2,
					 .fields = list};
	peer_answer(&peer, &response);
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	memset(&error, 0xaa, sizeof(error));
	ck_assert_int_eq(npumem_alloc(peer.npumem, &allocation, 1, &tensor, &error), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(error.message, "full");
	ck_assert_int_eq(npumem_error_find(&error, "largest_n", 0), 5);
	ck_assert_uint_eq(error.n_fields, 2);
	ck_assert_str_eq(error.fields[1].text, "y");
	/* The connection is as good as before. */
	answer_info(2, 4);
	ck_assert_int_eq(npumem_info(peer.npumem, NULL, &error), 0);
	ck_assert_int_eq(error.status, 0);
}

static void allocations_init(struct npumem_allocation *allocations, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		allocations[i] = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
}

TEST(alloc_few_and_many)
{
	static const unsigned counts[] = {1, 8, 9, 100};
	const struct npumem_tensor *tensors[100];
	struct npumem_allocation allocations[100];
	uint64_t id = 0;
	allocations_init(allocations, 100);
	for (unsigned i = 0; i < 4; i++) {
		struct told told = {.times = 0};
		peer_allocated(&peer, ++id, counts[i]);
		ck_assert_int_eq(npumem_alloc(peer.npumem, allocations, counts[i], tensors, NULL), 0);
		ck_assert_uint_eq(tensors[counts[i] - 1]->handle, 99 + counts[i]);
		ck_assert_int_eq(tensors[0]->place.frac_bits, 5);
		ck_assert_int_eq(tensors[0]->place.address, NPUMEM_ANY);
		peer_allocated(&peer, ++id, counts[i]);
		ck_assert_int_eq(
			npumem_alloc_async(peer.npumem, allocations, counts[i], told_tensors, &told, NULL, NULL),
			0);
		ck_assert_int_eq(npumem_flush(peer.npumem, NULL), 0);
		ck_assert_uint_eq(told.n_tensors, counts[i]);
		ck_assert_uint_eq(told.handle, 100);
	}
	/* Fewer tensors than were asked for. */
	peer_allocated(&peer, ++id, 2);
	ck_assert_int_eq(npumem_alloc(peer.npumem, allocations, 3, tensors, NULL), NPUMEM_UNAVAILABLE);
	for (unsigned n = 3; n <= 30; n += 27) {
		struct told told = {.times = 0};
		peer_again();
		peer_allocated(&peer, 1, 2);
		ck_assert_int_eq(npumem_alloc_async(peer.npumem, allocations, n, told_tensors, &told, NULL, NULL),
				 0);
		ck_assert_int_eq(npumem_flush(peer.npumem, NULL), NPUMEM_UNAVAILABLE);
		ck_assert_int_eq(told.times, 1);
		ck_assert_int_eq(told.status, NPUMEM_UNAVAILABLE);
	}
}

TEST(places_that_cannot_be)
{
	for (unsigned what = 0; what < 12; what++) {
		peer_again();
		struct peer_tensor tensor;
		const struct npumem_tensor *got;
		peer_tensor_init(&tensor, 1);
		int64_t *const values[] = {&tensor.shape.n,
					   &tensor.shape.c,
					   &tensor.shape.w,
					   &tensor.stride.w,
					   &tensor.place.frac_bits,
					   &tensor.place.last_w,
					   &tensor.place.start_npu,
					   &tensor.place.channels_per_npu,
					   &tensor.place.bytes_per_npu};
		if (what < 9)
			*values[what] = what == 4 ? 128 : INT64_MAX / 2;
		else if (what == 9)
			tensor.place.dtype = (Npumem__V1__Dtype)99;
		else if (what == 10)
			tensor.place.shape = NULL;
		else
			tensor.shape.h = 0;
		Npumem__V1__Response response = {MESSAGE(response), .id = 1,
						 .result_case = NPUMEM__V1__RESPONSE__RESULT_TENSOR,
						 .tensor = &tensor.message};
		peer_answer(&peer, &response);
		ck_assert_int_eq(npumem_open_tensor(peer.npumem, "x", &got, NULL), NPUMEM_UNAVAILABLE);
	}
}

/* ---- whole tensors in chunks ---- */

struct store {
	struct peer *peer;
	uint8_t *bytes; /* the tensor, as the daemon has it */
	size_t element, largest;
	unsigned frames, refuse_from; /* the first frame to refuse, counted from 1; 0: none */
};

static void store_serve(struct store *store, const Npumem__V1__Request *request)
{
	Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	size_t bytes;
	if (request->call_case == NPUMEM__V1__REQUEST__CALL_WRITE) {
		bytes = request->write->data.len;
		memcpy(store->bytes + (size_t)request->write->first * store->element, request->write->data.data,
		       bytes);
	} else {
		bytes = (size_t)request->read->count * store->element;
		done.data.data = store->bytes + (size_t)request->read->first * store->element;
		done.data.len = bytes;
	}
	store->largest = bytes > store->largest ? bytes : store->largest;
	response.id = request->id;
	if (++store->frames >= store->refuse_from && store->refuse_from) {
		bool first = store->frames == store->refuse_from;
		peer_refuse(store->peer, request->id, NPUMEM_FAILED_PRECONDITION, first ? "sealed" : "later");
		return;
	}
	response.result_case = NPUMEM__V1__RESPONSE__RESULT_DONE;
	response.done = &done;
	peer_answer(store->peer, &response);
}

/* Serves until the connection closes. */
static void *store_thread(void *context)
{
	struct store *store = context;
	char byte;
	while (recv(store->peer->fd, &byte, 1, MSG_PEEK) == 1) {
		Npumem__V1__Request *request = peer_request(store->peer);
		store_serve(store, request);
		npumem__v1__request__free_unpacked(request, NULL);
	}
	return NULL;
}

TEST(a_large_tensor_in_chunks, .is_slow = true)
{
	struct npumem_tensor tensor = {.handle = 1};
	const size_t n = 9 * 1000 * 1001, bytes = 4 * n;
	struct store store = {.peer = &peer, .bytes = calloc(1, bytes), .element = 4};
	uint32_t *to = malloc(bytes), *from = malloc(bytes);
	pthread_t thread;
	struct npumem_error error;
	ck_assert(store.bytes && to && from);
	for (size_t i = 0; i < n; i++)
		to[i] = (uint32_t)i * 2654435761u;
	tensor.place = (struct npumem_place){
		.dtype = NPUMEM_INT32, .layout = NPUMEM_ALIGNED, .shape = {9, 1000, 1, 1001}, .last_w = 1001};
	ck_assert_int_eq(pthread_create(&thread, NULL, store_thread, &store), 0);
	ck_assert_int_eq(npumem_write(peer.npumem, &tensor, to, bytes, NULL), 0);
	ck_assert_int_eq(memcmp(store.bytes, to, bytes), 0);
	ck_assert_int_eq(npumem_read(peer.npumem, &tensor, from, bytes, NULL, NULL), 0);
	ck_assert_int_eq(memcmp(from, to, bytes), 0);
	ck_assert_uint_gt(store.frames, 8);
	ck_assert_uint_le(store.largest, 8 << 20);
	/* The first refusal is what is told, and nothing stays in flight. */
	store.refuse_from = store.frames + 7;
	ck_assert_int_eq(npumem_write(peer.npumem, &tensor, to, bytes, &error), NPUMEM_FAILED_PRECONDITION);
	ck_assert_str_eq(error.message, "sealed");
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	ck_assert_int_eq(npumem_write(peer.npumem, &tensor, to, bytes - 1, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "an array of 36035999 bytes for a tensor of 36036000");
	/* Behind what was still in flight of the refused one. */
	store.refuse_from = 0;
	ck_assert_int_eq(npumem_read_part(peer.npumem, 1, 7, 1, from, 4, NULL, NULL), 0);
	ck_assert_mem_eq(from, to + 7, 4);
	npumem_close(peer.npumem);
	pthread_join(thread, NULL);
	peer.npumem = NULL;
	free(store.bytes);
	free(to);
	free(from);
}

TEST(a_short_answer_to_a_read)
{
	struct npumem_tensor tensor = {.handle = 1};
	uint8_t data[24];
	tensor.place = (struct npumem_place){.dtype = NPUMEM_INT8, .shape = {1, 2, 3, 4}, .last_w = 4};
	struct npumem_error error;
	peer_done(&peer, 1, 0);
	ck_assert_int_eq(npumem_read(peer.npumem, &tensor, data, sizeof(data), NULL, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "0 bytes came for an array of 24");
}

/* ---- submit ---- */

TEST(submit_tells_what_ran)
{
	Npumem__V1__Done first = NPUMEM__V1__DONE__INIT, second = NPUMEM__V1__DONE__INIT,
			 *list[] = {&first, &second};
	struct npumem_operand in = {"in", 5};
	uint8_t data[4] = {0}, read[] = {1, 2, 3, 4};
	struct npumem_operation operations[] = {
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_RUN,
		 .kernel = "conv2d",
		 .operands = &in,
		 .n_operands = 1},
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_READ,
		 .handle = 1,
		 .data = data,
		 .bytes = 4},
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_FILL,
		 .handle = 2,
		 .value = -3,
		 .group = 1},
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_COPY,
		 .handle = 2,
		 .source = 3,
		 .group = 1},
	};
	const struct npumem_submitted *ran;
	struct npumem_error error;
	first.macs = 9;
	second.data.data = read;
	second.data.len = 4;
	Npumem__V1__Submitted submitted = {MESSAGE(submitted), .n_done = 2, .done = list};
	Npumem__V1__Response response = {MESSAGE(response),
					 .id = 1,
					 .status = NPUMEM__V1__STATUS__ABORTED,
					 .message = (char *)(uintptr_t) "they conflict",
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_SUBMITTED,
					 .submitted = &submitted};
	peer_answer(&peer, &response);
	ck_assert_int_eq(npumem_submit(peer.npumem, operations, 4, &ran, &error), NPUMEM_ABORTED);
	ck_assert_uint_eq(ran->n_ran, 2);
	ck_assert_int_eq(ran->done[0]->macs, 9);
	ck_assert_uint_eq(ran->done[1]->operation, 1);
	ck_assert_int_eq(data[3], 4);
	Npumem__V1__Request *request = peer_request(&peer);
	ck_assert_uint_eq(request->submit->n_operations, 4);
	ck_assert_int_eq(request->submit->operations[0]->run->operands[0]->tensor->handle, 5);
	ck_assert_int_eq(request->submit->operations[2]->fill->integer, -3);
	ck_assert_uint_eq(request->submit->operations[3]->group, 1);
	ck_assert_uint_eq(request->submit->operations[3]->copy->source->handle, 3);
	npumem__v1__request__free_unpacked(request, NULL);
	operations[1].kind = 0;
	ck_assert_int_eq(npumem_submit(peer.npumem, operations, 4, NULL, &error), NPUMEM_INVALID);
}

/* Of a group one queue may end early: those that ran are not the first of the list. */
TEST(submit_with_a_gap)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT, *list[] = {&done};
	uint8_t data[4] = {0}, read[] = {1, 2, 3, 4};
	struct npumem_operation operations[] = {
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_FILL,
		 .group = 1,
		 .is_real = true,
		 .real = 1.5},
		{.size = sizeof(struct npumem_operation),
		 .kind = NPUMEM_OP_READ,
		 .group = 1,
		 .data = data,
		 .bytes = 4},
	};
	const struct npumem_submitted *ran;
	struct npumem_error error;
	done.start_ns = 5;
	done.end_ns = 8;
	done.operation = 1;
	done.data.data = read;
	done.data.len = 4;
	Npumem__V1__Submitted submitted = {MESSAGE(submitted), .n_done = 1, .done = list};
	Npumem__V1__Response response = {MESSAGE(response), .id = 1, .status = NPUMEM__V1__STATUS__ABORTED,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_SUBMITTED,
					 .submitted = &submitted};
	peer_answer(&peer, &response);
	ck_assert_int_eq(npumem_submit(peer.npumem, operations, 2, &ran, &error), NPUMEM_ABORTED);
	ck_assert_uint_eq(ran->n_ran, 1);
	ck_assert_uint_eq(ran->done[0]->operation, 1);
	ck_assert_uint_eq(ran->done[0]->start_ns, 5);
	ck_assert_uint_eq(ran->done[0]->end_ns, 8);
	ck_assert_int_eq(data[3], 4);
	Npumem__V1__Request *request = peer_request(&peer);
	ck_assert_int_eq(request->submit->operations[0]->fill->value_case, NPUMEM__V1__FILL_REQUEST__VALUE_REAL);
	ck_assert(request->submit->operations[0]->fill->real == 1.5);
	npumem__v1__request__free_unpacked(request, NULL);

	/* A place that the list does not have ends the connection. */
	done.operation = 2;
	response.id = 2;
	peer_answer(&peer, &response);
	ck_assert_int_eq(npumem_submit(peer.npumem, operations, 2, &ran, &error), NPUMEM_ABORTED);
	ck_assert_int_eq(npumem_fill(peer.npumem, 1, 1, &error), NPUMEM_UNAVAILABLE);
}

/* ---- every allocation failing ---- */

/* A page of n <= 4 tensors from `handle` on. */
static void answer_page(uint64_t id, uint64_t handle, unsigned n, uint64_t next)
{
	struct peer_tensor tensors[4];
	Npumem__V1__Tensor *pointers[4];
	for (unsigned i = 0; i < n; i++) {
		peer_tensor_init(&tensors[i], handle + i);
		pointers[i] = &tensors[i].message;
	}
	Npumem__V1__List list = {MESSAGE(list), .n_tensors = n, .tensors = pointers, .next = next};
	PEER_ANSWER(&peer, id, list, LIST, &list);
}

/* Answers so many requests for pages, one by one, while the client waits for each. */
struct book {
	pthread_t thread;
	unsigned n_pages, n_asked;
	struct page {
		uint64_t handle, next;
		unsigned n;
		int status;
	} pages[4];
	uint64_t after[4]; /* as asked */
};

static void book_answer(struct book *book, const Npumem__V1__Request *request)
{
	const struct page *page = &book->pages[book->n_asked];
	book->after[book->n_asked++] = request->list->after;
	if (page->status)
		peer_refuse(&peer, request->id, page->status, "not now");
	else
		answer_page(request->id, page->handle, page->n, page->next);
}

static void *book_serve(void *argument)
{
	struct book *book = argument;
	char byte;
	while (book->n_asked < book->n_pages && recv(peer.fd, &byte, 1, MSG_PEEK) == 1) {
		Npumem__V1__Request *request = peer_request(&peer);
		/* Others are left over from what was answered before it was asked. */
		if (request->call_case == NPUMEM__V1__REQUEST__CALL_LIST)
			book_answer(book, request);
		npumem__v1__request__free_unpacked(request, NULL);
	}
	return NULL;
}

/* npumem_list, answered from a book. */
static int list_from(struct book *book, const struct npumem_tensors **tensors, struct npumem_error *error)
{
	ck_assert_int_eq(pthread_create(&book->thread, NULL, book_serve, book), 0);
	int status = npumem_list(peer.npumem, tensors, error);
	/* Where the client went no further, nobody will ask for the rest. */
	if (status)
		shutdown(peer.fd, SHUT_RD);
	ck_assert_int_eq(pthread_join(book->thread, NULL), 0);
	return status;
}

TEST(a_list_is_all_of_its_pages)
{
	struct book book = {.n_pages = 4, .pages = {{10, 7, 2, 0}, {0, 9, 0, 0}, {12, 20, 1, 0}, {13, 0, 4, 0}}};
	struct book empty = {.n_pages = 1};
	const struct npumem_tensors *tensors;
	ck_assert_int_eq(list_from(&book, &tensors, NULL), 0);
	ck_assert_uint_eq(tensors->n, 7);
	for (unsigned i = 0; i < 7; i++)
		ck_assert_uint_eq(tensors->list[i]->handle, 10 + i);
	npumem_release(tensors);
	ck_assert_uint_eq(book.n_asked, 4);
	ck_assert(!book.after[0] && book.after[1] == 7 && book.after[2] == 9 && book.after[3] == 20);
	ck_assert_int_eq(list_from(&empty, &tensors, NULL), 0);
	ck_assert(tensors->n == 0 && empty.n_asked == 1);
}

static void list_fails(struct book book, int status, unsigned n_asked)
{
	peer_again();
	const struct npumem_tensors *tensors;
	struct npumem_error error;
	ck_assert_int_eq(list_from(&book, &tensors, &error), status);
	ck_assert_int_eq(error.status, status);
	ck_assert_uint_eq(book.n_asked, n_asked);
	ck_assert_ptr_null(tensors);
}

TEST(a_list_that_is_cut_short)
{
	struct book refused = {.n_pages = 3, .pages = {{10, 7, 2, 0}, {.status = NPUMEM_RESOURCE_EXHAUSTED}}};
	struct book endless = {.n_pages = 3, .pages = {{10, 7, 2, 0}, {12, 7, 2, 0}, {14, 0, 2, 0}}};
	struct book backwards = {.n_pages = 3, .pages = {{10, 7, 2, 0}, {12, 6, 2, 0}, {14, 0, 2, 0}}};
	list_fails(refused, NPUMEM_RESOURCE_EXHAUSTED, 2);
	list_fails(endless, NPUMEM_UNAVAILABLE, 2);
	list_fails(backwards, NPUMEM_UNAVAILABLE, 2);
}

static void answer_compacted(uint64_t id)
{
	Npumem__V1__Move move = NPUMEM__V1__MOVE__INIT, *moves[] = {&move};
	Npumem__V1__Compacted compacted = {MESSAGE(compacted), .n_moves = 1, .moves = moves};
	PEER_ANSWER(&peer, id, compacted, COMPACTED, &compacted);
}

static void answer_submitted(uint64_t id)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT, *list[] = {&done};
	Npumem__V1__Submitted submitted = {MESSAGE(submitted), .n_done = 1, .done = list};
	PEER_ANSWER(&peer, id, submitted, SUBMITTED, &submitted);
}

/* A write and a read that are not copied; ids 7 and 8. */
static int arrays_both_ways(void)
{
	static uint8_t data[8192];
	peer_done(&peer, 7, 0);
	int status = npumem_write_part(peer.npumem, 1, 0, data, sizeof(data), NULL);
	if (status)
		return status;
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	done.data = (ProtobufCBinaryData){sizeof(data), data};
	PEER_ANSWER(&peer, 8, done, DONE, &done);
	return npumem_read_part(peer.npumem, 1, 0, sizeof(data), data, sizeof(data), NULL, NULL);
}

/* One of everything that takes memory; stops at the first that fails, and returns its status. */
static int everything(void)
{
	struct npumem_allocation allocations[20];
	struct npumem_operation operation = {
		.size = sizeof(struct npumem_operation), .kind = NPUMEM_OP_FILL, .handle = 1};
	const struct npumem_tensor *tensors[20];
	const struct npumem_tensors *listed = NULL;
	const struct npumem_compacted *compacted = NULL;
	struct told told = {.times = 0};
	struct book book = {.n_pages = 2, .pages = {{1, 1, 1, 0}, {2, 0, 4, 0}}};
	allocations_init(allocations, 20);
	peer_allocated(&peer, 1, 20);
	int status = npumem_alloc(peer.npumem, allocations, 20, tensors, NULL);
	if (status)
		return status;
	peer_allocated(&peer, 2, 20);
	status = npumem_alloc_async(peer.npumem, allocations, 20, told_tensors, &told, NULL, NULL);
	bool sent = !status;
	if (sent)
		status = npumem_flush(peer.npumem, NULL);
	ck_assert_int_eq(told.times, sent);
	if (status || told.status)
		return status ? status : told.status;
	status = list_from(&book, &listed, NULL);
	ck_assert_int_eq(status == 0, listed != NULL);
	if (status)
		return status;
	answer_compacted(5);
	status = npumem_compact(peer.npumem, true, &compacted, NULL);
	ck_assert_int_eq(status == 0, compacted != NULL);
	if (status)
		return status;
	answer_submitted(6);
	status = npumem_submit(peer.npumem, &operation, 1, NULL, NULL);
	return status ? status : arrays_both_ways();
}

TEST(every_allocation_may_fail)
{
	int status = NPUMEM_UNAVAILABLE;
	for (unsigned i = 1; status; i++) {
		struct failing failing = {.fail_at = i};
		const struct memory memory = {failing_resize, &failing};
		peer_close(&peer);
		peer = peer_open_with(&memory);
		if (peer.npumem)
			status = everything();
		ck_assert(!status || status == NPUMEM_RESOURCE_EXHAUSTED || status == NPUMEM_UNAVAILABLE);
		peer_close(&peer);
		ck_assert_int_eq(failing.live, 0);
		ck_assert_uint_lt(i, 1000);
		ck_assert(status || failing.calls < i);
	}
}
