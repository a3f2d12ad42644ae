// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Operations lists what is read of the memory and files of processes, which may never
// answer, for the process that does it (package readers).
func Operations() []readers.Served {
	return []readers.Served{readSeen(), readObjectsOf(), readLinkedOf(), readDigest(), readPath()}
}

// seenQuestion asks what a thread shows of its process' memory.
type seenQuestion struct {
	Thread, PID, Parent, Session, Group int
}

// seen is what environment and arguments tell.
type seen struct {
	CommandLine []string
	Job         string // ATTUNE_JOB
	Off         bool   // ATTUNE=off
	BatchJob    *attunev1.Job
	Asked       batch.Job // for all of it on this node
	Rank        *int32
}

func readSeen() readers.Operation[seenQuestion, seen] {
	return readers.NewOperation("seen", func(_ context.Context, q seenQuestion) (seen, error) {
		env := readEnviron(q.Thread)
		return seen{
			CommandLine: readCommandLine(q.Thread), Job: env[JobVariable], Off: env.off(),
			BatchJob: env.job(place{q.PID, q.Parent, q.Session, q.Group}), Rank: env.rank(),
			Asked: batch.OnNode(func(name string) string { return env[name] }),
		}, nil
	})
}

// The list of mappings waits for whoever changes them, who may wait for the file.
func readObjectsOf() readers.Operation[int, []string] {
	return readers.NewOperation("objects", func(_ context.Context, pid int) ([]string, error) { return readObjects(pid) })
}

func readLinkedOf() readers.Operation[int, []string] {
	return readers.NewOperation("linked", func(_ context.Context, pid int) ([]string, error) { return readLinked(pid), nil })
}

// File says what to read: the executable of a process, or what a path leads to, the
// first of both that is the file of that device and inode; any regular file, if they are 0.
type File struct {
	PID           int    // 0: of none
	Path          []byte // empty: none; need not be UTF-8
	Device, Inode uint64
}

func (f File) is(st unix.Stat_t) bool { return f.Inode == 0 || st.Dev == f.Device && st.Ino == f.Inode }

func readDigest() readers.Operation[File, objfile.Sum] {
	return readers.NewOperation("digest", func(ctx context.Context, f File) (sum objfile.Sum, err error) {
		err = procid.ErrGone
		for _, path := range []string{procid.Path(f.PID, "exe"), string(f.Path)} {
			var st unix.Stat_t
			if unix.Stat(path, &st) != nil || !f.is(st) {
				continue
			}
			if sum, err = objfile.SumOf(ctx, path); err == nil {
				return sum, nil
			}
		}
		return objfile.Sum{}, err
	}).Slow()
}

// Digest returns the SHA-256 of a file of a user's, which is read unless digests
// remembers it. [procid.ErrGone] if nothing leads to the file.
func Digest(ctx context.Context, by *readers.Pool, digests *objfile.Digests, uid uint32, file File) (string, error) {
	image := procid.Path(file.PID, "exe")
	if st, err := procid.FileOf(image); err == nil && file.is(st) {
		if sum, ok := digests.Known(image); ok {
			return sum, nil
		}
	}
	sum, err := readDigest().Ask(ctx, by, uid, file)
	if err != nil {
		return "", err
	}
	digests.Remember(sum)
	return sum.SHA256, nil
}

// pathQuestion asks which of the names leads to the file of that device and inode.
type pathQuestion struct {
	Names         [][]byte // need not be UTF-8
	Device, Inode uint64
}

// readPath answers with the path that a name leads to; "" if none leads to the file.
func readPath() readers.Operation[pathQuestion, string] {
	return readers.NewOperation("path", func(_ context.Context, q pathQuestion) (string, error) {
		for _, text := range q.Names {
			name := string(text)
			var st unix.Stat_t // the words are the program's own: nothing is mounted for them
			if !filepath.IsAbs(name) || unix.Fstatat(unix.AT_FDCWD, name, &st, unix.AT_NO_AUTOMOUNT) != nil ||
				st.Dev != q.Device || st.Ino != q.Inode {
				continue
			}
			if path, err := filepath.EvalSymlinks(name); err == nil {
				return strings.ToValidUTF8(path, "?"), nil
			}
		}
		return "", nil
	})
}
