// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
)

// The parts of the programs that call no helper run natively, with checks that
// the kernel does not have.
func TestWatchHeaderNatively(t *testing.T) {
	binary := mustCompile(t, "watch_test.c", "-I../include", "-I../../../dmlib/include", "-fsanitize=address,undefined", "-Wno-unused-variable")
	if out, err := exec.Command(binary).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestNewWatch(t *testing.T) {
	tests := []struct {
		name    string
		config  pointConfig
		flags   uint32
		reserve uint32
	}{
		{"counts", pointConfig{program: capture.Program{Value: capture.None, Key: capture.None}}, 0, 40},
		{"event", pointConfig{events: true}, watchEvent, 40},
		{"captures", pointConfig{events: true, program: capture.Program{Captures: []capture.Capture{
			{Source: capture.SourceCallSite}, {Source: capture.SourceThread},
			{Source: capture.SourceParameter, Type: capture.TypeString, Limit: 13},
		}}}, watchEvent | watchCallSite, 112 + 16 + 8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.config.sampleMask, test.config.minValue, test.config.maxValue = 7, 2, 9
			watch := new(watchMemory).newWatch(test.config)
			if watch.Flags != test.flags || watch.Reserve != test.reserve {
				t.Errorf("flags %#x, room for %d bytes; want %#x, %d", watch.Flags, watch.Reserve, test.flags, test.reserve)
			}
			if watch.SampleMask != 7 || watch.MinValue != 2 || watch.MaxValue != 9 {
				t.Errorf("watch = %+v", watch)
			}
		})
	}
}

// The longest record must fit into what the ring keeps free behind its end.
func TestLongestRecord(t *testing.T) {
	var program capture.Program
	for range capture.MaxCaptures {
		program.Captures = append(program.Captures, capture.Capture{Type: capture.TypeString, Limit: capture.MaxStrings / capture.MaxCaptures})
	}
	program.Captures[0].Limit++ // rounding up takes most where all are odd
	if bytes := recordBytes(program); bytes > ringGuard {
		t.Errorf("%d bytes", bytes)
	}
}

func TestBootOffset(t *testing.T) {
	got, err := bpf.ParseBootOffset("monotonic          -5         7\nboottime        -172800         9\n")
	if err != nil || got != -172800_000_000_000+9 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := bpf.ParseBootOffset("boottime x"); err == nil {
		t.Error("nonsense accepted")
	}
}
