// SPDX-License-Identifier: Apache-2.0

// Code generated from dmlib_hooks.def by go generate. DO NOT EDIT.

package shm

// Hooks returns DMLib's own hooks in the order of their indices.
func Hooks() []Hook {
	return []Hook{
		{Index: 0, Name: "malloc", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 1, Name: "free", Family: AtAlloc, Value: "address", Extra: "0"},
		{Index: 2, Name: "calloc", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 3, Name: "realloc", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 4, Name: "memalign", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 5, Name: "aligned_alloc", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 6, Name: "posix_memalign", Family: AtAlloc, Value: "bytes asked for", Extra: "address returned"},
		{Index: 16, Name: "pthread_mutex_lock", Family: AtLock, Value: "address of the mutex", Extra: "0 or error"},
		{Index: 17, Name: "pthread_mutex_trylock", Family: AtLock, Value: "address of the mutex", Extra: "0 or error"},
		{Index: 18, Name: "pthread_mutex_timedlock", Family: AtLock, Value: "address of the mutex", Extra: "0 or error"},
		{Index: 19, Name: "pthread_mutex_unlock", Family: AtLock, Value: "address of the mutex", Extra: "0"},
		{Index: 20, Name: "pthread_mutex_clocklock", Family: AtLock, Value: "address of the mutex", Extra: "0 or error"},
		{Index: 32, Name: "read", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
		{Index: 33, Name: "write", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
		{Index: 34, Name: "pread", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
		{Index: 35, Name: "pwrite", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
		{Index: 36, Name: "readv", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
		{Index: 37, Name: "writev", Family: AtIO, Value: "bytes moved, 0 on error", Extra: "file descriptor"},
	}
}
