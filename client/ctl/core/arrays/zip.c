/* ZIP as far as NumPy writes it: one volume, no encryption, sizes below 4 GiB. Every offset and size of the file
 * is checked against what was read before it is used; a member's size is bounded before memory is taken for it. */
#include "client/ctl/core/arrays/stream.h"

#include <ctype.h>
#include <string.h>
#include <zlib.h>

#include "client/ctl/core/memory.h"

enum {
	ZIP_END_BYTES = 22,
	ZIP_ENTRY_BYTES = 46,
	ZIP_LOCAL_BYTES = 30,
	ZIP_COMMENT_MAX = 65535,
	ZIP_NAME_BYTES = 128,
	ZIP_NAMES_BYTES = 200,
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
};

struct zip_member {
	char name[ZIP_NAME_BYTES];
	unsigned flags, method;
	uint32_t packed_bytes, bytes, local_off;
};

const char *zip_path_end(const char *path)
{
	size_t length = strlen(path);
	const char *inside = strstr(path, ".npz:");
	if (inside)
		return inside + 4;
	return length > 4 && !strcmp(path + length - 4, ".npz") ? path + length : NULL;
}

static uint32_t word(const uint8_t *at, unsigned n)
{
	uint32_t value = 0;
	for (unsigned i = n; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static int damaged(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "not an .npz file, or a damaged one");
}

/* The end record, which a comment may follow: where the directory is, and its entries. */
static int find_directory(FILE *archive, long *off, unsigned *entries)
{
	static uint8_t tail[ZIP_END_BYTES + ZIP_COMMENT_MAX];
	if (fseek(archive, 0, SEEK_END))
		return NPUMEM_INVALID;
	long size = ftell(archive), bytes = size < (long)sizeof(tail) ? size : (long)sizeof(tail);
	if (bytes < ZIP_END_BYTES || fseek(archive, size - bytes, SEEK_SET) ||
	    fread(tail, 1, (size_t)bytes, archive) != (size_t)bytes)
		return NPUMEM_INVALID;
	for (long at = bytes - ZIP_END_BYTES; at >= 0; at--) {
		if (memcmp(tail + at, "PK\5\6", 4))
			continue;
		*entries = word(tail + at + 10, 2);
		*off = (long)word(tail + at + 16, 4);
		return 0;
	}
	return NPUMEM_INVALID;
}

/* The entry at the file's position, moved past it. */
static int read_member(FILE *archive, struct zip_member *member)
{
	uint8_t entry[ZIP_ENTRY_BYTES];
	if (fread(entry, 1, sizeof(entry), archive) != sizeof(entry) || memcmp(entry, "PK\1\2", 4))
		return NPUMEM_INVALID;
	size_t name = word(entry + 28, 2), kept = name < ZIP_NAME_BYTES ? name : ZIP_NAME_BYTES - 1;
	*member = (struct zip_member){.flags = word(entry + 8, 2),
				      .method = word(entry + 10, 2),
				      .packed_bytes = word(entry + 20, 4),
				      .bytes = word(entry + 24, 4),
				      .local_off = word(entry + 42, 4)};
	if (fread(member->name, 1, kept, archive) != kept)
		return NPUMEM_INVALID;
	long skip = (long)(name - kept) + (long)word(entry + 30, 2) + (long)word(entry + 32, 2);
	size_t length = strlen(member->name);
	if (length > 4 && !strcmp(member->name + length - 4, ".npy"))
		member->name[length - 4] = 0;
	return fseek(archive, skip, SEEK_CUR) ? NPUMEM_INVALID : 0;
}

/* A tensor's name has _ in place of each byte of the array's name that is unusual: so _ matches all bytes but
 * letters and digits. */
static bool is_called(const struct zip_member *member, const char *name)
{
	size_t length = 0;
	for (; member->name[length]; length++)
		if (name[length] != member->name[length] &&
		    (name[length] != '_' || isalnum((unsigned char)member->name[length])))
			return false;
	return !name[length] || !strcmp(name + length, ".npy");
}

/* The member with that name, or the only one. */
static int find_member(FILE *archive, const char *name, struct zip_member *found, struct npumem_error *error)
{
	char names[ZIP_NAMES_BYTES] = "";
	unsigned entries, n_found = 0;
	long off;
	if (find_directory(archive, &off, &entries) || fseek(archive, off, SEEK_SET))
		return damaged(error);
	for (unsigned i = 0; i < entries; i++) {
		struct zip_member member;
		size_t at = strlen(names);
		if (read_member(archive, &member))
			return damaged(error);
		snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", member.name);
		if (name && !is_called(&member, name))
			continue;
		*found = member;
		n_found++;
	}
	if (n_found == 1)
		return 0;
	if (name)
		return npumem_error_set(error, NPUMEM_INVALID, "there is no array \"%.60s\" in it; there are: %s",
					name, names);
	return npumem_error_set(error, NPUMEM_INVALID,
				"has %u arrays; FILE.npz:NAME takes one of them. There are: %s", n_found, names);
}

/* Deflate without a header. */
static bool unpack(const void *packed, const struct zip_member *member, void *to)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .avail_in = member->packed_bytes};
	stream.next_out = to;
	stream.avail_out = member->bytes;
	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return false;
	int result = inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	return result == Z_STREAM_END && !stream.avail_out;
}

/* Moves to the member's first byte. */
static bool seek_bytes(FILE *archive, const struct zip_member *member)
{
	uint8_t local[ZIP_LOCAL_BYTES];
	return !fseek(archive, (long)member->local_off, SEEK_SET) &&
	       fread(local, 1, sizeof(local), archive) == sizeof(local) && !memcmp(local, "PK\3\4", 4) &&
	       !fseek(archive, (long)word(local + 26, 2) + (long)word(local + 28, 2), SEEK_CUR);
}

/* What the member holds; NULL where that cannot be read. */
static void *read_bytes(FILE *archive, const struct zip_member *member, struct npumem_error *error)
{
	bool is_packed = member->method == ZIP_DEFLATED;
	if (!seek_bytes(archive, member) || (!is_packed && member->packed_bytes != member->bytes)) {
		damaged(error);
		return NULL;
	}
	char *packed = memory_data(member->packed_bytes, 1);
	char *bytes = is_packed ? memory_data(member->bytes, 1) : packed;
	if (!packed || !bytes)
		npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for \"%s\"", member->name);
	else if (fread(packed, 1, member->packed_bytes, archive) == member->packed_bytes &&
		 (!is_packed || unpack(packed, member, bytes)))
		return bytes;
	else
		damaged(error);
	return NULL;
}

int zip_seek(FILE *archive, const char *name, off_t *end, struct npumem_error *error)
{
	struct zip_member found;
	int status = find_member(archive, name, &found, error);
	if (status)
		return status;
	if ((found.flags & 1) || found.method != ZIP_STORED)
		return npumem_error_set(error, NPUMEM_INVALID, "\"%s\" is packed; numpy.savez writes it as it is",
					found.name);
	if (!seek_bytes(archive, &found))
		return damaged(error);
	*end = ftello(archive) + (off_t)found.bytes;
	return 0;
}

int zip_open(FILE *archive, const char *name, FILE **member, struct npumem_error *error)
{
	struct zip_member found;
	int status = find_member(archive, name, &found, error);
	if (status)
		return status;
	if ((found.flags & 1) || (found.method != ZIP_STORED && found.method != ZIP_DEFLATED))
		return npumem_error_set(error, NPUMEM_INVALID,
					"\"%s\" is encrypted, or packed in another way than by NumPy", found.name);
	if (found.bytes > ZIP_BYTES_MAX || found.packed_bytes > ZIP_BYTES_MAX || !found.bytes)
		return npumem_error_set(error, NPUMEM_INVALID, "\"%s\" has %u bytes; 1 to %d are read", found.name,
					found.bytes, ZIP_BYTES_MAX);
	void *bytes = read_bytes(archive, &found, error);
	if (!bytes)
		return NPUMEM_INVALID;
	*member = fmemopen(bytes, found.bytes, "rb");
	return *member ? 0
		       : npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for \"%s\"", found.name);
}
