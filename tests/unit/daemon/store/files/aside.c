/* A state that cannot be used is set aside whole, wherever the process dies or a call fails on the way. */
#include <errno.h>
#include <ftw.h>

#include "daemon/store/files/aside.h"
#include "tests/unit/daemon/store/state.h"

static struct {
	unsigned n, at; /* calls so far; from which on all fail, as of a process that died; 0: none */
} dying;

static int fail_call(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	dying.n++;
	return dying.at && dying.n >= dying.at ? EIO : 0;
}

static const struct store_hooks hooks = {.fail = fail_call};

struct found {
	unsigned n;
	char name[ASIDE_NAME_BYTES];
	struct aside_note note;
};

static void on_folder(void *ctx, const char *name, const struct aside_note *note)
{
	struct found *found = ctx;
	found->n++;
	snprintf(found->name, sizeof(found->name), "%s", name);
	found->note = *note;
}

static struct found find(void)
{
	struct found found = {0};
	int directory = open(state.directory, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(aside_each(directory, on_folder, &found), 0);
	close(directory);
	return found;
}

static int remove_one(const char *path, const struct stat *stat_of, int type, struct FTW *walk)
{
	(void)stat_of;
	(void)type;
	(void)walk;
	return remove(path);
}

static void remove_all(void)
{
	ck_assert_int_eq(nftw(state.directory, remove_one, 4, FTW_DEPTH | FTW_PHYS), 0);
}

static void other_geometry(bool is_other)
{
	state.options.geometry = is_other ? "5 NPUs" : "4 NPUs";
	state.options.geometry_text = is_other ? "five NPUs" : "four NPUs";
}

static void make_state(void)
{
	state_set_up();
	state_open();
	state_put(STORE_TENSORS, 1, "a tensor");
	strcpy(store_memory(state.store), "memory");
	state_close(true);
	other_geometry(true);
	state.options.aside_most = 2;
}

static void check_state(const char *directory)
{
	state.options.directory = directory;
	other_geometry(false);
	state_open();
	ck_assert(state_has(STORE_TENSORS, 1, "a tensor"));
	ck_assert_str_eq(store_memory(state.store), "memory");
	state_close(true);
	state.options.directory = state.directory;
}

TEST(it_is_whole_and_says_why)
{
	char folder[160];
	make_state();
	state_open();
	ck_assert(state.report.is_new);
	ck_assert_int_eq(state.report.aside_verdict, STORE_OTHER_GEOMETRY);
	ck_assert_ptr_nonnull(strstr(state.report.aside, "of four NPUs"));
	state_close(true);
	struct found found = find();
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.note.verdict, "other_geometry");
	ck_assert_ptr_nonnull(strstr(found.note.line, "of four NPUs"));
	ck_assert_uint_eq(strlen(found.note.time), 16);
	snprintf(folder, sizeof(folder), "%s/%s", state.directory, found.name);
	check_state(folder);
	remove_all();
}

/* Two within one second have two names. */
TEST(there_are_no_more_than_allowed)
{
	make_state();
	for (unsigned i = 0; i < 2; i++) {
		other_geometry(i == 0);
		state_open();
		ck_assert(state.report.is_new);
		state_close(true);
		ck_assert_uint_eq(find().n, i + 1);
	}
	other_geometry(true);
	state_refused(-EINVAL, "2 states are set aside in");
	ck_assert_int_eq(state.report.verdict, STORE_OTHER_GEOMETRY);
	other_geometry(false);
	state_open();
	ck_assert(!state.report.is_new);
	state_close(true);
	remove_all();
}

/* Dies at each call. The next process finds the old state in one place, and never a part of it. */
TEST(wherever_it_dies, .to = 2)
{
	unsigned n_kept = 0, n_moved = 0;
	bool is_other_again = _i;
	int status;
	for (dying.at = 1;; dying.at++) {
		char folder[160];
		make_state();
		state.options.hooks = &hooks;
		dying.n = 0;
		status = state_try();
		if (!status)
			state_close(false);
		state.store = NULL;
		state.options.hooks = NULL;
		/* The next one is of either geometry. */
		other_geometry(is_other_again);
		state_open();
		bool is_kept = !is_other_again && !state.report.is_new;
		if (is_kept) {
			ck_assert(state_has(STORE_TENSORS, 1, "a tensor"));
			ck_assert_str_eq(store_memory(state.store), "memory");
		}
		state_close(true);
		struct found found = find();
		if (!is_kept) {
			ck_assert_uint_ge(found.n, 1);
			ck_assert_uint_le(found.n, 2);
		}
		snprintf(folder, sizeof(folder), "%s/%s", state.directory, found.name);
		if (!is_kept && found.n == 1)
			check_state(folder);
		else
			ck_assert(is_kept ? found.n == 0 : true);
		n_kept += is_kept;
		n_moved += !is_kept;
		remove_all();
		if (!status)
			break;
	}
	ck_assert_uint_gt(dying.at, 20);
	ck_assert_uint_gt(n_moved, 5);
	ck_assert(is_other_again || n_kept > 5);
	dying.at = 0;
}
