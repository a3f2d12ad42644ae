// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/internal/abitest"
)

func TestMessagesEqualHeader(t *testing.T) {
	ours := regexp.MustCompile(`ATTUNE_ABI_|ATTUNE_(GATE|HELLO|WELCOME|READY)_|attune_(hello|welcome|ready|go)\b`)
	want := abitest.Layout(t)
	for name := range want {
		if !ours.MatchString(name) {
			delete(want, name)
		}
	}
	got := map[string]uint64{
		"ATTUNE_ABI_MAGIC":         abiMagic,
		"ATTUNE_ABI_VERSION":       abiVersion,
		"ATTUNE_GATE_MILLISECONDS": gateMilliseconds,
		"ATTUNE_HELLO_EARLY":       uint64(Early),
		"ATTUNE_HELLO_FORKED":      uint64(Forked),
		"ATTUNE_HELLO_INJECTED":    uint64(Injected),
		"ATTUNE_HELLO_UNFILTERED":  uint64(Unfiltered),
		"ATTUNE_WELCOME_OK":        welcomeOK,
		"ATTUNE_WELCOME_REFUSED":   welcomeRefused,
		"ATTUNE_READY_OK":          readyOK,
		"ATTUNE_READY_NO_MAP":      readyNoMap,
		"ATTUNE_READY_BAD_ABI":     readyBadABI,

		"attune_hello":         helloSize,
		"attune_hello.magic":   helloMagic,
		"attune_hello.version": helloVersion,
		"attune_hello.flags":   helloFlags,
		"attune_hello.pid":     helloPID,
		"attune_hello.tid":     helloTID,
		"attune_hello.attempt": helloAttempt,

		"attune_welcome":            welcomeSize,
		"attune_welcome.magic":      welcomeMagic,
		"attune_welcome.version":    welcomeVersion,
		"attune_welcome.status":     welcomeStatus,
		"attune_welcome.total_size": welcomeTotalSize,

		"attune_ready":        readySize,
		"attune_ready.magic":  readyMagic,
		"attune_ready.status": readyStatus,
		"attune_ready.error":  readyError,

		"attune_go":        goSize,
		"attune_go.magic":  goMagic,
		"attune_go.status": goStatus,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dmlib_gate.h (-) and wire.go (+) differ:\n%s", diff)
	}
}

func TestDecodeHello(t *testing.T) {
	good := Hello{Flags: Forked, PID: 7, TID: 8, Attempt: 2}
	spoil := func(at int) []byte {
		b := encodeHello(good)
		b[at] ^= 0x40
		return b
	}
	tests := []struct {
		name string
		b    []byte
		want Hello
		err  error
	}{
		{"good", encodeHello(good), good, nil},
		{"negative ids stay what they are", encodeHello(Hello{PID: -1, TID: -2}), Hello{PID: -1, TID: -2}, nil},
		{"empty", nil, Hello{}, ErrProtocol},
		{"short", encodeHello(good)[:31], Hello{}, ErrProtocol},
		{"long", append(encodeHello(good), 0), Hello{}, ErrProtocol},
		{"magic", spoil(helloMagic), Hello{}, ErrProtocol},
		{"version", spoil(helloVersion), Hello{}, ErrVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeHello(tt.b)
			if !errors.Is(err, tt.err) || got != tt.want {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// FuzzDecodeHello: whatever is accepted is what it says, byte by byte.
func FuzzDecodeHello(f *testing.F) {
	f.Add(encodeHello(Hello{}))
	f.Add(encodeHello(Hello{Flags: Injected, PID: 1, TID: 1, Attempt: 1}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHello(b)
		if err != nil {
			if h != (Hello{}) || !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrVersion) {
				t.Errorf("got %+v with %v", h, err)
			}
			return
		}
		const fields = helloAttempt + 4
		if again := encodeHello(h); len(b) != helloSize || !bytes.Equal(again[:fields], b[:fields]) {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}
