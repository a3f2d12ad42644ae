// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
)

// A child that was forked past the C library asks by the id of the thread that forked it.
// Taken for that thread it would be told that it may register, which it then knows that it
// must not, and ask again for ever.
func TestThreadOfTheParentIsNoChild(t *testing.T) {
	fd, err := unix.MemfdCreate(shm.FileName, unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	size := os.Getpagesize()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	var file unix.Stat_t
	if err := unix.Fstat(fd, &file); err != nil {
		t.Fatal(err)
	}
	tid := otherThread(t)
	for name, test := range map[string]struct{ parent, id, found int }{
		"the parent":            {os.Getpid(), os.Getpid(), 0},
		"a thread of it":        {os.Getpid(), tid, 0},
		"a thread of the child": {os.Getppid(), tid, 1},
	} {
		t.Run(name, func(t *testing.T) {
			child := &askingChild{parent: test.parent, inode: file.Ino, id: test.id}
			child.find()
			if len(child.found) != test.found {
				t.Errorf("found %v; the process is %d, its thread %d", child.found, os.Getpid(), tid)
			}
		})
	}
}

// otherThread is the id of a thread of the process that is not its first, and stays.
func otherThread(t *testing.T) int {
	t.Helper()
	ids, over := make(chan int), make(chan struct{})
	t.Cleanup(func() { close(over) })
	for {
		go func() {
			runtime.LockOSThread() // nobody else gets the thread meanwhile
			ids <- unix.Gettid()
			<-over
		}()
		if id := <-ids; id != os.Getpid() {
			return id
		}
	}
}
