/* Numeric planning between messages and the structs of npumem/numeric.h: the one place for both sides. */
#ifndef PROTO_CONVERT_NUMERIC_H
#define PROTO_CONVERT_NUMERIC_H

#include <npumem/numeric.h>

#include "proto/npumem.pb-c.h"

/* A question's message, with its submessages beside it. */
struct convert_question {
	Npumem__V1__NumericRequest message;
	Npumem__V1__NumericFormat x, y;
	Npumem__V1__NumericPair pair;
	Npumem__V1__NumericSum sum;
	Npumem__V1__NumericTerms terms;
	Npumem__V1__NumericAdvise advise;
	Npumem__V1__NumericOperand operands[NPUMEM_OPERANDS_MAX], *operand_list[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Dims shapes[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Param params[NPUMEM_PARAMS_MAX], *param_list[NPUMEM_PARAMS_MAX];
};
/* Points to what the question points to. 0; INVALID: there is no such question, or more than a message can hold.
 */
int convert_question_to(const struct npumem_numeric *question, struct convert_question *to,
			struct npumem_error *error);

/* What an advise question points to. */
struct convert_advise {
	struct npumem_numeric_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
};
/* Points into the message and `parts`. 0; INVALID: incomplete, more than there is room for, an enum without such a
 * value, or a number below 0 where NPUMEM_ANY would be read into it. */
int convert_question_from(const Npumem__V1__NumericRequest *message, struct convert_advise *parts,
			  struct npumem_numeric *question, struct npumem_error *error);

/* An answer's message, with its submessages beside it. */
struct convert_answer {
	Npumem__V1__Numeric message;
	Npumem__V1__NumericFormat format, every;
	Npumem__V1__NumericResult result;
	Npumem__V1__NumericBound bound;
	Npumem__V1__NumericAdvice advice;
	struct convert_sum {
		Npumem__V1__NumericAccumulator message;
		Npumem__V1__NumericTerms terms;
		Npumem__V1__NumericBound bound;
	} sums[NPUMEM_SUMS_MAX];
	Npumem__V1__NumericAccumulator *sum_list[NPUMEM_SUMS_MAX];
};
/* Points to what the answer holds. */
void convert_answer_to(const struct npumem_numeric_answer *answer, struct convert_answer *to);
/* Of the kind that answer->kind says. 0; -1: it is of another, or incomplete. */
int convert_answer_from(const Npumem__V1__Numeric *message, struct npumem_numeric_answer *answer);

#endif
