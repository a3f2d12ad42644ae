// SPDX-License-Identifier: Apache-2.0

// Package taskaccount accounts for trees of processes by BPF programs: what each
// thread took is added up by the kernel when it is done with the thread.
//
// It needs what procevent needs, and a kernel with CONFIG_TASK_XACCT and
// CONFIG_TASK_IO_ACCOUNTING, as those of distributions have. Methods may be
// called from several goroutines unless they say otherwise.
package taskaccount
