// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// FuzzOpen reads mutated ELF files by every method. Memory is bounded by the
// size of the file, so a crash is a defect and so is a run out of memory.
func FuzzOpen(f *testing.F) {
	for _, path := range []string{
		mustBuild(f, "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"),
		mustBuildLibrary(f, "-s", "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"),
		mustBuildLibrary(f, "-s", "-Wl,--hash-style=sysv", "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"),
	} {
		data := files.Read(f, path)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fd, err := unix.MemfdCreate("fuzz", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		memory := os.NewFile(uintptr(fd), "fuzz")
		if _, err := memory.Write(data); err != nil {
			t.Fatal(err)
		}
		file, err := objfile.OpenFile(memory)
		if err != nil {
			return
		}
		defer file.Close()
		file.BuildID()
		file.SOName()
		file.BindNow()
		file.Interpreter()
		file.Symbol("versioned")
		file.Lookup("version", objfile.LookupOptions{})
		file.Lookup("lib*", objfile.LookupOptions{Limit: 3})
		file.Section(".gnu_debugdata", 1<<20)
		file.GOTSlots("*")
		file.Outline()
		file.Frames()
		file.Calls("*")
		file.IndirectSlots(1)
		file.Functions("*")
		file.DebugFile()
		file.Loaded(1 << 20)
		symbols, err := file.Lookup("*", objfile.LookupOptions{})
		if len(symbols) > objfile.MaxMatches || err != nil && len(symbols) == 0 && errors.Is(err, objfile.ErrTooManySymbols) {
			t.Errorf("%d symbols, %v", len(symbols), err)
		}
		for _, s := range symbols {
			if s.Name == "" || s.InFile && s.FileOffset >= uint64(len(data)) {
				t.Errorf("symbol %+v in a file of %d bytes", s, len(data))
			}
		}
	})
}

func FuzzInspect(f *testing.F) {
	data := files.Read(f, mustBuild(f, "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"))
	f.Add(data)
	f.Add([]byte("#!/usr/bin/env -S A=b sh -e\n"))
	f.Add([]byte("#!\x00"))
	path := f.TempDir() + "/program"
	f.Fuzz(func(t *testing.T, data []byte) {
		files.Write(t, path, data, 0o755)
		got := objfile.Inspect(path)
		if got.Kind == objfile.KindUnknown {
			t.Errorf("unknown kind: %+v", got)
		}
		if err := got.Runnable(); err == nil && got.Kind == objfile.KindCorrupt {
			t.Errorf("corrupt, but runnable: %+v", got)
		}
		got.PreloadRefusal()
	})
}
