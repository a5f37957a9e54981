/* Long messages, of megabytes of payload or of many fields: unpacked by a thread, as the loop would be kept for
 * milliseconds. Their job is not in the order of operations until then, as nobody knows what it will touch.
 * Nothing is received from its peer meanwhile, so that what a client sends takes effect in the order sent. */
#include "daemon/rpc/job.h"
#include "daemon/rpc/touch.h"
#include "proto/fields.h"

enum { FIELDS_AT_ONCE = 1024 };

static void read_message(void *arg)
{
	struct job *job = arg;

	job->has_many_fields =
		!fields_within(&npumem__v1__request__descriptor, job->message, job->bytes, FIELDS_MAX);
	if (!job->has_many_fields)
		job_unpack(job);
}

static void refuse(struct job *job)
{
	uint64_t start_ns = job->call.start_ns;

	npumem_error_clear(&job->error);
	call_begin(&job->call, NULL, job->message, job->bytes);
	job->call.start_ns = start_ns;
	job->id = call_salvage_id(job->message, job->bytes);
	job_end(job, call_refuse_message(&job->call, job->bytes, &job->budget, job->has_many_fields));
}

static void go_on(struct job *job)
{
	uint64_t start_ns = job->call.start_ns;
	struct touch touch;
	int status;

	job->keeps_request = true;
	call_begin(&job->call, job->request, job->message, job->bytes);
	job->call.start_ns = start_ns;
	touch_request(job->call.session, job->request, &job->prepared, &touch);
	job->id = job->request->id;
	status = job_begin_read(job, &touch);
	if (status)
		job_end(job, status);
}

static void on_read(void *arg)
{
	struct job *job = arg;
	struct rpc_peer *peer = job->peer;
	struct rpc *rpc = job->rpc;

	peer->is_reading = false;
	if (peer->is_closing) {
		job_drop(job);
		return;
	}
	if (job->request)
		go_on(job);
	else
		refuse(job);
	peer->read(peer->ctx);
	rpc_settle(rpc);
}

static struct job *take(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes)
{
	struct job *job = job_take(rpc, peer, bytes);

	if (!job)
		return NULL;
	job->message = message;
	job->call.start_ns = rpc->now_ns ? rpc->now_ns() : 0;
	job->left_order = job->entry.started = true;
	job_enlist(job, bytes);
	peer->is_reading = true;
	if (job_submit_work(rpc, peer->session->uid, read_message, on_read, job))
		return job;
	peer->is_reading = false;
	job->message = NULL;
	job_drop(job);
	return NULL;
}

int rpc_receive_long(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes, struct buffer *out)
{
	int status;

	npumem_error_clear(&rpc->error);
	status = job_check_limits(rpc, peer, bytes);
	if (!status && take(rpc, peer, message, bytes))
		return 0;
	if (status)
		status = call_refuse(rpc, peer->session, NULL, message, bytes, out);
	else
		status = call_receive(rpc, peer, message, bytes, out);
	heap_free(rpc->heap, message);
	return status;
}

int rpc_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes, struct buffer *out)
{
	uint8_t *copy = NULL;

	/* By the field, not by the byte, as long as the payload is short. */
	if (rpc->executor.submit && peer->read &&
	    !fields_within(&npumem__v1__request__descriptor, message, bytes, FIELDS_AT_ONCE))
		copy = heap_alloc(rpc->heap, bytes);
	if (!copy)
		return call_receive(rpc, peer, message, bytes, out);
	memcpy(copy, message, bytes);
	return rpc_receive_long(rpc, peer, copy, bytes, out);
}
