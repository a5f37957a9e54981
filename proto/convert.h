/* Between the messages of npumem.proto and the structs of include/npumem/: the one place for both sides. */
#ifndef PROTO_CONVERT_H
#define PROTO_CONVERT_H

#include <npumem/layout.h>

#include "proto/npumem.pb-c.h"

/* Copies a string, cut to fit, without the control characters that a terminal would obey. `from` NULL: empty. */
void convert_text_from(const char *from, char *to, size_t bytes);

/* From a message: NULL members mean their defaults. `spec` is wholly set; values are not checked here. */
void convert_spec_from(const Npumem__V1__Spec *message, struct npumem_spec *spec);
void convert_dims_from(const Npumem__V1__Dims *message, struct npumem_dims *dims);
void convert_place_from(const Npumem__V1__Place *message, struct npumem_place *place);

/* To a message: submessages are kept beside it, so that nothing is allocated. */
struct convert_spec {
	Npumem__V1__Spec message;
	Npumem__V1__Dims shape, stride;
};
void convert_spec_to(const struct npumem_spec *spec, struct convert_spec *to);
void convert_dims_to(const struct npumem_dims *dims, Npumem__V1__Dims *message);
struct convert_place {
	Npumem__V1__Place message;
	Npumem__V1__Dims shape, stride;
	Npumem__V1__Blocks blocks;
};
void convert_place_to(const struct npumem_place *place, struct convert_place *to);

#endif
