// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

func mustOpen(t *testing.T, pid int) *Handle {
	t.Helper()
	h, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestReadAndWrite(t *testing.T) {
	h := mustOpen(t, os.Getpid())
	word := new(uint64)
	*word = 0x1122334455667788
	address, got := uint64(uintptr(unsafe.Pointer(word))), make([]byte, 8)
	if err := h.Read(address, got); err != nil || binary.LittleEndian.Uint64(got) != *word {
		t.Errorf("read % x, %v", got, err)
	}
	if err := h.Write(address, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil || *word != 1 {
		t.Errorf("%d after writing 1, %v", *word, err)
	}
	if err := h.Read(8, got); !errors.Is(err, unix.EFAULT) {
		t.Errorf("where nothing is mapped: %v", err)
	}
	if n := h.ReadSome(8, got); n != 0 {
		t.Errorf("%d bytes where nothing is mapped", n)
	}
	pages, err := unix.Mmap(-1, 0, 3*pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(pages)
	if err := unix.Mprotect(pages[pageBytes:2*pageBytes], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	start := uint64(uintptr(unsafe.Pointer(&pages[0]))) + 100
	if n := h.ReadSome(start, make([]byte, 3*pageBytes-100)); n != pageBytes-100 {
		t.Errorf("%d bytes up to a guard page, want %d", n, pageBytes-100)
	}
	if err := h.Read(address, nil); err != nil {
		t.Errorf("no bytes: %v", err)
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

// cat runs until its input ends. become has it execute another cat, which has begun
// when it answers.
func startCat(t *testing.T) (pid int, become, end func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read line; exec cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() { _ = stdin.Close(); _ = cmd.Wait() }
	t.Cleanup(end)
	return cmd.Process.Pid, func() {
		if _, err := io.WriteString(stdin, "\nx"); err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}, end
}

// TestImageGone: the memory of a program that is executed no more is out of reach,
// whatever its process executes now.
func TestImageGone(t *testing.T) {
	for _, what := range []string{"another program", "nothing"} {
		pid, become, end := startCat(t)
		before, err := procid.Of(pid)
		if err != nil {
			t.Fatal(err)
		}
		h := mustOpen(t, pid)
		maps, err := procid.ReadFile(pid, "maps", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var address uint64
		if _, err := fmt.Sscanf(string(maps), "%x-", &address); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(h.Check(), h.Read(address, make([]byte, 8))); err != nil {
			t.Fatal(err)
		}
		want := ErrImageGone
		if become(); what == "nothing" {
			end()
		} else if _, err := Hold(before); !errors.Is(err, ErrImageGone) {
			t.Errorf("held by what it executed before: %v", err)
		}
		for call, err := range map[string]error{"read": h.Read(address, make([]byte, 8)), "write": h.Write(address, make([]byte, 8))} {
			if !errors.Is(err, want) {
				t.Errorf("%s, where it executes %s: %v", call, what, err)
			}
		}
		if err := h.Check(); !errors.Is(err, ErrImageGone) && !errors.Is(err, procid.ErrGone) {
			t.Errorf("check, where it executes %s: %v", what, err)
		}
	}
}

// TestKeeper: the image is opened once, and what is to be asked is asked afterwards.
func TestKeeper(t *testing.T) {
	pid, become, _ := startCat(t)
	identity, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	var k Keeper
	no := errors.New("no")
	if _, err := k.Hold(identity, func(int) error { return no }); !errors.Is(err, no) {
		t.Errorf("%v, want %v", err, no)
	}
	h, err := k.Hold(identity, func(int) error { become(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(); !errors.Is(err, ErrImageGone) {
		t.Errorf("another program, since it was asked about: %v", err)
	}
	if same, err := k.Hold(identity, nil); same != h || err != nil {
		t.Errorf("another handle, %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if _, err := k.Hold(identity, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(1<<22 + 1); !errors.Is(err, procid.ErrGone) {
		t.Errorf("no such process: %v", err)
	}
	if err := Accessible(os.Getpid()); err != nil {
		t.Errorf("this process: %v", err)
	}
}
