/* Long messages: read elsewhere, in their place, and every end of a client meanwhile. A message need not be long
 * for that here. */
#include "tests/unit/daemon/rpc/crowd.h"

#include "proto/fields.h"

static void on_read(void *ctx)
{
	struct peer *peer = ctx;

	ck_assert(!peer->rpc.is_reading);
}

static void start(struct crowd *crowd)
{
	crowd_init(crowd);
	for (unsigned i = 0; i < PEERS; i++)
		crowd->peers[i].rpc.read = on_read;
	crowd_alloc(crowd, 0, "A", LONG_W);
	crowd_alloc(crowd, 0, "s", SHORT_W);
	crowd_fill(crowd, 0, "A", 0);
	crowd_finish_all(crowd);
}

static void receive(struct crowd *crowd, unsigned from, const uint8_t *bytes, size_t n)
{
	struct peer *peer = &crowd->peers[from];
	struct world *world = &crowd->world;
	uint8_t *message = malloc(n);
	struct buffer out;

	memcpy(message, bytes, n);
	world->n_alive++; /* as if it had come from the heap */
	buffer_init(&out, &world->heap);
	if (rpc_receive_long(crowd->rpc, &peer->rpc, message, n, &out))
		peer->is_broken = true;
	crowd_take(peer, &out);
	buffer_deinit(&out);
}

/* Fills a whole tensor of w elements per NPU. */
static uint64_t write_long(struct crowd *crowd, unsigned from, const char *name, int64_t w, uint8_t value)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, name);
	uint8_t *packed;
	size_t n;

	write.tensor = &ref;
	write.data.len = (size_t)(8 * w);
	write.data.data = malloc(write.data.len);
	memset(write.data.data, value, write.data.len);
	request.id = ++crowd->last_id;
	request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	request.write = &write;
	n = npumem__v1__request__get_packed_size(&request);
	packed = malloc(n);
	npumem__v1__request__pack(&request, packed);
	receive(crowd, from, packed, n);
	free(packed);
	free(write.data.data);
	return request.id;
}

START_TEST(it_is_read_elsewhere_and_then_takes_its_turn)
{
	struct crowd crowd;
	uint64_t fill, write, short_write, read;

	start(&crowd);
	fill = crowd_fill(&crowd, 1, "A", 5);
	write = write_long(&crowd, 0, "A", LONG_W, 7);
	ck_assert(crowd.peers[0].rpc.is_reading);
	ck_assert_uint_eq(crowd.n_tasks, 2);
	ck_assert_uint_gt(crowd.peers[0].rpc.job_bytes, 8 * LONG_W);
	crowd_finish(&crowd, 1);
	ck_assert(!crowd.peers[0].rpc.is_reading);
	/* Behind the fill; and a read behind it. */
	read = crowd_read(&crowd, 0, "A");
	ck_assert_uint_eq(crowd.n_tasks, 1);
	crowd_finish(&crowd, 0);
	ck_assert_int_eq(crowd_status(&crowd, 1, fill), 0);
	ck_assert_int_eq(crowd_status(&crowd, 0, write), -1);
	crowd_finish_all(&crowd);
	ck_assert_int_eq(crowd_status(&crowd, 0, write), 0);
	ck_assert_int_eq(crowd_value(&crowd, 0, read), 7);
	/* What is quickly done is done where it was read. */
	short_write = write_long(&crowd, 0, "s", SHORT_W, 3);
	ck_assert_int_eq(crowd_status(&crowd, 0, short_write), -1);
	crowd_finish(&crowd, 0);
	ck_assert_int_eq(crowd_status(&crowd, 0, short_write), 0);
	ck_assert_uint_eq(crowd.peers[0].rpc.job_bytes, 0);
	crowd_deinit(&crowd);
}
END_TEST

/* Others may change what the tensors are while it waits. */
START_TEST(it_is_looked_at_again_when_tensors_changed)
{
	struct crowd crowd;
	uint64_t write, freed, alloc;

	start(&crowd);
	crowd_fill(&crowd, 1, "A", 5);
	freed = crowd_free(&crowd, 1, "A");
	alloc = crowd_alloc(&crowd, 1, "A", LONG_W);
	write = write_long(&crowd, 0, "A", LONG_W, 7);
	crowd_finish(&crowd, 1);
	crowd_finish_all(&crowd);
	ck_assert_int_eq(crowd_status(&crowd, 1, freed), 0);
	ck_assert_int_eq(crowd_status(&crowd, 1, alloc), 0);
	ck_assert(crowd_status(&crowd, 0, write) == 0 || crowd_status(&crowd, 0, write) == NPUMEM_NOT_FOUND);
	world_check(&crowd.world);
	crowd_deinit(&crowd);
}
END_TEST

START_TEST(what_is_no_request_is_refused_with_its_id)
{
	struct crowd crowd;
	uint8_t malformed[] = {0x08, 0x07, 0x0a, 0x50, 0x00}, *many = malloc(2 + 2 * (FIELDS_MAX + 1));

	start(&crowd);
	receive(&crowd, 1, malformed, sizeof(malformed));
	crowd_finish(&crowd, 0);
	ck_assert_int_eq(crowd_status(&crowd, 1, 7), NPUMEM_INVALID);
	many[0] = 0x08;
	many[1] = 0x09;
	for (size_t i = 1; i <= FIELDS_MAX + 1; i++) {
		many[2 * i] = 0x10;
		many[2 * i + 1] = 1;
	}
	receive(&crowd, 1, many, 2 + 2 * (FIELDS_MAX + 1));
	crowd_finish(&crowd, 0);
	ck_assert_int_eq(crowd_status(&crowd, 1, 9), NPUMEM_RESOURCE_EXHAUSTED);
	free(many);
	crowd_deinit(&crowd);
}
END_TEST

START_TEST(over_the_limit_it_is_refused_unread)
{
	struct crowd crowd;
	uint64_t write;

	start(&crowd);
	crowd.world.service.limits.ordinary.most[LIMITS_REQUEST_BYTES] = 1000;
	write = write_long(&crowd, 0, "A", LONG_W, 7);
	ck_assert_int_eq(crowd_status(&crowd, 0, write), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(crowd.n_tasks, 0);
	ck_assert(!crowd.peers[0].rpc.is_reading);
	crowd_deinit(&crowd);
}
END_TEST

START_TEST(its_client_may_go_meanwhile)
{
	for (unsigned steps = 0; steps < 3; steps++) {
		struct crowd crowd;

		start(&crowd);
		write_long(&crowd, 1, "A", LONG_W, 7);
		if (steps == 1)
			crowd_work(&crowd, 0);
		else if (steps == 2)
			crowd_finish(&crowd, 0);
		crowd_close(&crowd, 1);
		ck_assert_uint_eq(crowd.peers[1].n_drained, 0);
		crowd_finish_all(&crowd);
		ck_assert_uint_eq(crowd.peers[1].n_drained, 1);
		world_check(&crowd.world);
		crowd_deinit(&crowd);
	}
}
END_TEST

START_TEST(without_threads_it_is_read_at_once)
{
	struct crowd crowd;
	uint64_t write;

	start(&crowd);
	crowd.no_threads = true;
	write = write_long(&crowd, 0, "A", LONG_W, 7);
	ck_assert_int_eq(crowd_status(&crowd, 0, write), 0);
	ck_assert_int_eq(crowd_value(&crowd, 0, crowd_read(&crowd, 0, "A")), 7);
	crowd_deinit(&crowd);
}
END_TEST

START_TEST(host_memory_may_run_out_anywhere)
{
	bool hit = true;

	for (size_t i = 1; hit; i++) {
		struct crowd crowd;
		uint64_t write;
		int status;

		start(&crowd);
		crowd.world.fail_at = crowd.world.n_allocs + i;
		write = write_long(&crowd, 0, "A", LONG_W, 7);
		crowd_finish_all(&crowd);
		hit = crowd.world.n_allocs >= crowd.world.fail_at;
		crowd.world.fail_at = 0;
		status = crowd_status(&crowd, 0, write);
		ck_assert(status >= 0 || crowd.peers[0].is_broken);
		ck_assert(status < 1 || status == NPUMEM_RESOURCE_EXHAUSTED);
		ck_assert_int_eq(crowd_value(&crowd, 0, crowd_read(&crowd, 0, "A")), status == 0 ? 7 : 0);
		crowd_deinit(&crowd);
	}
}
END_TEST

Suite *suite_reading(void)
{
	Suite *suite = suite_create("rpc/reading");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, it_is_read_elsewhere_and_then_takes_its_turn);
	tcase_add_test(tcase, it_is_looked_at_again_when_tensors_changed);
	tcase_add_test(tcase, what_is_no_request_is_refused_with_its_id);
	tcase_add_test(tcase, over_the_limit_it_is_refused_unread);
	tcase_add_test(tcase, its_client_may_go_meanwhile);
	tcase_add_test(tcase, without_threads_it_is_read_at_once);
	tcase_add_test(tcase, host_memory_may_run_out_anywhere);
	suite_add_tcase(suite, tcase);
	return suite;
}
