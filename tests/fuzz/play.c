/* One thing after the other, until the bytes end. */
#include "tests/fuzz/play.h"

#include "tests/fuzz/request.h"
#include "tests/fuzz/scene.h"

static enum scene_peer some_peer(unsigned which, bool all)
{
	static const enum scene_peer others[] = {SCENE_OTHER, SCENE_OTHER_AGAIN, SCENE_STRANGER};

	return all ? (enum scene_peer)(which % SCENE_PEERS) : others[which % 3];
}

static void happen(struct scene *scene, struct fuzz_bytes *input, bool all)
{
	uint8_t byte = fuzz_byte(input);
	unsigned which = byte >> REQUEST_WHO_SHIFT;
	size_t n;

	switch (byte & 15) {
	case REQUEST_WORK:
	case REQUEST_DONE:
		scene_step(scene, which, (byte & 15) == REQUEST_DONE);
		break;
	case REQUEST_SETTLE:
		scene_settle(scene);
		break;
	case REQUEST_WAIT:
		scene_wait(scene, (uint64_t)which * which * which);
		break;
	case REQUEST_CLOSE:
		scene_close(scene, some_peer(which, all));
		break;
	default:
		n = request_length(input);
		scene_send(scene, some_peer(which, all), input->at, n);
		input->at += n;
		break;
	}
}

struct scene *play_begin(const uint8_t *bytes, size_t n, const struct heap *heap)
{
	struct scene *scene = scene_new(n && bytes[0] & REQUEST_THREADS, heap);

	if (n && bytes[0] & REQUEST_ALL)
		scene_allow_all(scene);
	if (n && bytes[0] & REQUEST_EMPTY)
		scene_clear(scene);
	return scene;
}

void play(struct scene *scene, const uint8_t *bytes, size_t n)
{
	struct fuzz_bytes input = {bytes, bytes + n};
	bool all = fuzz_byte(&input) & REQUEST_ALL;

	for (unsigned i = 0; i < REQUEST_MESSAGES_MAX && fuzz_left(&input); i++)
		happen(scene, &input, all);
}
