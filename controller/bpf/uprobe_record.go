// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

// Record is one hit of a point with event or sampled delivery. All but Process
// is struct attune_record of dmlib_abi.h.
type Record struct {
	// Time is CLOCK_MONOTONIC, in nanoseconds.
	Time uint64
	// Point that was hit.
	Point uint16
	// Flags: RecordDuration, RecordSampled.
	Flags uint16
	// Thread that hit it.
	Thread uint32
	// Value is the parameter, at exits the returned value.
	Value uint64
	// Extra is, with RecordDuration, the time in the call in nanoseconds.
	Extra uint64
	// Process of the thread.
	Process uint32
}

// Flags of a Record: those of dmlib_abi.h.
const (
	// RecordDuration: Extra is a duration.
	RecordDuration = 1 << 0
	// RecordSampled: this hit stands for several.
	RecordSampled = 1 << 1
)

const (
	// recordSize of a record in the ring, as the C has it.
	recordSize = int(unsafe.Sizeof(uprobesUprobeRecord{}))
	// maxBatch bounds how many records are handed over at once.
	maxBatch = 1024
	// The ring is polled this often: a wake-up per record would cost the
	// application 5 us. At the slower pace, when nothing comes, a ring of
	// 1 MiB holds 2.7 million records a second.
	pollBusy = time.Millisecond
	pollIdle = 8 * time.Millisecond
)

// Run hands over records in batches, in the order of the ring, until ctx ends
// or Close is called (nil both). What is in the ring when ctx ends is handed
// over first. The batch is reused: handle must not keep it. One Run at a time.
func (u *Uprobes) Run(ctx context.Context, handle func([]Record)) error {
	reader := u.awaitRecording(ctx)
	if reader == nil {
		return nil
	}
	drain := newDrain(reader, handle)
	poll := time.NewTimer(pollBusy)
	defer poll.Stop()
	pause := pollBusy
	for {
		select {
		case <-u.done:
			return nil
		case <-ctx.Done():
			_, err := drain.once(context.Background())
			return err
		case <-poll.C:
		}
		n, err := drain.once(ctx)
		if err != nil {
			return err
		}
		pause = min(2*pause, pollIdle)
		if n > 0 {
			pause = pollBusy
		}
		poll.Reset(pause)
	}
}

// awaitRecording returns the ring once some point delivers records, or nil if
// none did until ctx ended or Close was called.
func (u *Uprobes) awaitRecording(ctx context.Context) *ringbuf.Reader {
	select {
	case <-u.recording:
	case <-ctx.Done():
	case <-u.done:
	}
	select {
	case <-u.recording:
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.programs.reader
	default:
		return nil
	}
}

// drain empties a ring into batches.
type drain struct {
	reader *ringbuf.Reader
	sample ringbuf.Record
	batch  []Record
	handle func([]Record)
}

func newDrain(reader *ringbuf.Reader, handle func([]Record)) *drain {
	// A deadline in the past: never wait.
	reader.SetDeadline(time.Unix(1, 0))
	return &drain{reader: reader, batch: make([]Record, 0, maxBatch), handle: handle}
}

// once hands over what is in the ring, at most one ring's worth, and returns
// how many records that was. A closed ring is empty.
func (d *drain) once(ctx context.Context) (int, error) {
	total := 0
	for limit := d.reader.BufferSize() / recordSize; total < limit && ctx.Err() == nil; {
		n, err := d.fill()
		total += n
		if n > 0 {
			d.handle(d.batch)
		}
		if err != nil || n < maxBatch {
			return total, err
		}
	}
	return total, nil
}

func (d *drain) fill() (int, error) {
	d.batch = d.batch[:0]
	for len(d.batch) < maxBatch {
		err := d.reader.ReadInto(&d.sample)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
			break
		}
		if err != nil {
			return len(d.batch), fmt.Errorf("read uprobe records: %w", err)
		}
		record, err := decodeRecord(d.sample.RawSample)
		if err != nil {
			return len(d.batch), err
		}
		d.batch = append(d.batch, record)
	}
	return len(d.batch), nil
}

func decodeRecord(raw []byte) (Record, error) {
	if len(raw) != recordSize {
		return Record{}, fmt.Errorf("uprobe record of %d bytes, want %d", len(raw), recordSize)
	}
	order := binary.NativeEndian
	return Record{
		Time:    order.Uint64(raw),
		Point:   order.Uint16(raw[8:]),
		Flags:   order.Uint16(raw[10:]),
		Thread:  order.Uint32(raw[12:]),
		Value:   order.Uint64(raw[16:]),
		Extra:   order.Uint64(raw[24:]),
		Process: order.Uint32(raw[32:]),
	}, nil
}
