// SPDX-License-Identifier: Apache-2.0

// Package silentfs has a file system whose server stops answering, as a hostile user's
// may: it speaks the protocol of /dev/fuse (linux/fuse.h) with the kernel, and serves one
// executable file. Mounting needs root, as fusermount3 has it; serving does not.
//
// An FS serves in a goroutine of its own; its methods may be called from any goroutine.
package silentfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// FS is a file system that is served.
type FS struct {
	// File is the path of its only file.
	File string

	device  *os.File
	content []byte

	mu      sync.Mutex // guards what follows
	silent  bool
	pending []uint64 // requests without answer

	// Asked is rung by each request that gets no answer.
	Asked chan struct{}
}

const name = "file"

// Open mounts a file system of a user's on a directory, as fusermount3 does for a user
// where /etc/fuse.conf has user_allow_other. It is served by whoever has the device, and
// unmounted by Close.
func Open(dir string, uid int) (device *os.File, err error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	device = os.NewFile(uintptr(fd), "/dev/fuse")
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=%d,group_id=%[2]d,allow_other", fd, uid)
	if err := unix.Mount("silent", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("mount a file system of user %d: %w", uid, err), device.Close())
	}
	return device, nil
}

// Close unmounts what Open has mounted. It is detached first, and forced: which has the
// kernel answer for the server.
func Close(dir string) error { return unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH) }

// Serve serves a file system in which everybody sees a file with that content, until it
// is unmounted, which closes done.
func Serve(device *os.File, dir string, content []byte) (fs *FS, done <-chan struct{}) {
	f := &FS{File: filepath.Join(dir, name), device: device, content: content, Asked: make(chan struct{}, 1)}
	served := make(chan struct{})
	go func() { defer close(served); f.serve() }()
	return f, served
}

// Mount mounts a file system of a user's, in which everybody sees a file with that
// content. When the test ends, whoever waits for it gets an error.
func Mount(t *testing.T, uid int, content []byte) *FS {
	t.Helper()
	dir := asuser.Folder(t)
	device, err := Open(dir, uid)
	if err != nil {
		t.Fatal(err)
	}
	f, served := Serve(device, dir, content)
	t.Cleanup(func() {
		if err := Close(dir); err != nil {
			t.Error(err)
		}
		<-served
		_ = device.Close()
	})
	if err := f.refusePoll(); err != nil {
		t.Fatal(err)
	}
	return f
}

// refusePoll has the kernel learn, once for all files, that the server cannot be asked what
// is ready. Go's runtime has it asked for each file that is opened, by an epoll_ctl that
// holds up the garbage collector; and that would hold up the server, which is in the same
// process.
func (f *FS) refusePoll() error {
	fd, err := unix.Open(f.File, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err
}

// Silence has the server read requests and answer none; or answer again, those that had
// no answer with an error.
func (f *FS) Silence(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = on
	if !on {
		for _, unique := range f.pending {
			f.reply(unique, nil, syscall.EIO)
		}
		f.pending = nil
	}
}

// Unread starts a program of a user's by a path, whose arguments lie in the file, and silences
// the file system. The program's source is unread.c of the test targets; it is killed when the
// test ends.
func (f *FS) Unread(t *testing.T, uid int, path string) *os.Process {
	t.Helper()
	cmd := exec.Command(path, "file", f.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Silence(false)
		_, _ = cmd.Process.Kill(), cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil { // "ready"
		t.Fatal(err)
	}
	f.Silence(true)
	return cmd.Process
}

// Unasked fails the test if look has the server asked, which is silent meanwhile. Look has
// ended when it returns, as long as an answer is enough for that.
func (f *FS) Unasked(t testing.TB, look func()) {
	t.Helper()
	f.Silence(true)
	done := make(chan struct{})
	go func() { defer close(done); look() }()
	select {
	case <-f.Asked:
		t.Error("the server was asked")
	case <-done:
	case <-time.After(patience.Limit):
		t.Error("waited in vain for what does not need the server")
	}
	f.Silence(false)
	patience.Closed(t, "end of the look", done)
}

// leave leaves a request without answer, if that is how it is now.
func (f *FS) leave(unique uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent {
		f.pending = append(f.pending, unique)
	}
	return f.silent
}

// reply answers a request.
func (f *FS) reply(unique uint64, body []byte, errno syscall.Errno) {
	reply := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	reply = binary.NativeEndian.AppendUint32(reply, uint32(-int32(errno)))
	reply = binary.NativeEndian.AppendUint64(reply, unique)
	_, _ = unix.Write(int(f.device.Fd()), append(reply, body...)) // who asked may be gone
}

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
	device := int(f.device.Fd())
	for {
		n, err := unix.Read(device, buffer)
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
		if f.leave(unique) {
			select {
			case f.Asked <- struct{}{}:
			default:
			}
			continue
		}
		body, errno := f.answer(op, node, buffer[headBytes:n])
		f.reply(unique, body, errno)
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
