// SPDX-License-Identifier: Apache-2.0

// Package silentfs has a file system whose server stops answering, as a hostile user's
// may: it speaks the protocol of /dev/fuse (linux/fuse.h) with the kernel, and serves one
// executable file. Tests need root.
//
// An FS serves in a goroutine of its own; its methods may be called from any goroutine.
package silentfs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// FS is a mounted file system.
type FS struct {
	// File is the path of its only file.
	File string

	device  int
	content []byte
	silent  atomic.Bool
	// Asked is rung by each request that gets no answer.
	Asked chan struct{}
}

const name = "file"

// Mount mounts a file system of a user's, in which everybody sees a file with that
// content. When the test ends, whoever waits for it gets an error.
func Mount(t *testing.T, uid int, content []byte) *FS {
	t.Helper()
	dir := t.TempDir()
	for _, way := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(way, 0o755); err != nil { // all users come through
			t.Fatal(err)
		}
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	// As fusermount3 does for a user, where /etc/fuse.conf has user_allow_other.
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=%d,group_id=%[2]d,allow_other", device, uid)
	if err := unix.Mount("silent", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatal(err)
	}
	f := &FS{File: filepath.Join(dir, name), device: device, content: content, Asked: make(chan struct{}, 1)}
	served := make(chan struct{})
	go func() { defer close(served); f.serve() }()
	t.Cleanup(func() {
		// Detached first, and forced: which has the kernel answer for the server.
		if err := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-served
		_ = unix.Close(device)
	})
	return f
}

// Silence has the server read requests and answer none from now on.
func (f *FS) Silence() { f.silent.Store(true) }

// Operations of linux/fuse.h.
const (
	opLookup, opForget, opGetattr, opOpen, opRead, opStatfs = 1, 2, 3, 14, 15, 17
	opRelease, opFlush, opInit, opOpendir, opReleasedir     = 18, 25, 26, 27, 29
	opInterrupt, opBatchForget                              = 36, 42
)

// serve answers until the file system is unmounted.
func (f *FS) serve() {
	const headBytes = 40
	buffer := make([]byte, 1<<17)
	for {
		n, err := unix.Read(f.device, buffer)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN || err == unix.ENOENT:
			continue
		case err != nil || n < headBytes:
			return
		}
		op, unique := binary.NativeEndian.Uint32(buffer[4:]), binary.NativeEndian.Uint64(buffer[8:])
		node := binary.NativeEndian.Uint64(buffer[16:])
		if op == opForget || op == opBatchForget || op == opInterrupt {
			continue
		}
		if f.silent.Load() {
			select {
			case f.Asked <- struct{}{}:
			default:
			}
			continue
		}
		body, errno := f.answer(op, node, buffer[headBytes:n])
		reply := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		reply = binary.NativeEndian.AppendUint32(reply, uint32(-int32(errno)))
		reply = binary.NativeEndian.AppendUint64(reply, unique)
		_, _ = unix.Write(f.device, append(reply, body...)) // who asked may be gone
	}
}

// answer returns the body of an answer; an error has none.
func (f *FS) answer(op uint32, node uint64, body []byte) (answer []byte, errno syscall.Errno) {
	word := binary.NativeEndian.AppendUint64
	switch op {
	case opInit: // version 7.31, nothing beyond
		answer = binary.NativeEndian.AppendUint32(answer, 7)
		answer = binary.NativeEndian.AppendUint32(answer, 31)
		answer = append(answer, make([]byte, 12)...)
		answer = binary.NativeEndian.AppendUint32(answer, 1<<16) // bytes of a write
		return append(answer, make([]byte, 64-len(answer))...), 0
	case opLookup:
		if string(body) != name+"\x00" {
			return nil, syscall.ENOENT
		}
		answer = append(word(answer, 2), make([]byte, 32)...) // node, nothing remembered
		return append(answer, f.attributes(2)...), 0
	case opGetattr:
		return append(make([]byte, 16), f.attributes(node)...), 0
	case opOpen, opOpendir:
		return make([]byte, 16), 0
	case opRead:
		offset, size := binary.NativeEndian.Uint64(body[8:]), binary.NativeEndian.Uint32(body[16:])
		rest := f.content[min(offset, uint64(len(f.content))):]
		return rest[:min(len(rest), int(size))], 0
	case opStatfs:
		return make([]byte, 80), 0
	case opRelease, opReleasedir, opFlush:
		return nil, 0
	}
	return nil, syscall.ENOSYS
}

// attributes is struct fuse_attr of the root or the file.
func (f *FS) attributes(node uint64) []byte {
	mode, size := uint32(unix.S_IFDIR|0o755), 0
	if node != 1 {
		mode, size = unix.S_IFREG|0o755, len(f.content)
	}
	a := make([]byte, 88)
	binary.NativeEndian.PutUint64(a, node)
	binary.NativeEndian.PutUint64(a[8:], uint64(size))
	binary.NativeEndian.PutUint32(a[60:], mode)
	binary.NativeEndian.PutUint32(a[64:], 1) // link
	binary.NativeEndian.PutUint32(a[80:], 4096)
	return a
}
