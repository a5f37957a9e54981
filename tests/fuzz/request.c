/* Requests of several uids through dispatch: what they are told, what a refusal changes, what is left behind. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/play.h"
#include "tests/fuzz/scene.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct scene *scene = play_begin(bytes, n, NULL);

	play(scene, bytes, n);
	scene_free(scene);
	return 0;
}
