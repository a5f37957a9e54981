#include "tests/support/test.h"
#include "tests/unit/client/ctl/core/network/file.h"

#define X "{\"alloc\": \"x\", \"shape\": [1,2,3,4], \"dtype\": \"fx8\", \"frac_bits\": 4}\n"
#define Y "{\"alloc\": \"y\", \"shape\": [1,2,3,4], \"dtype\": \"fx8\", \"frac_bits\": 4}\n"

/* The kinds of all operations, a letter each: what the text was made into. */
static const char *kinds(const struct network *network)
{
	static const char letters[] = "?aovfswlcrRe";
	static char text[64];
	ck_assert_uint_lt(network->n_operations, sizeof(text));
	for (size_t i = 0; i < network->n_operations; i++)
		text[i] = letters[network->operations[i].kind];
	text[network->n_operations] = 0;
	return text;
}

TEST(three_forms)
{
	static const char *const texts[] = {
		X Y "{\"run\": \"relu\", \"in\": \"x\", \"out\": \"y\", \"relu\": 6}\n",
		"[" X "," Y ", {\"run\": \"relu\", \"in\": \"x\", \"out\": \"y\", \"relu\": \"6\"}]",
		" {\"name\": \"n\", \"operations\": [" X "," Y
		", {\"run\": \"relu\", \"in\": \"x\", \"out\": \"y\", \"relu\": [6]}]}",
	};
	for (unsigned i = 0; i < 3; i++) {
		struct network network;
		file_loads(texts[i], &network);
		ck_assert_str_eq(kinds(&network), "aar");
		const struct network_operation *run = &network.operations[2];
		ck_assert_uint_eq(run->n_operands, 2);
		ck_assert_str_eq(network.operands[run->operand + 1].role, "out");
		ck_assert_int_eq(network.operands[run->operand + 1].tensor, 1);
		ck_assert_uint_eq(run->n_params, 1);
		ck_assert_int_eq(network.params[run->param].values[0], 4);
		ck_assert_int_eq(run->line, i ? 0 : 3);
		ck_assert_uint_eq(run->place, 3);
		ck_assert(!strcmp(network.folder, "/tmp/"));
	}
}

TEST(one_operation_over_lines)
{
	struct network network;
	file_loads("\n{\"alloc\": \"x\",\n\"shape\": [1,1,1,1],\n\"dtype\": \"int8\"}\n\n{\"seal\":\n\"x\"}",
		   &network);
	ck_assert_str_eq(kinds(&network), "as");
	ck_assert_int_eq(network.operations[0].line, 2);
	ck_assert_int_eq(network.operations[1].line, 6);
}

#define T(name) "\"" name "\": {\"shape\": [1,2,3,4], \"dtype\": \"fx8\", \"frac_bits\": 4"

/* Tensors come before their first use, are compared after the last that writes them, and go after their last use;
 * a parallel group is one place. */
TEST(lives_of_declared_tensors)
{
	struct network network;
	file_loads("{\"tensors\": {" T("x") ", \"file\": \"x.npy\"}," T("y") ", \"expect\": \"y.npy\"}," T(
			   "z") ", \"fill\": 3, \"keep\": true}," T("unused") "}},"
									      "\"operations\": ["
									      "{\"run\": \"relu\", \"in\": \"x\", "
									      "\"out\": \"y\"},"
									      "{\"run\": \"relu\", \"in\": \"y\", "
									      "\"out\": \"y\", \"relu\": 1},"
									      "{\"parallel\": [{\"run\": "
									      "\"relu\", \"in\": \"y\", \"out\": "
									      "\"z\"}, {\"read\": \"y\", "
									      "\"file\": \"r.npy\"}]}"
									      "]}",
		   &network);
	/* x: alloc, write; y: alloc; run; x goes; run; y compared; z: alloc, fill; run, read; y goes. */
	ck_assert_str_eq(kinds(&network), "awarfrealrRf");
	ck_assert_int_eq(network.operations[0].tensor, 0);
	ck_assert_int_eq(network.operations[4].tensor, 0);
	ck_assert_int_eq(network.operations[6].tensor, 1);
	ck_assert_str_eq(network.operations[6].file, "y.npy");
	ck_assert_int_eq(network.operations[11].tensor, 1);
	ck_assert_uint_eq(network.operations[9].part, 1);
	ck_assert_uint_eq(network.operations[10].part, 2);
	ck_assert_int_eq(network.tensors[2].born, 7);
}

TEST(a_view_keeps_its_base)
{
	struct network network;
	struct npumem_place place;
	file_loads("{\"tensors\": {" T(
			   "x") "}},\"operations\": [{\"fill\": \"x\", \"value\": 1},"
				"{\"view\": \"v\", \"of\": \"x\", \"from\": [0,1,0,0], \"to\": [1,2,3,4]},"
				"{\"view\": \"u\", \"of\": \"v\", \"shape\": [1,1,4,3]},"
				"{\"read\": \"u\", \"file\": \"u.npy\"}]}",
		   &network);
	ck_assert_str_eq(kinds(&network), "alvvRf");
	ck_assert_int_eq(network_root(&network, 2), 0);
	ck_assert(network.tensors[0].has_views && !network.tensors[1].has_views);
	ck_assert(network_array(&network, 1, &place));
	ck_assert_int_eq(place.shape.c, 1);
	ck_assert_int_eq(place.dtype, NPUMEM_FX8);
	ck_assert(network_array(&network, 2, &place));
	ck_assert_int_eq(place.shape.h, 4);
}

TEST(a_name_can_be_used_again)
{
	struct network network;
	file_loads(X "{\"view\": \"v\", \"of\": \"x\", \"shape\": [1,2,4,3]}\n{\"free\": \"x\"}\n" X
		     "{\"view\": \"v\", \"of\": \"x\", \"shape\": [1,2,4,3]}\n",
		   &network);
	ck_assert_str_eq(kinds(&network), "avfav");
	ck_assert_int_eq(network.operations[4].tensor, 3);
}

TEST(a_numbered_family_and_the_rounding_of_all)
{
	struct network network;
	file_loads("{\"rounding\": \"up\", \"tensors\": {" T("a") "}," T("b") "}," T(
			   "y") "}},\"operations\": ["
				"{\"run\": \"concat\", \"in\": [\"a\", \"b\"], \"out\": \"y\", \"axis\": \"c\"},"
				"{\"run\": \"concat\", \"in0\": \"a\", \"in1\": \"b\", \"out\": \"y\", "
				"\"rounding\": \"nearest\"}]}",
		   &network);
	const struct network_operation *run = &network.operations[3];
	ck_assert_int_eq(run->kind, NETWORK_RUN);
	ck_assert_str_eq(network.operands[run->operand + 1].role, "in1");
	ck_assert_uint_eq(run->n_params, 2);
	ck_assert_int_eq(network.params[run->param + 1].number, NPUMEM_PARAM_ROUNDING);
	ck_assert_int_eq(network.params[run->param + 1].values[0], NPUMEM_UP);
	run = &network.operations[4];
	ck_assert_str_eq(network.operands[run->operand].role, "in0");
	ck_assert_uint_eq(run->n_params, 1);
	ck_assert_int_eq(network.params[run->param].values[0], NPUMEM_NEAREST);
}

/* What is wrong is said with operation, line, key, and what was perhaps meant. */
TEST(refusals)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "there is no operation in it"},
		{"3", "operation 1 (line 1) is not an object like {\"run\": \"relu\", …}"},
		{"{", "line 1, column 1: string or '}' expected near end of file"},
		{X "{\"seal\": \"x\"", "line 2, column "},
		{"{\"seal\": \"x\", \"seal\": \"y\"}", "line 1, column "},
		{"{\"operations\": 3}", "\"operations\" is not a list"},
		{"{\"tensors\": {}}", "\"operations\" is not a list"},
		{"{\"operations\": [], \"tensors\": 3}", "the network: \"tensors\" is an integer; an object"},
		{"{\"operations\": [], \"tensrs\": {}}",
		 "the network: no key \"tensrs\"; did you mean \"tensors\"?"},
		{"{\"operations\": [], \"tensors\": {\"x\": 3}}", "tensor \"x\" is not an object like"},
		{"{\"operations\": [], \"rounding\": \"uo\"}",
		 "the network: there is no rounding \"uo\"; did you mean \"up\"?"},
		{"{\"aloc\": \"x\"}", "operation 1 (line 1): no operation; it is one of alloc open"},
		{"{\"alloc\": 3}", "operation 1 (line 1), alloc: \"alloc\" is an integer; a string"},
		{"{\"alloc\": \"\"}", "\"alloc\" is a string; a string that is not empty is expected"},
		{"{\"alloc\": \"x\"}", "alloc x: \"dtype\" is missing: int8,"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\"}", "alloc x: \"shape\" is missing: [N,C,H,W]"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3]}",
		 "\"shape\" has 3 numbers; N,C,H,W are four"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,-4]}", "four integers from 0 on"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4.5]}", "four integers from 0 on"},
		{"{\"alloc\": \"x\", \"dtype\": \"fx8\", \"shape\": [1,2,3,4]}", "\"frac_bits\" is missing"},
		{"{\"alloc\": \"x\", \"dtype\": \"fx9\", \"shape\": [1,2,3,4]}",
		 "there is no element type \"fx9\"; did you mean \"fx8\"?"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"layout\": \"algined\"}",
		 "did you mean \"aligned\"?"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"layout\": \"matrix\"}",
		 "a matrix takes \"rows\" and \"cols\""},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"layout\": \"matrix\", \"rows\": 3}",
		 "\"cols\" is missing"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"layout\": \"strided\", \"shape\": [1,2,3,4]}",
		 "\"stride\" is missing: [N,C,H,W]"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"rows\": 3}",
		 "are for \"layout\""},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"file\": \"f\", \"fill\": 1}",
		 "exclude each other"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"fill\": \"1\"}",
		 "\"fill\" is a string; a number is expected"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"file\": \"f\", \"quantize\": "
		 "true}",
		 "\"quantize\" is for fx8 and fx16"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"rounding\": \"up\"}",
		 "\"rounding\" is for \"quantize\": true"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"keep\": 1}",
		 "\"keep\" is an integer; true or false is expected"},
		{"{\"alloc\": \"x\", \"dtype\": \"int8\", \"shape\": [1,2,3,4], \"expect\": \"x.npy\"}",
		 "tensor \"x\" is to hold \"x.npy\", but no operation writes it"},
		{X X,
		 "operation 2 (line 2), alloc x: there is a tensor \"x\" already (operation 1 (line 1), alloc x)"},
		{"{\"tensors\": {" T("x") "}}, \"operations\": [" X "]}", "\"x\" already (among \"tensors\")"},
		{"{\"tensors\": {" T("x") "}}, \"operations\": [{\"free\": \"x\"}]}",
		 "operation 1, free x: \"x\" is one of \"tensors\", which go after their last use"},
		{X "{\"free\": \"x\"}\n{\"seal\": \"x\"}", "seal x: tensor \"x\" was freed by operation 2"},
		{X "{\"view\": \"v\", \"of\": \"x\", \"shape\": [1,2,4,3]}{\"free\": \"x\"}{\"seal\": \"v\"}",
		 "tensor \"v\" was freed by operation 3"},
		{X "{\"view\": \"v\", \"of\": \"x\", \"from\": [0,0,0,0]}", "a view takes \"from\" and \"to\""},
		{X "{\"view\": \"v\", \"of\": \"v\", \"shape\": [1,1,1,1]}", "view v: no tensor \"v\""},
		{X "{\"free\": [\"x\", 3]}", "free: \"free\" is a list; a name or a list of names"},
		{X "{\"write\": \"x\"}", "operation 2 (line 2), write x: \"file\" is missing: a string"},
		{X "{\"write\": \"x\", \"fiel\": \"x.npy\"}", "no key \"fiel\"; did you mean \"file\"?"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": 1}", "\"perm\" is an integer; a permutation"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": []}", "\"perm\" is a list; a permutation"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": [0,0]}", "\"perm\" is a list; a permutation"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": [0,2]}", "\"perm\" is a list; a permutation"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": [0,1.0]}", "\"perm\" is a list; a permutation"},
		{X "{\"write\": \"x\", \"file\": \"f\", \"perm\": [0,1,2,3,4]}",
		 "\"perm\" is a list; a permutation"},
		{X "{\"fill\": \"x\"}", "fill x: \"value\" is missing: a number"},
		{X "{\"copy\": \"x\"}", "copy x: \"from\" is missing: a string"},
		{X "{\"run\": \"conv2\"}", "there is no kernel \"conv2\"; did you mean \"conv2d\"?"},
		{X "{\"run\": \"relu\", \"in\": \"xx\"}", "run relu: no tensor \"xx\"; did you mean \"x\"?"},
		{X "{\"run\": \"relu\", \"in\": 3}", "\"in\" is an integer; the name of a tensor is expected"},
		{X "{\"run\": \"conv2d\", \"in\": \"x\", \"stirde\": [1,1]}",
		 "no key \"stirde\"; did you mean \"stride\"?"},
		{X "{\"run\": \"relu\", \"in\": \"x\", \"zzz\": 1}",
		 "no key \"zzz\"; it takes in, out, relu, rounding, name, comment, run"},
		{X "{\"run\": \"conv2d\", \"in\": \"x\", \"stride\": [1,1,1]}",
		 "stride takes 2 integers (h,w), not 3"},
		{X "{\"run\": \"conv2d\", \"in\": \"x\", \"stride\": 1.5}",
		 "\"stride\" is a real number; an integer"},
		{X "{\"run\": \"conv2d\", \"in\": \"x\", \"stride\": []}", "\"stride\" is a list; an integer"},
		{X "{\"run\": \"relu\", \"in\": \"x\", \"relu\": \"7\"}",
		 "relu takes one of none, gen, 1, 6, not \"7\""},
		{X "{\"run\": \"relu\", \"in\": \"x\"}",
		 "operation 2 (line 2), run relu: \"out\" is missing: a tensor"},
		{X "{\"run\": \"conv2d\", \"in\": \"x\", \"out\": \"x\"}", "run conv2d: \"weights\" is missing"},
		{X "{\"run\": \"concat\", \"out\": \"x\", \"axis\": \"c\"}", "run concat: \"in\" is missing"},
		{X "{\"parallel\": []}", "\"parallel\" is a list; a list of operations"},
		{X "{\"parallel\": [{\"seal\": \"x\"}]}",
		 "operation 2.1 (line 2), seal x: a parallel group has write, fill, copy, run and read only"},
		{X "{\"parallel\": [{\"parallel\": []}]}", "operation 2.1 (line 2): no operation"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct network network;
		struct npumem_error error;
		ck_assert_msg(file_load(rows[i].text, &network, &error) == NPUMEM_INVALID, "%s", rows[i].text);
		ck_assert_msg(strstr(error.message, rows[i].why), "%s\n%s", rows[i].text, error.message);
	}
}

TEST(what_is_no_file)
{
	struct network network;
	struct npumem_error error = {.status = 0};
	ck_assert_int_eq(network_load("/nonexistent/net.json", &network, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "/nonexistent/net.json: No such file or directory");
	npumem_error_clear(&error);
	/* Of a folder it is the network.json in it. */
	ck_assert_int_eq(network_load("/proc/self", &network, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "/proc/self/network.json: No such file or directory");
}

TEST(more_operands_than_a_call_has)
{
	char text[4096] = X "{\"run\": \"concat\", \"in\": [";
	struct network network;
	struct npumem_error error;
	for (unsigned i = 0; i <= NPUMEM_OPERANDS_MAX; i++)
		strcat(text, i ? ",\"x\"" : "\"x\"");
	strcat(text, "]}");
	ck_assert_int_eq(file_load(text, &network, &error), NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, "run concat: more than 40 tensors"), "%s", error.message);
}
