// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// mustMake makes a file as DMLib does, with other seals perhaps.
func mustMake(t *testing.T, header []byte, size int64, seals int) *os.File {
	t.Helper()
	fd, err := memfd(FileName)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), FileName)
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(header, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return file
}

func headersOf(g Geometry) [][]byte {
	var headers [][]byte
	for all := Headers(g); len(all) > 0; all = all[HeaderSize:] {
		headers = append(headers, all[:HeaderSize:HeaderSize])
	}
	return headers
}

func TestAdoptWhatAProcessMade(t *testing.T) {
	g := Geometry{}
	headers := headersOf(g)
	if len(headers) != attempts {
		t.Fatalf("%d headers, want %d", len(headers), attempts)
	}
	for i, header := range headers {
		file := mustMake(t, header, g.Bytes(), seals)
		app := dmtest.Map(t, file.Fd())
		app.Ready(17)
		m, err := Adopt(file)
		if err != nil {
			t.Fatalf("size %d: %v", i, err)
		}
		t.Cleanup(func() { m.Close() })
		if diff := cmp.Diff(g.withDefaults(), m.Geometry()); diff != "" {
			t.Error(diff)
		}
		if got := m.App(); !got.Ready || got.PID != 17 {
			t.Errorf("size %d: %+v", i, got)
		}
		mustSet(t, m, 0, PointControl{Point: 1, Event: true})
		if app.Control(0) == 0 {
			t.Error("the point is not in the process's memory")
		}
		g, _ = g.Smaller()
	}
}

// TestAdoptOfAnotherMachine: a packed program brings the headers of the machine it was packed on.
func TestAdoptOfAnotherMachine(t *testing.T) {
	for _, packedOn := range []Geometry{
		Fit(Limits{Locked: true}), GeometryFor(1, 1), GeometryFor(128, 1), GeometryFor(maxSlots, 1),
	} {
		g := packedOn
		for i, header := range headersOf(packedOn) {
			m, err := Adopt(mustMake(t, header, g.Bytes(), seals))
			if err != nil {
				t.Errorf("size %d of %+v: %v", i, packedOn, err)
				continue
			}
			if m.Geometry() != g {
				t.Errorf("size %d of %+v: %+v, want %+v", i, packedOn, m.Geometry(), g)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			g, _ = g.Smaller()
		}
	}
}

// TestAdoptRefusesSizes: a header that places everything as New would, in a file that is as long as it
// says, is still no reason to map any size, or to compute with one.
func TestAdoptRefusesSizes(t *testing.T) {
	largest := GeometryFor(maxSlots, 1)
	for name, change := range map[string]func(*Geometry){
		"16 GiB of rings":           func(g *Geometry) { g.RingRecords = 1 << 17 },
		"twice the rings' length":   func(g *Geometry) { g.RingRecords *= 2 },
		"one more table":            func(g *Geometry) { g.Tables++ },
		"more slots than any":       func(g *Geometry) { *g = small(); g.Slots = maxSlots + 1 },
		"more rings than any":       func(g *Geometry) { *g = small(); g.Rings = maxRings + 1 },
		"no slots":                  func(g *Geometry) { g.Slots = 0 },
		"no rings":                  func(g *Geometry) { g.Rings = 0 },
		"rings of nothing":          func(g *Geometry) { g.RingRecords = 0 },
		"records no power of two":   func(g *Geometry) { g.RingRecords = 1000 },
		"rings beyond what can be":  func(g *Geometry) { g.Rings, g.RingRecords = 1<<30, 1<<30 },
		"tables beyond what can be": func(g *Geometry) { g.Tables = 1<<32 - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			g := largest
			change(&g)
			if m, err := Adopt(mustMake(t, headerOf(g), int64(g.place().total), seals)); !errors.Is(err, ErrForeign) {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
}

func TestAdoptRefuses(t *testing.T) {
	size := small().Bytes()
	tests := []struct {
		name   string
		change func(header []byte)
		size   int64
		seals  int
	}{
		{"may shrink", nil, size, unix.F_SEAL_GROW},
		{"seals may come", nil, size, unix.F_SEAL_GROW | unix.F_SEAL_SHRINK},
		{"too small", nil, size - 1, seals},
		{"too large", nil, size + 1, seals},
		{"no header", nil, 100, seals},
		{"magic", func(h []byte) { h[abi.HeaderMagicAt]++ }, size, seals},
		{"version", func(h []byte) { h[abi.HeaderVersionAt]++ }, size, seals},
		{"no slots", func(h []byte) { store32(h, abi.HeaderSlotCountAt, 0) }, size, seals},
		{"more slots", func(h []byte) { store32(h, abi.HeaderSlotCountAt, 9) }, size, seals},
		{"longer rings", func(h []byte) { store32(h, abi.HeaderRingRecordsAt, 1<<20) }, size, seals},
		{"slots without end", func(h []byte) { store32(h, abi.HeaderSlotCountAt, 1<<32-1) }, size, seals},
		{"records no power of two", func(h []byte) { store32(h, abi.HeaderRingRecordsAt, 1000) }, size, seals},
		{"controls elsewhere", func(h []byte) { store64(h, abi.HeaderControlOffsetAt, 1<<40) }, size, seals},
		{"detached", func(h []byte) { store32(h, abi.HeaderDetachedAt, 1) }, size, seals},
		{"another's", func(h []byte) { store32(h, abi.HeaderControllerPIDAt, 1) }, size, seals},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := headersOf(small())[0]
			if tt.change != nil {
				tt.change(header)
			}
			header = header[:min(int64(len(header)), tt.size)]
			m, err := Adopt(mustMake(t, header, tt.size, tt.seals))
			if !errors.Is(err, ErrForeign) {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := Adopt(pipe); !errors.Is(err, ErrForeign) {
		t.Errorf("a pipe: %v", err)
	}
}
