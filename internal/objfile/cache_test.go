// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"os"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
)

func TestCacheSharesAndForgets(t *testing.T) {
	paths := []string{mustBuild(t), mustBuild(t, "-no-pie"), mustBuildLibrary(t)}
	before := openfiles.Count(t)
	cache := objfile.NewCache()
	objfile.KeepFiles(cache, 2)
	open := func(path string) *objfile.File {
		f, err := cache.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, again := open(paths[0]), open(paths[0])
	if first != again {
		t.Error("one file was opened twice")
	}
	for _, path := range paths[1:] { // the first is evicted, but in use
		open(path).Close()
	}
	if _, err := first.Symbol("main"); err != nil {
		t.Errorf("evicted while in use: %v", err)
	}
	first.Close()
	if _, err := again.Symbol("main"); err != nil {
		t.Errorf("closed by another user: %v", err)
	}
	again.Close()
	if got := openfiles.Count(t); got != before+2 {
		t.Errorf("%d descriptors, %d before, limit 2", got, before)
	}
	if err := cache.Close(); err != nil {
		t.Error(err)
	}
	open(paths[0]).Close() // works, keeps nothing
	if got := openfiles.Count(t); got != before {
		t.Errorf("%d descriptors after Close, %d before", got, before)
	}
}

func TestCacheSeesChangedFile(t *testing.T) {
	cache := objfile.NewCache()
	defer cache.Close()
	path := mustBuild(t)
	f, err := cache.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := files.Read(t, mustBuild(t, "-no-pie"))
	files.Write(t, path, data, 0o755)
	other, err := cache.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Type() == f.Type() {
		t.Error("a rewritten file is taken for the old one")
	}
}

func TestCacheByManyGoroutines(t *testing.T) {
	paths := []string{mustBuild(t), mustBuild(t, "-no-pie"), mustBuildLibrary(t)}
	before := openfiles.Count(t)
	cache := objfile.NewCache()
	objfile.KeepFiles(cache, 1)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 30 {
				f, err := cache.Open(paths[(i+n)%len(paths)])
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.Functions("*_function"); err != nil {
					t.Error(err)
				}
				f.Close()
			}
		})
	}
	group.Wait()
	cache.Close()
	if got := openfiles.Count(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}

// TestImagesKeepNoDescriptor covers the ways that fail, too.
func TestImagesKeepNoDescriptor(t *testing.T) {
	path := mustBuild(t)
	p := mustStart(t, nil, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	before := openfiles.Count(t)
	for range 20 {
		if _, err := objfile.Images(p.pid); err != nil {
			t.Fatal(err)
		}
	}
	if got := openfiles.Count(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}
