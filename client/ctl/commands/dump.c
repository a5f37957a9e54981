/* dump: raw bytes of one NPU, in hex. */
#include "client/ctl/command.h"

#include <ctype.h>
#include <inttypes.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

enum { DUMP_LINE = 16, DUMP_CALL_BYTES = 1 << 20 };

static void dump_line(int64_t offset, const uint8_t *bytes, int64_t n)
{
	printf("%08" PRIx64 ":", (uint64_t)offset);
	for (int64_t i = 0; i < DUMP_LINE; i++) {
		printf("%s", i % 2 ? "" : " ");
		if (i < n)
			printf("%02x", bytes[i]);
		else
			printf("  ");
	}
	printf("  ");
	for (int64_t i = 0; i < n; i++)
		putchar(isprint(bytes[i]) ? bytes[i] : '.');
	putchar('\n');
}

static int dump_json(struct ctl *ctl, int64_t npu, int64_t offset, int64_t n, const uint8_t *bytes)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = memory_new(2 * (size_t)n + 1, 1);
	for (int64_t i = 0; i < n; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	return ctl_print(ctl, json_pack("{s:I, s:I, s:I, s:s}", "npu", (json_int_t)npu, "offset",
					(json_int_t)offset, "bytes", (json_int_t)n, "hex", hex));
}

static int dump_bytes(struct ctl *ctl, int64_t npu, int64_t offset, int64_t n, uint8_t *bytes)
{
	for (int64_t at = 0; at < n; at += DUMP_CALL_BYTES) {
		int64_t part = n - at < DUMP_CALL_BYTES ? n - at : DUMP_CALL_BYTES;
		if (npumem_dump(ctl->npumem, npu, offset + at, part, bytes + at, &ctl->error))
			return CTL_FAILED;
	}
	if (ctl->json)
		return dump_json(ctl, npu, offset, n, bytes);
	if (!n)
		printf("no bytes\n");
	for (int64_t at = 0; at < n; at += DUMP_LINE)
		dump_line(offset + at, bytes + at, n - at < DUMP_LINE ? n - at : DUMP_LINE);
	return CTL_OK;
}

static int dump_run(struct ctl *ctl, const struct args *args)
{
	int64_t npu, offset, n;
	if (numbers_count("NPU", args->words[0], &npu, &ctl->error) ||
	    numbers_bytes("OFFSET", args->words[1], &offset, &ctl->error) ||
	    numbers_bytes("BYTES", args->words[2], &n, &ctl->error))
		return CTL_USAGE;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (n > NPUMEM_NPU_BYTES_MAX || offset > NPUMEM_NPU_BYTES_MAX)
		return ctl_invalid(ctl, "%" PRId64 " bytes at offset %" PRId64 " are past the end of every NPU", n,
				   offset);
	uint8_t *bytes = memory_data((size_t)n, 1);
	return bytes ? dump_bytes(ctl, npu, offset, n, bytes)
		     : ctl_fail(ctl, "no memory for %" PRId64 " bytes", n);
}

const struct command dump_command = {.least = 3, .most = 3, .run = dump_run};
