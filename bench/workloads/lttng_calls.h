/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoint of probed_calls.c as LTTng-UST's variant of it has it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER attune_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_calls.h"
#if !defined(LTTNG_CALLS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_CALLS_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(attune_bench, call, LTTNG_UST_TP_ARGS(long, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, n, n)))
#endif
#include <lttng/tracepoint-event.h>
