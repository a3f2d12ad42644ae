// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"errors"
	"testing"

	"github.com/attune-hpc/attune/dmlib/abi"
)

func TestDecodeHello(t *testing.T) {
	good := Hello{Flags: Forked, Attempt: 2}
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
		{"empty", nil, Hello{}, ErrProtocol},
		{"short", encodeHello(good)[:31], Hello{}, ErrProtocol},
		{"long", append(encodeHello(good), 0), Hello{}, ErrProtocol},
		{"magic", spoil(abi.HelloMagicAt), Hello{}, ErrProtocol},
		{"version", spoil(abi.HelloVersionAt), Hello{}, ErrVersion},
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

// FuzzDecodeHello: whatever is accepted is what it says, byte by byte, but for the ids,
// which are not read.
func FuzzDecodeHello(f *testing.F) {
	f.Add(encodeHello(Hello{}))
	f.Add(encodeHello(Hello{Flags: Injected, Attempt: 1, Deadline: 1}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHello(b)
		if err != nil {
			if h != (Hello{}) || !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrVersion) {
				t.Errorf("got %+v with %v", h, err)
			}
			return
		}
		said := bytes.Clone(b)
		clear(said[abi.HelloPIDAt:abi.HelloAttemptAt])
		if again := encodeHello(h); len(b) != abi.HelloBytes || !bytes.Equal(again, said) {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}
