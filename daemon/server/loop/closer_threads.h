/* The threads of the closer: they run closes that may sleep, and signals end the sleeps. The loop's thread calls
 * all of these functions. */
#ifndef SERVER_CLOSER_THREADS_H
#define SERVER_CLOSER_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "daemon/service/limits.h"
#include "daemon/service/order/stops.h"

enum {
	CLOSER_THREADS_MAX = 64,
	CLOSER_MESSAGE_FDS = 253, /* that one message can carry: SCM_MAX_FD of the kernel */
};

/* The contents of a queue. The close of a received descriptor may never return. A file is mapped here, too: the
 * kernel may let that wait for its client. The close of a connection, served or turned away, returns when its
 * linger is ended. The end of a mapping may take long. */
enum closer_kind {
	CLOSER_RECEIVED,
	CLOSER_CONNECTIONS,
	CLOSER_TURNED_AWAY,
	CLOSER_MAPPINGS,
	CLOSER_MAPS,
	CLOSER_KINDS
};

struct closer_user;

/* A mapping of a client's memory, to be made (CLOSER_MAPS) or to be removed (CLOSER_MAPPINGS). */
struct closer_mapping {
	uint8_t *base;
	uint64_t bytes, done_bytes; /* that are mapped, or unmapped */
	struct closer_mapping *next;
	/* To be made, of a file: base is set, or status to -errno, and mapped(arg) is called on the loop. */
	int fd, status;
	bool writable;
	struct stops_price price;
	void (*mapped)(void *arg);
	void *arg;
};

struct closer_queue {
	struct closer_user *user;
	const struct limits_user *limits; /* of the user; NULL: nobody is charged */
	enum closer_kind kind;
	bool is_stuck;	       /* the close of a received descriptor does not return; the loop's */
	int first_fd, last_fd; /* linked by next_fd; -1: there are none */
	struct closer_mapping *mappings;
	bool is_running; /* a thread has taken something out of it */
	bool is_ready;	 /* in `ready` */
	/* Nothing is taken out of it: an unmap has stopped others, or its user still pays for one. */
	bool is_paused;
	/* Closed, and not settled by the loop yet. */
	unsigned n_closed;
	struct closer_mapping *done_mappings; /* mapped or unmapped */
	uint64_t price_ns;		      /* what its unmaps cost; it is paused since the last of them */
	bool is_done;			      /* in `done` */
	struct closer_queue *next_ready, *next_done;
};

struct closer_thread {
	struct closer_threads *threads;
	uv_thread_t id;
	clockid_t clock;	    /* its processor time */
	struct closer_queue *queue; /* the queue that it works on; NULL: none */
	uint64_t since_ns, since_cpu_ns;
	bool has_ended;
};

struct closer_threads {
	uv_async_t *closed; /* sent when there is something in `done` */
	uv_mutex_t lock;    /* of the members below, and of the queues */
	uv_sem_t work;	    /* as high as `ready` is long; higher: the end */
	uv_cond_t ended;    /* a thread has */
	struct closer_queue *ready, **ready_end, *done;
	unsigned n_unposted; /* of `work`: unlock posts them */
	int *next_fd;	     /* by descriptor: the next one in its queue */
	unsigned n;
	atomic_bool is_closing;
	struct closer_thread all[CLOSER_THREADS_MAX];
};

/* Zeroed to begin; no thread yet. 0 or -errno: no memory is held. */
int closer_threads_init(struct closer_threads *threads, const struct heap *heap, unsigned n_fds,
			uv_async_t *closed);
/* No thread may run. */
void closer_threads_deinit(struct closer_threads *threads, const struct heap *heap);
/* One thread more. 0 or -errno. */
int closer_threads_start(struct closer_threads *threads);
/* Waits up to 200 ms until all threads have ended; false: some have not. */
bool closer_threads_end(struct closer_threads *threads);

void closer_threads_add_fd(struct closer_threads *threads, struct closer_queue *queue, int fd);
void closer_threads_add_mapping(struct closer_threads *threads, struct closer_queue *queue,
				struct closer_mapping *mapping);
/* While a queue is paused, it does not become ready. A thread pauses a queue after an unmap that has a price; the
 * caller resumes it when the user has paid. */
void closer_threads_pause(struct closer_threads *threads, struct closer_queue *queue);
void closer_threads_resume(struct closer_threads *threads, struct closer_queue *queue);

struct closer_done {
	unsigned n_closed;
	struct closer_mapping *mappings; /* mapped or unmapped */
	uint64_t price_ns;
};

/* Takes a queue with finished closes, and these; NULL: there is none, or a thread has the lock. The caller settles
 * its charges. */
struct closer_queue *closer_threads_take_done(struct closer_threads *threads, struct closer_done *done);
/* Ends lingers, marks queues whose close does not return, and makes another thread if all are slow. */
void closer_threads_tick(struct closer_threads *threads);

#endif
