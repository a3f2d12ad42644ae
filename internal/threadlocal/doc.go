// SPDX-License-Identifier: Apache-2.0

// Package threadlocal finds the copies of thread-local variables in the
// threads of another process, from outside and without stopping one.
//
// The kernel tells where a thread keeps its list of robust futexes
// (get_robust_list(2)), which glibc has in the thread's descriptor; the
// descriptor points at itself, and so does the thread pointer. How to get from
// there to an object's block is what glibc describes for debuggers in its
// exported _thread_db_ symbols, which libthread_db reads as well: no layout of
// any version is built in.
//
// All needs the permissions of ptrace(2). The functions are safe for concurrent
// use.
package threadlocal
