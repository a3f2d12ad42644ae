// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/analyzer/recorder"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func header() *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{Version: "test"}}}
}

// remark is a frame of that size that is no measured data, records is one that
// is.
func remark(at int64, size int) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{AtNanos: at, What: &attunev1.RecordingFrame_Decision{
		Decision: &attunev1.RecordedDecision{Reason: strings.Repeat("x", size)},
	}}
}

func records(at int64, size int) *attunev1.RecordingFrame {
	return &attunev1.RecordingFrame{AtNanos: at, What: &attunev1.RecordingFrame_Records{
		Records: &attunev1.NamedRecords{Records: make([]byte, size)},
	}}
}

// count reads a recording and counts its frames.
func count(t *testing.T, file *bytes.Buffer) (n int, end *attunev1.RecordingEnd) {
	t.Helper()
	in, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		_, err := in.Next()
		if errors.Is(err, io.EOF) {
			return n, in.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
}

func TestRecord(t *testing.T) {
	var file bytes.Buffer
	r, err := recorder.New(&file)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(header())
	for i := range int64(1000) {
		r.Take(remark(i, 10))
	}
	if dropped, err := r.Close(patience.Limit); dropped != 0 || err != nil {
		t.Fatal(dropped, err)
	}
	r.Take(remark(2000, 10)) // too late: left out
	if n, _ := count(t, &file); n != 1000 {
		t.Errorf("%d frames, want 1000", n)
	}
}

// slow is a file that takes nothing before it is let.
type slow struct {
	bytes.Buffer
	preamble bool
	let      chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	if s.preamble {
		<-s.let
	}
	s.preamble = true
	return s.Buffer.Write(p)
}

// TestSlowFile fills the queue: data is dropped and counted, news has room.
func TestSlowFile(t *testing.T) {
	file := &slow{let: make(chan struct{})}
	r, err := recorder.New(file)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(header())
	sent := 0
	for i := range int64(60) {
		r.Take(records(i, 1<<20))
		sent++
	}
	r.Take(remark(100, 10))
	close(file.let)
	dropped, err := r.Close(patience.Limit)
	if err != nil || dropped == 0 || dropped > 50 {
		t.Fatalf("%d dropped, %v", dropped, err)
	}
	n, end := count(t, &file.Buffer)
	if n != sent-int(dropped)+1 || end.GetDropped() != dropped {
		t.Errorf("%d frames of %d, %d dropped, end %v", n, sent+1, dropped, end)
	}
	if text := recorder.Problem(dropped, nil); !strings.Contains(text, "lacks") {
		t.Errorf("%q", text)
	}
}

// TestFullOfNews: what must not be dropped ends the recording instead.
func TestFullOfNews(t *testing.T) {
	file := &slow{let: make(chan struct{})}
	r, err := recorder.New(file)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(header())
	for i := range int64(60) {
		r.Take(remark(i, 1<<20))
	}
	close(file.let)
	_, err = r.Close(patience.Limit)
	if text := recorder.Problem(0, err); !strings.Contains(text, "ends early") {
		t.Errorf("%v: %q", err, text)
	}
	in, err := recording.NewReader(&file.Buffer)
	if err == nil {
		defer in.Close()
		for err == nil {
			_, err = in.Next()
		}
	}
	if !errors.Is(err, recording.ErrTruncated) {
		t.Errorf("reading it: %v, want that it is cut off", err)
	}
}

// full is a disk without space.
type full struct{ left int }

var errSpace = errors.New("no space")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errSpace
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	if _, err := recorder.New(&full{left: 3}); !errors.Is(err, errSpace) {
		t.Errorf("at the beginning: %v", err)
	}
	r, err := recorder.New(&full{left: 100})
	if err != nil {
		t.Fatal(err)
	}
	r.Take(header())
	for i := range int64(100) {
		r.Take(records(i, 100))
	}
	if _, err := r.Close(patience.Limit); !errors.Is(err, errSpace) {
		t.Errorf("in the middle: %v", err)
	}
}

// TestHangingFile is not waited for.
func TestHangingFile(t *testing.T) {
	file := &slow{let: make(chan struct{})}
	r, err := recorder.New(file)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(header())
	if _, err := r.Close(time.Millisecond); err == nil {
		t.Error("no error")
	}
	close(file.let)
	if _, err := r.Close(patience.Limit); err != nil {
		t.Error(err)
	}
}
