/* Calls that wait, and an interrupt. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "tests/unit/client/lib/peer.h"

static struct npumem *waiting;

static void on_alarm(int number)
{
	(void)number;
	npumem_interrupt(waiting, true);
}

/* A fill that lasts, until it is taken back. */
static void *answer_late(void *context)
{
	const struct peer *peer = context;
	Npumem__V1__Request *fill = peer_request(peer), *cancel = peer_request(peer);
	Npumem__V1__Cancelled cancelled = NPUMEM__V1__CANCELLED__INIT;
	ck_assert_int_eq(fill->call_case, NPUMEM__V1__REQUEST__CALL_FILL);
	ck_assert_int_eq(cancel->call_case, NPUMEM__V1__REQUEST__CALL_CANCEL);
	ck_assert_uint_eq(cancel->cancel->request_id, fill->id);
	cancelled.found = true;
	PEER_ANSWER(peer, cancel->id, cancelled, CANCELLED, &cancelled);
	peer_refuse(peer, fill->id, NPUMEM_CANCELLED, "taken back");
	npumem__v1__request__free_unpacked(fill, NULL);
	npumem__v1__request__free_unpacked(cancel, NULL);
	return NULL;
}

TEST(an_interrupt_takes_back_what_a_call_waits_for)
{
	struct peer peer = peer_open();
	/* Again and again, as one may come just before the wait. */
	const struct itimerval every = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_handler = on_alarm};
	struct npumem_error error;
	pthread_t thread;
	sigset_t alarms;

	waiting = peer.npumem;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, answer_late, &peer), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	ck_assert_int_eq(npumem_fill(peer.npumem, 7, 1, &error), NPUMEM_CANCELLED);
	ck_assert_str_eq(error.message, "taken back");
	setitimer(ITIMER_REAL, &never, NULL);
	pthread_join(thread, NULL);
	/* It lasts: nothing is sent, until it is over. */
	ck_assert_int_eq(npumem_fill(peer.npumem, 7, 1, &error), NPUMEM_CANCELLED);
	ck_assert_str_eq(error.message, "interrupted");
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	npumem_interrupt(peer.npumem, false);
	peer_done(&peer, 3, 0);
	ck_assert_int_eq(npumem_fill(peer.npumem, 7, 1, &error), 0);
	peer_close(&peer);
}
