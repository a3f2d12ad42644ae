// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// mustJob makes a job's folder in which somebody listens who accepts nobody.
func mustJob(t *testing.T, path string) (job Job, listener int) {
	t.Helper()
	job = Job{Path: path}
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(listener) })
	err = errors.Join(os.WriteFile(filepath.Join(path, lockName), nil, 0o600),
		unix.Bind(listener, &unix.SockaddrUnix{Name: job.Socket(JoinSocket)}), unix.Listen(listener, 1))
	if err != nil {
		t.Fatal(err)
	}
	return job, listener
}

// A folder is removed only if nobody listens in it: one who has not accepted
// anybody for long does.
func TestDeadJobsAreRemovedAndLivingOnesKept(t *testing.T) {
	living, _ := mustJob(t, shortTemp(t))
	dead, listener := mustJob(t, shortTemp(t))
	if err := unix.Shutdown(listener, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	for range 5 { // the queue holds two
		living.removeIfDead()
		dead.removeIfDead()
	}
	if _, err := os.Stat(living.Path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead job's folder: %v", err)
	}
}

// Who removed a folder was killed before all of it was gone, or its process could
// not make the lock.
func TestDeadJobWithoutLockIsRemoved(t *testing.T) {
	job := Job{Path: shortTemp(t)}
	must(t, os.WriteFile(job.Socket("gate"), nil, 0o600))
	job.removeIfDead()
	if _, err := os.Stat(job.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// A gate opens in the folder while that is being removed.
func TestRemovalMeetsNewFiles(t *testing.T) {
	for range 300 {
		job, _ := mustJob(t, shortTemp(t))
		made := make(chan struct{})
		go func() {
			defer close(made)
			for n := range 20 {
				_ = os.WriteFile(filepath.Join(job.Path, strconv.Itoa(n)), nil, 0o600) // or the folder is gone
			}
		}()
		gone, err := job.Remove(func() bool { return true })
		<-made
		if _, missing := os.Stat(job.Path); !gone || err != nil || !errors.Is(missing, os.ErrNotExist) {
			t.Fatalf("gone %v, %v; the folder: %v", gone, err, missing)
		}
	}
}

// The loader of whatever a process starts looks for what LD_PRELOAD names.
func TestPreloadedLibraryStays(t *testing.T) {
	job, listener := mustJob(t, shortTemp(t))
	library := filepath.Join(job.Path, library+"-1.so")
	must(t, os.WriteFile(library, nil, 0o600))
	must(t, os.Mkdir(filepath.Join(job.Path, "bin"), 0o700))
	must(t, unix.Shutdown(listener, unix.SHUT_RDWR))
	program := exec.Command("sleep", "1000")
	program.Env = []string{"LD_PRELOAD=/x.so:" + library}
	must(t, program.Start())
	defer func() { _ = program.Process.Kill() }() // it may have ended
	job.removeIfDead()
	entries, err := os.ReadDir(job.Path)
	must(t, err)
	if len(entries) != 2 || entries[0].Name() != filepath.Base(library) || entries[1].Name() != lockName {
		t.Errorf("left: %v", entries)
	}
	must(t, program.Process.Kill())
	_ = program.Wait() // it was killed
	job.removeIfDead()
	if _, err := os.Stat(job.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its end: %v", err)
	}
}
