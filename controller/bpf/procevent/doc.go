// SPDX-License-Identifier: Apache-2.0

// Package procevent follows the processes of jobs through fork, exec and exit, by
// BPF programs at the kernel's own tracepoints.
//
// It needs kernel 5.8 with type information (CONFIG_DEBUG_INFO_BTF). All methods may
// be called from several goroutines unless they say otherwise.
package procevent
