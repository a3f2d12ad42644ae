// SPDX-License-Identifier: Apache-2.0

package bounded_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/bounded"
)

const mega = 1 << 20

// zeros is a stream without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// mustXz compresses so many zeros by the tool, with more arguments.
func mustXz(t testing.TB, size int64, arguments ...string) []byte {
	t.Helper()
	cmd := exec.Command("xz", append([]string{"-c"}, arguments...)...)
	cmd.Stdin = io.LimitReader(zeros{}, size)
	packed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func mustZlib(t testing.TB, size int64) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := io.CopyN(z, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// allocated is what a function allocates, bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestUnxz(t *testing.T) {
	text := strings.Repeat("a text that is packed and unpacked; ", 1000)
	tests := map[string]struct {
		arguments []string
		size      int64
		limit     uint64
		err       error
	}{
		"usual":               {nil, 3 * mega, 4 * mega, nil},
		"several blocks":      {[]string{"--block-size=65536"}, mega, 4 * mega, nil},
		"sizes in the blocks": {[]string{"-T2", "--block-size=65536"}, mega, 4 * mega, nil},
		"no check":            {[]string{"--check=none"}, mega, 4 * mega, nil},
		"crc32":               {[]string{"--check=crc32"}, mega, 4 * mega, nil},
		"sha256":              {[]string{"--check=sha256"}, mega, 4 * mega, nil},
		"nothing":             {nil, 0, mega, nil},
		"exactly the limit":   {nil, mega, mega, nil},
		"one byte more":       {nil, mega + 1, mega, bounded.ErrLimit},
		"a bomb":              {nil, 200 * mega, mega, bounded.ErrLimit},
		"a large dictionary":  {[]string{"--lzma2=dict=128MiB"}, mega, 4 * mega, bounded.ErrLimit},
		"a filter for code":   {[]string{"--x86", "--lzma2"}, mega, 4 * mega, bounded.ErrCorrupt},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := bounded.Unxz("it", mustXz(t, test.size, test.arguments...), test.limit)
			if !errors.Is(err, test.err) || err == nil && (int64(len(got)) != test.size || bytes.Count(got, []byte{0}) != len(got)) {
				t.Errorf("%d bytes, %v; want %v", len(got), err, test.err)
			}
		})
	}
	cmd := exec.Command("xz", "-c")
	cmd.Stdin = strings.NewReader(text)
	packed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := bounded.Unxz("text", packed, mega); err != nil || string(got) != text {
		t.Errorf("%.40q, %v", got, err)
	}
	for cut := range len(packed) {
		if _, err := bounded.Unxz("text", packed[:cut], mega); err == nil {
			t.Fatalf("cut off after %d of %d bytes: no error", cut, len(packed))
		}
	}
}

func TestInflate(t *testing.T) {
	packed := mustZlib(t, 8*mega)
	tests := map[string]struct {
		size, limit uint64
		err         error
	}{
		"usual":                        {8 * mega, 8 * mega, nil},
		"more than it may":             {8*mega + 1, 8 * mega, bounded.ErrLimit},
		"more than there is":           {8*mega + 1, 16 * mega, bounded.ErrCorrupt},
		"more than it can ever become": {1 << 40, 1 << 50, bounded.ErrCorrupt},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := bounded.Inflate("it", packed, test.size, test.limit)
			if !errors.Is(err, test.err) || err == nil && uint64(len(got)) != test.size {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// TestRefusedCostsNothing: what is refused was not decoded first.
func TestRefusedCostsNothing(t *testing.T) {
	bomb, dictionary := mustXz(t, 8*mega), mustXz(t, mega, "--lzma2=dict=1GiB")
	inflated := mustZlib(t, mega)
	for name, refused := range map[string]func() error{
		"xz":         func() error { _, err := bounded.Unxz("it", bomb, 4*mega); return err },
		"dictionary": func() error { _, err := bounded.Unxz("it", dictionary, 4*mega); return err },
		"zlib":       func() error { _, err := bounded.Inflate("it", inflated, 1<<40, 1<<50); return err },
		"claim":      func() error { _, err := bounded.Bytes("it", 1<<60, 4*mega); return err },
		"stream":     func() error { _, err := bounded.ReadAll("it", zeros{}, 1000); return err },
	} {
		var err error
		if got := allocated(func() { err = refused() }); got > mega || err == nil {
			t.Errorf("%s: %d bytes allocated, %v", name, got, err)
		}
	}
}

func TestWork(t *testing.T) {
	w := bounded.NewWork("a task", 10)
	if err := w.Spend(10); err != nil {
		t.Error(err)
	}
	if err := w.Spend(1); !errors.Is(err, bounded.ErrLimit) || !strings.Contains(err.Error(), "a task takes more than 10 steps") {
		t.Error(err)
	}
	if w.Spend(0) == nil {
		t.Error("goes on after its end")
	}
}

func FuzzUnxz(f *testing.F) {
	f.Add(mustXz(f, 1000))
	f.Add(mustXz(f, 1000, "--block-size=300"))
	f.Add(mustXz(f, 0, "--check=none"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		const limit = mega
		if data, err := bounded.Unxz("fuzz", packed, limit); err == nil && len(data) > limit {
			t.Errorf("%d bytes", len(data))
		}
	})
}

func FuzzInflate(f *testing.F) {
	f.Add(mustZlib(f, 1000), uint64(1000))
	f.Fuzz(func(t *testing.T, packed []byte, size uint64) {
		if data, err := bounded.Inflate("fuzz", packed, size, mega); err == nil && uint64(len(data)) != size {
			t.Errorf("%d bytes, want %d", len(data), size)
		}
	})
}

func TestHead(t *testing.T) {
	head := bounded.Head{Most: 5}
	for _, part := range []string{"", "one", " two", " three"} {
		if n, err := head.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("wrote %d of %q: %v", n, part, err)
		}
	}
	if string(head.Kept) != "one t" {
		t.Errorf("kept %q", head.Kept)
	}
}
