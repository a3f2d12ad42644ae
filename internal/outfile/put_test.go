// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPut: a file gets its content and mode whatever was there and whatever the umask is,
// and nothing is left beside it, also where it cannot be put there.
func TestPut(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for name, put := range map[string]func(string, []byte, os.FileMode) error{"Put": Put, "PutDurably": PutDurably} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, directory := filepath.Join(dir, "file"), filepath.Join(dir, "directory")
			if err := os.Mkdir(directory, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, content := range []string{before, document} {
				if err := put(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil || info.Mode() != 0o644 {
					t.Errorf("%v, %v", info, err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != content {
					t.Errorf("%q, %v", got, err)
				}
			}
			if err := put(directory, []byte(document), 0o644); err == nil {
				t.Error("a directory was replaced by a file")
			}
			onlyHas(t, dir, "file", "directory")
		})
	}
}

// TestPutIsSeenWhole: who reads a file while it is put anew has all of it each time.
func TestPutIsSeenWhole(t *testing.T) {
	path, content := filepath.Join(t.TempDir(), "file"), make([]byte, 1<<20)
	if err := Put(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for range 200 {
			if err = Put(path, content, 0o600); err != nil {
				break
			}
		}
		written <- err
	}()
	for {
		got, err := os.ReadFile(path)
		if err != nil || len(got) != len(content) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(content), err)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
