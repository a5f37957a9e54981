/* Which snapshot a record begins with, and what of before there may be in one. */
#include "client/lib/record/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "proto/digest.h"
#include "tests/support/test.h"
#include "tests/unit/client/lib/records.h"

#define MANIFEST "sums of all parts"

struct scene {
	char directory[32], manifest[64];
	struct npumem_replay *replay;
	struct npumem_error error;
};

/* A record with two tensors of before, and a snapshot of that number. */
static void sample(struct records *records, uint64_t snapshot)
{
	uint64_t handles[] = {3, 4};
	uint32_t local[] = {5, 6};
	records_begin(records);
	Npumem__V1__RecordEntry entry = {MESSAGE(record_entry), .before = true, .n_handles = 2,
					 .handles = handles};
	records_add(records, &entry);
	records->snapshot = snapshot;
	records_end(records, 1, local, 2);
}

static int open_record(struct scene *scene, const struct records *records)
{
	char path[32];
	records_file(records, path);
	npumem_error_clear(&scene->error);
	int status = replay_new(&memory_libc, path, &scene->replay, &scene->error);
	unlink(path);
	return status;
}

static void write_manifest(const struct scene *scene, const char *text)
{
	FILE *out = fopen(scene->manifest, "w");
	ck_assert_ptr_nonnull(out);
	fputs(text, out);
	fclose(out);
}

static void scene_init(struct scene *scene)
{
	static struct records records;
	sample(&records, digest_bytes(digest_begin(), MANIFEST, strlen(MANIFEST)));
	strcpy(scene->directory, "/tmp/npumem-copy-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(scene->directory));
	snprintf(scene->manifest, sizeof(scene->manifest), "%s/" RECORD_MANIFEST, scene->directory);
	ck_assert_int_eq(open_record(scene, &records), 0);
}

static void scene_deinit(struct scene *scene)
{
	npumem_replay_close(scene->replay);
	remove(scene->manifest);
	ck_assert_int_eq(rmdir(scene->directory), 0);
}

static void refused(struct scene *scene, const char *why)
{
	npumem_error_clear(&scene->error);
	ck_assert_int_eq(npumem_replay_check_snapshot(scene->replay, scene->directory, &scene->error),
			 NPUMEM_INVALID);
	ck_assert_msg(strstr(scene->error.message, why), "%s", scene->error.message);
}

TEST(it_is_told_by_its_manifest)
{
	struct scene scene;
	char name[4200];
	scene_init(&scene);
	ck_assert(npumem_replay_has_snapshot(scene.replay));
	refused(&scene, "not a snapshot, or none any more");
	write_manifest(&scene, MANIFEST "!");
	refused(&scene, "another snapshot");
	write_manifest(&scene, "");
	refused(&scene, "another snapshot");
	write_manifest(&scene, MANIFEST);
	ck_assert_int_eq(npumem_replay_check_snapshot(scene.replay, scene.directory, &scene.error), 0);
	ck_assert_int_eq(unlink(scene.manifest), 0);
	ck_assert_int_eq(symlink("/etc/passwd", scene.manifest), 0);
	refused(&scene, scene.directory);
	ck_assert_int_eq(unlink(scene.manifest), 0);
	ck_assert_int_eq(mkfifo(scene.manifest, 0600), 0);
	refused(&scene, "not a file");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	ck_assert_int_eq(npumem_replay_check_snapshot(scene.replay, name, &scene.error), NPUMEM_INVALID);
	scene_deinit(&scene);
}

static int open_none(void *ctx, uint32_t uid, struct npumem **out, struct npumem_error *error)
{
	(void)ctx, (void)uid, (void)out, (void)error;
	ck_abort_msg("no daemon is asked");
}

TEST(without_one_tensors_of_before_are_for_a_report_alone)
{
	static struct records records;
	const struct npumem_replay_result *result;
	struct scene scene;
	sample(&records, 0);
	ck_assert_int_eq(open_record(&scene, &records), 0);
	ck_assert(!npumem_replay_has_snapshot(scene.replay));
	ck_assert_int_eq(npumem_replay_run(scene.replay, 0, open_none, NULL, &result, &scene.error),
			 NPUMEM_INVALID);
	ck_assert(strstr(scene.error.message, "for a report alone"));
	npumem_replay_close(scene.replay);
}

TEST(what_is_of_before_is_nothing_else)
{
	static struct records records;
	uint8_t bytes[] = {8, 1};
	Npumem__V1__Shared shared = NPUMEM__V1__SHARED__INIT;
	for (unsigned i = 0; i < 3; i++) {
		Npumem__V1__RecordEntry entry = NPUMEM__V1__RECORD_ENTRY__INIT;
		struct scene scene;
		entry.before = true;
		if (i == 0)
			entry.request = (ProtobufCBinaryData){sizeof(bytes), bytes};
		else if (i == 1)
			entry.shared = &shared;
		else
			entry.part = true;
		records_begin(&records);
		records_add(&records, &entry);
		records_end(&records, 1, NULL, 0);
		ck_assert_int_eq(open_record(&scene, &records), NPUMEM_INVALID);
		ck_assert_msg(strstr(scene.error.message, "of before"), "%s", scene.error.message);
	}
}
