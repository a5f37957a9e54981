/* Invariant: without a token nothing is kept; AWAY there is no socket, and the outbox is empty; in the table of
 * pending messages those without a kept message are of this connection alone, and end with it.
 * Sends nothing of the caller's before the daemon has said that the session goes on. */
#include "client/lib/connection/engine/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/addresses/address.h"
#include "client/lib/connection/clock.h"
#include "client/lib/messages/message.h"
#include "proto/convert.h"
#include "proto/methods.h"

enum {
	RESUME_WAIT_MOST_MS = 50,
	RESUME_FRUITLESS_MOST = 32, /* a request that ends each daemon that it comes to must not go on for ever */
	RESUME_SEGMENTS_LEAST = 8,
	RESUME_REMOTE_TIMES = 20, /* longer between two tries: each costs both hosts a login */
};

struct resume_segment {
	uint64_t id;
	int fd;
};

/* A list's KeepRequest, which is sent again as another request. */
struct kept_keep {
	uint64_t list;
	struct kept *kept;
	struct kept_keep *next;
};

/* ---- the token ---- */

static int ask(struct npumem *npumem)
{
	struct resume *resume = &npumem->resume;
	Npumem__V1__ResumeRequest request = NPUMEM__V1__RESUME_REQUEST__INIT;
	request.token = (ProtobufCBinaryData){resume->token_bytes, resume->token};
	/* What is between two hosts ends without either's end. */
	request.linger = address_is_remote(&npumem->remote);
	resume->asked = npumem->last_id + 1;
	return engine_ask(npumem, &MESSAGE_REQUEST(RESUME, resume, &request), -1, false);
}

void resume_part(struct npumem *npumem)
{
	Npumem__V1__ResumeRequest request = NPUMEM__V1__RESUME_REQUEST__INIT;
	if (npumem->resume.state != RESUME_READY || !address_is_remote(&npumem->remote) || npumem->no_more_writes)
		return;
	if (!engine_ask(npumem, &MESSAGE_REQUEST(RESUME, resume, &request), -1, false))
		engine_write(npumem);
}

void resume_ask(struct npumem *npumem, const struct address *address, uint64_t patience_ms)
{
	struct resume *resume = &npumem->resume;
	uint64_t most = INT64_MAX / 1000000;
	*resume = (struct resume){.state = RESUME_ASKED, .address = *address, .limit = CLOCK_NEVER, .lowest = 1};
	resume->patience_ns = (int64_t)(patience_ms < most ? patience_ms : most) * 1000000;
	resume->has_peer = peer_uid(npumem->fd, &resume->peer);
	if (ask(npumem))
		resume_forget(npumem);
}

static void drop_segment(struct resume *resume, unsigned i)
{
	close(resume->segments[i].fd);
	resume->segments[i] = resume->segments[--resume->n_segments];
}

static void drop_kept(struct npumem *npumem, struct pending *pending)
{
	if (pending->kept && pending->kept->copy)
		engine_let_go(npumem, pending->kept);
	kept_free(pending->kept, npumem->memory);
	pending->kept = NULL;
}

static void drop_list(struct npumem *npumem, uint64_t id)
{
	struct kept_keep **at = &npumem->resume.lists, *one;
	while (*at && (*at)->list != id)
		at = &(*at)->next;
	one = *at;
	if (!one)
		return;
	*at = one->next;
	kept_free(one->kept, npumem->memory);
	memory_free(npumem->memory, one);
}

void resume_forget(struct npumem *npumem)
{
	struct resume *resume = &npumem->resume;
	if (resume->state == RESUME_NEVER)
		return;
	for (uint64_t id = resume->lowest; id <= npumem->last_id; id++) {
		struct pending *pending = pending_find(&npumem->pending, id);
		if (pending)
			drop_kept(npumem, pending);
	}
	if (resume_is_away(resume))
		engine_break(npumem, "no memory in this process to go on with the session");
	kept_free(resume->subscribed, npumem->memory);
	while (resume->n_segments)
		drop_segment(resume, 0);
	memory_free(npumem->memory, resume->segments);
	while (resume->lists)
		drop_list(npumem, resume->lists->list);
	*resume = (struct resume){.state = RESUME_NEVER, .limit = CLOCK_NEVER};
}

uint64_t resume_below(struct npumem *npumem, Npumem__V1__Request__CallCase call)
{
	struct resume *resume = &npumem->resume;
	if (!resume_keeps(resume) || !methods_rows[methods_number(call)].keeps)
		return 0;
	while (resume->lowest <= npumem->last_id && !pending_find(&npumem->pending, resume->lowest))
		resume->lowest++;
	return resume->lowest;
}

/* ---- losing a connection ---- */

static void set_next_try(struct resume *resume)
{
	static const unsigned waits_ms[] = {1, 2, 5, 10, 20};
	unsigned n = resume->n_tries++;
	unsigned ms = n < sizeof(waits_ms) / sizeof(waits_ms[0]) ? waits_ms[n] : RESUME_WAIT_MOST_MS;
	if (address_is_remote(&resume->address))
		ms *= RESUME_REMOTE_TIMES;
	resume->next = clock_now() + ms * INT64_C(1000000);
}

static void set_limit(struct resume *resume)
{
	int64_t now = clock_now();
	if (resume->limit == CLOCK_NEVER && resume->patience_ns < CLOCK_NEVER - now)
		resume->limit = now + resume->patience_ns;
}

/* What was asked of this connection alone is asked anew of the next. */
static void drop_unkept(struct npumem *npumem)
{
	struct pending dropped;
	for (uint64_t id = npumem->resume.lowest; id <= npumem->last_id; id++) {
		const struct pending *pending = pending_find(&npumem->pending, id);
		if (pending && !pending->kept)
			pending_take(&npumem->pending, id, &dropped);
	}
}

bool resume_lost(struct npumem *npumem, const char *why)
{
	struct resume *resume = &npumem->resume;
	if (resume->state == RESUME_NEVER || resume->state == RESUME_ASKED ||
	    resume->n_fruitless >= RESUME_FRUITLESS_MOST)
		return false;
	snprintf(resume->why, sizeof(resume->why), "%s", why);
	set_limit(resume);
	if (resume->state == RESUME_READY) {
		resume->n_tries = 0;
		resume->n_fruitless++;
	}
	resume->state = RESUME_AWAY;
	set_next_try(resume);
	drop_unkept(npumem);
	engine_hang_up(npumem);
	return true;
}

bool resume_going(struct npumem *npumem, const struct pending *pending)
{
	struct resume *resume = &npumem->resume;
	if (resume->state != RESUME_READY || !(pending->kept || pending->is_again))
		return false;
	snprintf(resume->why, sizeof(resume->why), "the daemon is going down, and does not end");
	set_limit(resume);
	return true;
}

/* ---- finding another ---- */

int64_t resume_due(const struct resume *resume)
{
	return resume->state == RESUME_AWAY && resume->next < resume->limit ? resume->next : resume->limit;
}

/* True if the peer has the same uid as before, or is root, which may listen for any user. */
static bool is_peer(struct resume *resume, int fd)
{
	uid_t uid;
	if (!resume->has_peer)
		return true;
	if (peer_uid(fd, &uid) && (uid == resume->peer || !uid))
		return true;
	snprintf(resume->why, sizeof(resume->why), "who listens there is not uid %u", (unsigned)resume->peer);
	return false;
}

static int connect_again(struct npumem *npumem, int *fd)
{
	struct spawned spawned;
	if (!address_is_remote(&npumem->remote))
		return address_try(&npumem->resume.address, fd);
	int err = remote_start(&npumem->remote, true, &spawned, fd);
	if (err)
		return err;
	npumem->child = spawned.pid;
	npumem->child_log = spawned.log;
	return 0;
}

static void try_once(struct npumem *npumem)
{
	struct resume *resume = &npumem->resume;
	int fd, err = connect_again(npumem, &fd);
	if (!err && is_peer(resume, fd) && !engine_connected(npumem, fd)) {
		resume->state = RESUME_KNOCKS;
		if (ask(npumem))
			engine_break(npumem, "no memory in this process to go on with the session");
		return;
	}
	if (err)
		snprintf(resume->why, sizeof(resume->why), "%s", strerror(-err));
	else
		close(fd);
	set_next_try(resume);
}

void resume_turn(struct npumem *npumem)
{
	struct resume *resume = &npumem->resume;
	int64_t now;
	if (resume_due(resume) == CLOCK_NEVER)
		return;
	now = clock_now();
	if (now >= resume->limit)
		engine_break(npumem,
			     "the connection to the daemon ended, and no daemon at %s continues the session: %s",
			     address_is_remote(&resume->address) ? resume->address.host : resume->address.path,
			     resume->why);
	else if (resume->state == RESUME_AWAY && now >= resume->next)
		try_once(npumem);
}

/* ---- going on ---- */

static int share_again(struct npumem *npumem, const struct resume_segment *segment)
{
	Npumem__V1__ShareRequest share = NPUMEM__V1__SHARE_REQUEST__INIT;
	share.segment = segment->id;
	return engine_ask(npumem, &MESSAGE_REQUEST(SHARE, share, &share), segment->fd, true);
}

/* Segments and lists before what uses them, and all in the order that it was asked in. */
static int send_again(struct npumem *npumem)
{
	struct resume *resume = &npumem->resume;
	uint64_t last = npumem->last_id;
	int status = 0;
	for (unsigned i = 0; i < resume->n_segments && !status; i++)
		status = share_again(npumem, &resume->segments[i]);
	if (!status && resume->subscribed)
		status = engine_ask_kept(npumem, resume->subscribed);
	for (const struct kept_keep *one = resume->lists; one && !status; one = one->next)
		status = engine_ask_kept(npumem, one->kept);
	for (uint64_t id = resume->lowest; id <= last && !status; id++) {
		const struct pending *pending = pending_find(&npumem->pending, id);
		if (pending && pending->kept)
			status = engine_send_again(npumem, pending);
	}
	return status;
}

static bool take_token(struct resume *resume, const Npumem__V1__Resumed *resumed)
{
	int64_t seconds = (int64_t)resumed->resume_seconds * 1000000000;
	if (!resumed->token.len || resumed->token.len > sizeof(resume->token) || !seconds)
		return false;
	memcpy(resume->token, resumed->token.data, resumed->token.len);
	resume->token_bytes = resumed->token.len;
	/* The daemon's time does not include its start. A caller that knows how long a start takes sets resume_ms.
	 */
	if (!resume->patience_ns)
		resume->patience_ns = seconds;
	resume->state = RESUME_READY;
	resume->limit = CLOCK_NEVER;
	return true;
}

static void let_in(struct npumem *npumem, const Npumem__V1__Response *response)
{
	struct resume *resume = &npumem->resume;
	char why[NPUMEM_MESSAGE_BYTES / 4];
	convert_text_from(response->message, why, sizeof(why));
	if (response->status == NPUMEM__V1__STATUS__UNAVAILABLE) {
		/* It goes down again, or the session's last connection still ends. */
		resume_lost(npumem, why);
	} else if (response->status == NPUMEM__V1__STATUS__NOT_FOUND) {
		engine_break(npumem, "the daemon was restarted without this session");
	} else if (response->status) {
		engine_break(npumem, "the daemon does not go on with this session: %s", why);
	} else if (response->result_case != NPUMEM__V1__RESPONSE__RESULT_RESUMED ||
		   !take_token(resume, response->resumed)) {
		engine_break(npumem, "the daemon's answer to a token makes no sense");
	} else if (send_again(npumem)) {
		engine_break(npumem, "no memory in this process to send requests again");
	} else if (!npumem->n_requests) {
		resume->n_fruitless = 0;
	}
}

bool resume_takes(struct npumem *npumem, const Npumem__V1__Response *response)
{
	struct resume *resume = &npumem->resume;
	bool is_own = resume->asked && response->id == resume->asked;
	if (resume->state == RESUME_KNOCKS && !is_own) {
		engine_break(npumem, "the daemon answered request %llu before it went on with the session",
			     (unsigned long long)response->id);
		return true;
	}
	if (!is_own)
		return false;
	resume->asked = 0;
	if (resume->state == RESUME_KNOCKS)
		let_in(npumem, response);
	else if (response->status || response->result_case != NPUMEM__V1__RESPONSE__RESULT_RESUMED ||
		 !take_token(resume, response->resumed))
		resume_forget(npumem);
	return true;
}

/* ---- what a new daemon gets first ---- */

static void add_segment(struct npumem *npumem, uint64_t id, struct kept *kept)
{
	struct resume *resume = &npumem->resume;
	if (resume->n_segments == resume->room) {
		unsigned room = 2 * resume->room + RESUME_SEGMENTS_LEAST;
		struct resume_segment *more = memory_array(npumem->memory, room, sizeof(*more));
		if (!more) {
			resume_forget(npumem);
			return;
		}
		if (resume->n_segments)
			memcpy(more, resume->segments, resume->n_segments * sizeof(*more));
		memory_free(npumem->memory, resume->segments);
		resume->segments = more;
		resume->room = room;
	}
	resume->segments[resume->n_segments++] = (struct resume_segment){id, kept->fd};
	kept->fd = -1;
}

/* Takes its message over. */
static void add_list(struct npumem *npumem, uint64_t id, struct pending *pending)
{
	struct kept_keep *one = memory_alloc(npumem->memory, sizeof(*one));
	if (!one) {
		resume_forget(npumem);
		return;
	}
	*one = (struct kept_keep){id, pending->kept, npumem->resume.lists};
	npumem->resume.lists = one;
	pending->kept = NULL;
}

static void remove_segment(struct resume *resume, uint64_t id)
{
	for (unsigned i = 0; i < resume->n_segments; i++)
		if (resume->segments[i].id == id) {
			drop_segment(resume, i);
			return;
		}
}

void resume_settle(struct npumem *npumem, struct pending *pending, const Npumem__V1__Response *response)
{
	struct resume *resume = &npumem->resume;
	struct kept *kept = pending->kept;
	if (!kept)
		return;
	resume->n_fruitless = 0;
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_SHARED && kept->fd >= 0) {
		add_segment(npumem, response->shared->segment, kept);
	} else if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_UNSHARED) {
		remove_segment(resume, kept->gives_back);
	} else if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_KEPT) {
		add_list(npumem, response->kept->list, pending);
	} else if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_UNKEPT) {
		drop_list(npumem, kept->gives_back);
	} else if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED) {
		pending->kept = resume->subscribed;
		resume->subscribed = kept;
	}
	drop_kept(npumem, pending);
}

void resume_disown(struct npumem *npumem, struct pending *pending)
{
	if (!pending->kept)
		return;
	if (npumem->broken.status)
		drop_kept(npumem, pending);
	else if (kept_disown(pending->kept, npumem->memory))
		resume_forget(npumem);
}
