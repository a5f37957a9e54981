/* The daemon without a socket, of some uids with tensors that hold what nobody else may see. What is sent to it,
 * and what it answers, is watched: an answer to another's uid with such bytes is a finding, so is an answer that
 * is none, a second answer, and a refusal that changed something. */
#ifndef TESTS_FUZZ_SCENE_H
#define TESTS_FUZZ_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scene_peer {
	SCENE_OWNER, /* has what nobody may see */
	SCENE_OTHER, /* has tensors of its own, and may read one of the owner's */
	SCENE_OTHER_AGAIN,
	SCENE_STRANGER,
	SCENE_ADMIN,
	SCENE_PEERS,
};

struct daemon;
struct heap;
struct rpc;
struct scene;

/* `threads`: long operations wait for scene_step; then nothing can be said of a refusal alone. `heap`: may run dry
 * once the scene is there; who is not even refused for want of memory is another client by the next message. NULL:
 * never. */
struct scene *scene_new(bool threads, const struct heap *heap);
/* The same in a state (left.h), without threads; tensors are made where it is new. NULL: the heap has run dry, or
 * go_on says no. */
struct scene_state {
	const struct heap *heap;
	void *memory;
	bool (*go_on)(void *ctx, struct rpc *rpc);
	void *ctx;
	bool is_new;
};
struct scene *scene_new_in(const struct scene_state *state);
/* Ends all clients in this order, works off what is left, and checks that nothing is left behind. */
void scene_free(struct scene *scene);

/* With enough memory: an allocation, a write, a read and a free are done as ever. */
void scene_serve(struct scene *scene);
struct daemon *scene_daemon(struct scene *scene);
/* All clients leave, as in scene_free. */
void scene_close_all(struct scene *scene);

/* From now on also the owner and the admin do what they like: bytes that others see may be theirs to see. */
void scene_allow_all(struct scene *scene);
/* Nobody has a tensor any more: before anything is sent. */
void scene_clear(struct scene *scene);
void scene_send(struct scene *scene, enum scene_peer peer, const uint8_t *message, size_t bytes);
void scene_close(struct scene *scene, enum scene_peer peer);
/* One task of a thread, of those that there are: its work, or with its end. */
void scene_step(struct scene *scene, unsigned which, bool to_its_end);
void scene_wait(struct scene *scene, uint64_t ms);
/* Works off all tasks, and checks what must hold then. */
void scene_settle(struct scene *scene);

#endif
