// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// preambleBytes is what stands before the compressed stream, and windowBytes how far
// back that refers.
const (
	preambleBytes = 12
	windowBytes   = 256 << 10
)

func header() *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{
		Header: &attunev1.RecordingHeader{Version: "test", StartUnixNano: 42},
	}}
}

func end() *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{AtNanos: 1e9, What: &attunev1.RecordingFrame_End{End: &attunev1.RecordingEnd{Dropped: 3}}}
}

// some are frames as a session has them.
func some() (out []*attunev1.RecordingFrame) {
	for i := range int64(40) {
		out = append(out, &attunev1.RecordingFrame{AtNanos: i * 1e6, What: &attunev1.RecordingFrame_Samples{
			Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{Process: uint64(i)}}},
		}})
	}
	return out
}

// write returns a file with these frames.
func write(t testing.TB, frames ...*attunev1.RecordingFrame) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := recording.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// whole returns a file that is as it should be.
func whole(t testing.TB) []byte {
	t.Helper()
	return write(t, append(append([]*attunev1.RecordingFrame{header()}, some()...), end())...)
}

// read returns what is in a file, as far as it goes; io.EOF: that is all.
func read(r io.Reader) (frames []*attunev1.RecordingFrame, err error) {
	in, err := recording.NewReader(r)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for {
		f, err := in.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	in, err := recording.NewReader(bytes.NewReader(whole(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.Header().GetVersion() != "test" || !in.Start().Equal(time.Unix(0, 42)) {
		t.Errorf("header %v", in.Header())
	}
	for i, want := range some() {
		got, err := in.Next()
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		if d := cmp.Diff(want, got, protocmp.Transform()); d != "" {
			t.Fatalf("frame %d (-want +got):\n%s", i, d)
		}
	}
	for range 2 {
		if _, err := in.Next(); !errors.Is(err, io.EOF) || in.End().GetDropped() != 3 {
			t.Errorf("after the last frame: %v, end %v", err, in.End())
		}
	}
}

// raw returns a file whose compressed stream holds these bytes.
func raw(t testing.TB, stream []byte) []byte {
	t.Helper()
	file := bytes.NewBuffer(bytes.Clone(whole(t)[:preambleBytes]))
	w, err := zstd.NewWriter(file, zstd.WithWindowSize(windowBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestEmptyFrameIsNotWritten(t *testing.T) {
	if _, err := recording.Encode(&attunev1.RecordingFrame{}); err == nil {
		t.Error("an empty frame is encoded, which no reader takes")
	}
}

func TestBadFiles(t *testing.T) {
	good := whole(t)
	earlier, later := bytes.Clone(good), bytes.Clone(good)
	binary.LittleEndian.PutUint32(earlier[8:], 1)
	binary.LittleEndian.PutUint32(later[8:], 3)
	backwards := some()
	backwards[7].AtNanos = 0
	for _, tt := range []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"empty", nil, recording.ErrTruncated, "empty"},
		{"text", []byte("# nanoseconds process user system\n"), recording.ErrFormat, ""},
		{"a few bytes", good[:5], recording.ErrTruncated, "5 bytes"},
		{"a few bytes of something else", []byte("abc"), recording.ErrFormat, ""},
		{"nothing but the preamble", good[:preambleBytes], recording.ErrTruncated, "after frame 0"},
		{"an earlier version", earlier, recording.ErrVersion, "format 1, this attune reads 2"},
		{"a later version", later, recording.ErrVersion, "format 3, this attune reads 2"},
		{"no header", write(t, some()...), recording.ErrDamaged, "does not begin with a header"},
		{"two headers", write(t, header(), header(), end()), recording.ErrDamaged, "second header"},
		{"never closed", write(t, append([]*attunev1.RecordingFrame{header()}, some()...)...), recording.ErrTruncated, "after frame 41, at 39ms"},
		{"something behind the end", write(t, header(), end(), end()), recording.ErrDamaged, "behind its end"},
		{"something behind the stream", append(bytes.Clone(good), "rubbish"...), recording.ErrDamaged, ""},
		{"zeros", raw(t, make([]byte, 1<<20)), recording.ErrDamaged, "frame 1 is said to have 0 bytes"},
		{"time runs backwards", write(t, append([]*attunev1.RecordingFrame{header()}, backwards...)...), recording.ErrDamaged, "frame 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(bytes.NewReader(tt.file))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %v that says %q", err, tt.want, tt.says)
			}
		})
	}
}

// begins reports whether frames are the first of those that were written.
func begins(frames, written []*attunev1.RecordingFrame) bool {
	return len(frames) <= len(written) && slices.EqualFunc(frames, written[:len(frames)], func(a, b *attunev1.RecordingFrame) bool {
		return proto.Equal(a, b)
	})
}

// TestEveryCut cuts a file at every byte: what is read is a beginning of what
// was written, and it never passes for the whole.
func TestEveryCut(t *testing.T) {
	good, written, most := whole(t), some(), 0
	for n := range len(good) {
		frames, err := read(bytes.NewReader(good[:n]))
		if !errors.Is(err, recording.ErrTruncated) && !errors.Is(err, recording.ErrFormat) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		if !begins(frames, written) {
			t.Fatalf("cut after %d bytes: %v", n, frames)
		}
		most = max(most, len(frames))
	}
	if most < 30 {
		t.Errorf("at most %d frames can be read of a cut file, want nearly all of %d", most, len(some()))
	}
}

// TestEveryDamage changes every byte: what is read is still what was written, or
// there is an error.
func TestEveryDamage(t *testing.T) {
	good, written := whole(t), some()
	for n := range len(good) {
		bad := bytes.Clone(good)
		bad[n] ^= 0x55
		frames, err := read(bytes.NewReader(bad))
		if !begins(frames, written) {
			t.Fatalf("byte %d changed: %v", n, frames)
		}
		if errors.Is(err, io.EOF) && len(frames) != len(written) {
			t.Fatalf("byte %d changed: %d frames pass for the whole", n, len(frames))
		}
	}
}

// broken is a file on a disk that cannot be read or written any more.
type broken struct {
	io.Reader
	left int
}

var errDisk = errors.New("disk broken")

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	if b.left -= n; b.left == 0 {
		return n, errDisk
	}
	return n, err
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestErrorsOfTheFile(t *testing.T) {
	good := whole(t)
	for _, left := range []int{3, preambleBytes + 40, len(good) - 20} {
		if _, err := read(&broken{Reader: bytes.NewReader(good), left: left}); !errors.Is(err, errDisk) {
			t.Errorf("reading, %d bytes: %v", left, err)
		}
	}
	if _, err := recording.NewWriter(&broken{left: 3}); !errors.Is(err, errDisk) {
		t.Errorf("beginning to write: %v", err)
	}
	w, err := recording.NewWriter(&broken{left: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append([]*attunev1.RecordingFrame{header()}, some()...) {
		err = errors.Join(err, w.Write(f))
	}
	if err = errors.Join(err, w.Flush()); !errors.Is(err, errDisk) {
		t.Errorf("writing: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errDisk) {
		t.Errorf("closing: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole(f))
	f.Add(write(f, header(), end()))
	f.Add(write(f, header()))
	f.Add(raw(f, make([]byte, 1<<20)))
	f.Fuzz(func(_ *testing.T, file []byte) {
		_, _ = read(bytes.NewReader(file)) // must end, without a panic
	})
}
