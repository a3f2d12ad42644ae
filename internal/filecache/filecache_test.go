// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestPutAndGet(t *testing.T) {
	d := Dir(t.TempDir())
	if got := d.Get("a"); got != nil {
		t.Errorf("%q in an empty cache", got)
	}
	for _, content := range []string{"first", "second, in its place"} {
		if err := d.Put("a", []byte(content), 10); err != nil {
			t.Fatal(err)
		}
		if got := string(d.Get("a")); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	}
	if files := names(t, d); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

func TestNoDirectory(t *testing.T) {
	var d Dir
	if err := d.Put("a", []byte("x"), 1); err != nil || d.Get("a") != nil {
		t.Errorf("the empty cache keeps something, %v", err)
	}
	d = Dir(filepath.Join(t.TempDir(), "none"))
	if err := d.Put("a", []byte("x"), 1); err == nil || d.Get("a") != nil {
		t.Error("kept in a directory that is not there")
	}
}

func TestFullDirectoryIsEmptied(t *testing.T) {
	d := Dir(t.TempDir())
	for i := range 5 {
		if err := d.Put(fmt.Sprint(i), []byte("x"), 3); err != nil {
			t.Fatal(err)
		}
	}
	if files := names(t, d); len(files) != 2 || d.Get("4") == nil {
		t.Errorf("files %v, want the two put last", files)
	}
}

// Many writers of one name: whoever reads gets one of them, whole.
func TestWritersTogether(t *testing.T) {
	d := Dir(t.TempDir())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := d.Put("a", []byte(fmt.Sprintf("%08d", i)), 100); err != nil {
					t.Error(err)
				}
				if got := d.Get("a"); len(got) != 8 {
					t.Errorf("read %q", got)
				}
			}
		})
	}
	wg.Wait()
}

func names(t *testing.T, d Dir) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
