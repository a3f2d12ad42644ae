// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// raw lays a record out as the programs do, without its first word.
func raw(record uprobesCapturedRecord, strings ...string) []byte {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&record)), capturedSize)[ringWord:]
	bytes = slices.Clone(bytes)
	for _, s := range strings {
		bytes = append(bytes, s...)
	}
	return bytes
}

func TestWire(t *testing.T) {
	var record uprobesCapturedRecord
	record.Record.Time, record.Record.Point, record.Record.Flags = 1, 2, recordDuration
	record.Record.Thread, record.Record.Value, record.Record.Extra = 3, 4, 5
	plain := hit{Time: 1, Point: 2, Flags: recordDuration, Thread: 3, Value: 4, Extra: 5, Process: 6}
	with := func(kinds uint32, words ...uint64) hit {
		h := plain
		h.Kinds, h.Words = kinds, words
		h.Flags |= uint16(len(words)/3) << attunev1.RecordFollow
		return h
	}
	const hello = 0x6f6c6c6568
	tests := []struct {
		name    string
		kinds   uint32
		values  []uint64
		strings []string
		want    hit
	}{
		{"one number", 0x1, []uint64{7}, nil, with(0x1, 7, 0, 0)},
		{"four numbers", 0x6421, []uint64{7, 8, 9, 0}, nil, with(0x6421, 7, 8, 9, 0, 0, 0)},
		{
			"a string between numbers", 0x151, []uint64{7, 5, 9}, []string{"hello\x00xy"},
			with(0x151, 7, 5, hello, 9, 0, 0),
		},
		{"an empty string", 0x15, []uint64{0, 9}, nil, with(0x15, 0, 9, 0)},
		{
			"a cut string of two words", 0x55, []uint64{10 | stringCut, 8}, []string{"01234567" + "89XXXXXX", "abcdefgh"},
			with(0x55, 10|stringCut, 0x3736353433323130, 0x3938, 8, 0x6867666564636261, 0),
		},
		{"a string that is not there", 0x5, []uint64{300}, []string{"hello"}, with(0x5, 300, 0, 0)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := record
			r.Captures, r.Kinds = uint32(len(test.values)), test.kinds
			copy(r.Value[:], test.values)
			got := decodeBatch(t, Batch{Process: 6, Records: appendWire(nil, raw(r, test.strings...)), Hits: 1})
			if diff := cmp.Diff([]hit{test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := decodeBatch(t, Batch{Process: 6, Records: appendWire(nil, raw(record)[:attunev1.RecordSize]), Hits: 1})
	if diff := cmp.Diff([]hit{plain}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("without captures:\n%s", diff)
	}
}

// TestRestsWithoutPoints: records are looked for while a point delivers them, and
// once more when the kernel has detached the last one.
func TestRestsWithoutPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes := make([]byte, recordSize<<4)
		r := &recorder{watches: &watchTable{}, done: make(chan struct{}), begun: queue.NewBell()}
		r.ring.state.Elements, r.ring.bytes, r.ring.size = make([]uprobesRing, 1), bytes, uint64(len(bytes))
		at := 0
		record := func() { // as a program does
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&bytes[at])), recordSize|1<<32)
			at += recordSize
		}
		ctx, stop := context.WithCancel(t.Context())
		var hits atomic.Uint64
		ended := make(chan error)
		go func() { ended <- r.Run(ctx, func(b Batch) { hits.Add(b.Hits) }) }()
		wantHits := func(when string, want uint64) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if hits := hits.Load(); hits != want {
				t.Errorf("%s: %d records, want %d", when, hits, want)
			}
		}
		wantHits("nothing", 0)
		record()
		wantHits("before any point", 0)
		r.begin()
		wantHits("with a point", 1)
		record()
		wantHits("later", 2)
		record()
		r.end()
		wantHits("detached", 3)
		record()
		wantHits("after that", 3)
		stop()
		if err := <-ended; err != nil || hits.Load() != 4 {
			t.Errorf("at the end: %d records, want 4; %v", hits.Load(), err)
		}
	})
}

// What stands in the ring comes from a program of ours, but a wrong number of
// captures must not take the controller down.
func FuzzWire(f *testing.F) {
	f.Add(uint32(3), uint32(0x555), []byte("some bytes of some string"))
	f.Fuzz(func(t *testing.T, captures, kinds uint32, tail []byte) {
		var record uprobesCapturedRecord
		record.Captures, record.Kinds = captures, kinds
		for i := range record.Value {
			record.Value[i] = uint64(len(tail)) * uint64(i)
		}
		decodeBatch(t, Batch{Records: appendWire(nil, raw(record, string(tail))), Hits: 1})
	})
}
