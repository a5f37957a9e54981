/* The envelope: ids, unknown calls, messages that are none, and host memory that runs out. */
#include "daemon/rpc/rpc.h"

#include "proto/decode.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/handlers/operations/operate.h"
#include "tests/unit/daemon/rpc/talk.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

TEST(every_call_of_the_wire_has_a_handler)
{
	const ProtobufCMessageDescriptor *request = &npumem__v1__request__descriptor;
	for (unsigned i = 0; i < request->n_fields; i++) {
		unsigned field = request->fields[i].id;
		uint8_t message[16] = {0x08, 1};
		size_t used = 2 + frame_header((size_t)field << 3 | 2, message + 2);
		if (request->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		message[used++] = 0; /* an empty submessage */
		ck_assert_msg(talk_bytes(&talk, &talk.session, message, used) != NPUMEM_UNIMPLEMENTED, "%s",
			      request->fields[i].name);
		ck_assert_uint_eq(talk.response->id, 1);
	}
}

TEST(an_unknown_call_is_told)
{
	static const uint8_t unknown[] = {0x08, 9, 0x9a, 0x06, 1, 7}, none[] = {0x08, 9};
	talk_fails(&talk, talk_bytes(&talk, &talk.session, unknown, sizeof(unknown)), NPUMEM_UNIMPLEMENTED, "99");
	ck_assert_uint_eq(talk.response->id, 9);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, none, sizeof(none)), NPUMEM_UNIMPLEMENTED);
}

TEST(unknown_fields_are_ignored)
{
	static const uint8_t message[] = {0x08, 9, 0x9a, 0x06, 1, 7, 0x1a, 4, 0x9a, 0x06, 1, 7};
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, message, sizeof(message)), 0);
	ck_assert_ptr_nonnull(talk.response->stat);
}

TEST(ids_and_what_is_left_of_them)
{
	static const uint8_t zero[] = {0x1a, 0}, cut[] = {0x08, 0xac, 0x02, 0x1a},
			     deep[] = {0x08, 5, 0x1a, 1, 0xff}, late[] = {0x1a, 3, 0x08},
			     long_id[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, zero, sizeof(zero)), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 0);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, NULL, 0), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 0);
	talk_says(&talk, "empty");
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, cut, sizeof(cut)), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 300);
	talk_says(&talk, "malformed");
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, deep, sizeof(deep)), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 5);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, late, sizeof(late)), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 0);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, long_id, sizeof(long_id)), NPUMEM_INVALID);
	ck_assert_uint_eq(talk.response->id, 0);
}

/* A submit that writes, fills, copies, runs and reads; `to` holds 1024 bytes. */
static size_t pack_submit(const char *name, uint8_t *to)
{
	Npumem__V1__Operation operations[4], *list[4];
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
	Npumem__V1__CopyRequest copy = NPUMEM__V1__COPY_REQUEST__INIT;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name);
	uint8_t data[32] = {1, 2, 3};
	write.tensor = fill.tensor = copy.destination = copy.source = read.tensor = &ref;
	write.data = (ProtobufCBinaryData){sizeof(data), data};
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	fill.integer = -3;
	for (unsigned i = 0; i < 4; i++) {
		npumem__v1__operation__init(&operations[i]);
		list[i] = &operations[i];
	}
	operations[0].kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
	operations[0].fill = &fill;
	operations[1].kind_case = NPUMEM__V1__OPERATION__KIND_WRITE;
	operations[1].write = &write;
	operations[2].kind_case = NPUMEM__V1__OPERATION__KIND_READ;
	operations[2].read = &read;
	operations[3].kind_case = NPUMEM__V1__OPERATION__KIND_COPY;
	operations[3].copy = &copy;
	Npumem__V1__SubmitRequest submit = {MESSAGE(submit_request), .n_operations = 3, .operations = list};
	Npumem__V1__Request request = {MESSAGE(request), .id = 3, .call_case = NPUMEM__V1__REQUEST__CALL_SUBMIT,
				       .submit = &submit};
	ck_assert_uint_le(npumem__v1__request__get_packed_size(&request), 1024);
	return npumem__v1__request__pack(&request, to);
}

static size_t pack_alloc(uint8_t *to)
{
	Npumem__V1__Allocation allocations[3], *list[3];
	struct talk_spec specs[3];
	char *names[] = {"first", "", "third"};
	for (unsigned i = 0; i < 3; i++) {
		npumem__v1__allocation__init(&allocations[i]);
		allocations[i].spec = talk_spec(&specs[i], 8, 16);
		allocations[i].name = names[i];
		list[i] = &allocations[i];
	}
	Npumem__V1__AllocRequest alloc = {MESSAGE(alloc_request), .n_tensors = 3, .tensors = list};
	Npumem__V1__Request request = {MESSAGE(request), .id = 4, .call_case = NPUMEM__V1__REQUEST__CALL_ALLOC,
				       .alloc = &alloc};
	ck_assert_uint_le(npumem__v1__request__get_packed_size(&request), 1024);
	return npumem__v1__request__pack(&request, to);
}

TEST(a_message_may_be_cut_anywhere)
{
	uint8_t message[1024];
	talk_tensor(&talk, "x");
	for (unsigned kind = 0; kind < 2; kind++) {
		size_t bytes = kind ? pack_alloc(message) : pack_submit("x", message);
		for (size_t cut = 0; cut < bytes; cut++) {
			/* Of its own size, so that reading past the end is seen. */
			uint8_t *copy = malloc(cut ? cut : 1);
			int64_t before = world_n_tensors(&talk.world);
			memcpy(copy, message, cut);
			ck_assert_int_ne(talk_bytes(&talk, &talk.session, copy, cut), 0);
			ck_assert_uint_eq(talk.response->id, cut >= 2 ? message[1] : 0);
			ck_assert_int_eq(world_n_tensors(&talk.world), before);
			free(copy);
		}
		ck_assert_int_eq(talk_bytes(&talk, &talk.session, message, bytes), 0);
	}
}

/* Most of it would be unpacked before anybody could refuse it. */
TEST(a_message_has_so_many_fields)
{
	uint8_t *message = malloc(2 * DECODE_FIELDS_MAX + 2);
	/* list, and the id again and again; the last id counts. */
	memcpy(message, "\x62", 2);
	for (size_t i = 1; i <= DECODE_FIELDS_MAX; i++)
		memcpy(message + 2 * i, "\x08\x05", 2);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, message, 2 * DECODE_FIELDS_MAX), 0);
	ck_assert_ptr_nonnull(talk.response->list);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, message, 2 * DECODE_FIELDS_MAX + 2),
			 NPUMEM_RESOURCE_EXHAUSTED);
	talk_says(&talk, "24578 bytes");
	talk_says(&talk, "12288 fields");
	ck_assert_ptr_null(talk.response->list);
	ck_assert_int_eq(talk_bytes(&talk, &talk.session, message, 4), 0);
	free(message);
}

TEST(bytes_may_be_anything)
{
	uint8_t original[1024], message[1024];
	uint32_t random = 1;
	for (unsigned i = 0; i < 5000; i++) {
		size_t bytes = i & 1 ? pack_alloc(original) : pack_submit("first", original);
		unsigned n = 1 + i % 4;
		memcpy(message, original, bytes);
		while (n-- > 0) {
			random = random * 1664525 + 1013904223;
			message[(random >> 8) % bytes] = (uint8_t)(random >> 24);
		}
		talk_bytes(&talk, i % 3 ? &talk.session : &talk.stranger, message, bytes);
		if (i % 500 == 0) {
			Npumem__V1__CompactRequest compact = NPUMEM__V1__COMPACT_REQUEST__INIT;
			world_check(&talk.world);
			TALK(&talk, compact, COMPACT, &compact);
			world_check(&talk.world);
		}
	}
}

/* Each allocation of host memory fails once: refused and nothing changed, or done. */
static void starve(size_t (*pack)(uint8_t *), int64_t made)
{
	bool hit = true;
	for (size_t i = 1; hit; i++) {
		uint8_t message[1024];
		size_t bytes = pack(message);
		struct buffer out;
		int64_t before;
		bool has_list;
		int result;
		talk_again(&talk, NULL);
		talk_tensor(&talk, "x");
		for (unsigned n = 0; n < 50; n++)
			ck_assert_int_eq(talk_alloc_as(&talk, &talk.session, "", 8, 4), 0);
		before = world_n_tensors(&talk.world);
		/* Nothing is left over from earlier requests. */
		life_pool_deinit(talk.rpc);
		operate_pool_deinit(talk.rpc);
		buffer_init(&out, &talk.world.heap);
		talk.world.fail_at = talk.world.n_allocs + i;
		result = talk_handle(talk.rpc, &talk.session, message, bytes, &out);
		hit = talk.world.n_allocs >= talk.world.fail_at;
		if (!result) {
			size_t header, body;
			Npumem__V1__Response *response;
			ck_assert_int_eq(frame_parse(out.bytes, out.used, FRAME_BYTES_MAX, &header, &body),
					 FRAME_COMPLETE);
			response = npumem__v1__response__unpack(NULL, body, out.bytes + header);
			ck_assert_ptr_nonnull(response);
			if (!hit)
				ck_assert_int_eq((int)response->status, 0);
			result = (int)response->status;
			has_list = response->result_case == NPUMEM__V1__RESPONSE__RESULT_LIST;
			npumem__v1__response__free_unpacked(response, NULL);
			ck_assert(!result || result == NPUMEM_RESOURCE_EXHAUSTED);
			ck_assert(!result || !has_list);
		} else {
			ck_assert_uint_eq(out.used, 0);
		}
		ck_assert_int_eq(world_n_tensors(&talk.world), before + (result ? 0 : made));
		world_check(&talk.world);
		buffer_deinit(&out);
	}
}

static size_t pack_submit_x(uint8_t *to)
{
	return pack_submit("x", to);
}

TEST(host_memory_may_run_out_in_alloc)
{
	starve(pack_alloc, 3);
}

static size_t pack_list(uint8_t *to)
{
	static const uint8_t list[] = {0x08, 5, 0x62, 0};
	memcpy(to, list, sizeof(list));
	return sizeof(list);
}

TEST(host_memory_may_run_out_in_list)
{
	starve(pack_list, 0);
}

TEST(host_memory_may_run_out_in_submit)
{
	starve(pack_submit_x, 0);
}

TEST(an_ordinary_request_takes_no_host_memory)
{
	size_t before;
	for (unsigned i = 0; i < 3; i++) {
		Npumem__V1__Ref ref = talk_ref(talk_tensor(&talk, "x"), ""), *list = &ref;
		Npumem__V1__FreeRequest request = {MESSAGE(free_request), .n_tensors = 1, .tensors = &list};
		ck_assert_int_eq(TALK(&talk, free, FREE, &request), 0);
		if (i == 0)
			before = talk.world.n_allocs;
	}
	ck_assert_uint_eq(talk.world.n_allocs, before);
}
