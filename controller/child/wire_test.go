// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A message comes as it was sent, whatever its size, and so does its descriptor.
func TestWire(t *testing.T) {
	for _, size := range []int{0, 1, packetSize - 60, packetSize, 3*packetSize + 1, mostFromChild - 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			own, other, err := socketPair(unix.SOCK_SEQPACKET)
			if err != nil {
				t.Fatal(err)
			}
			defer own.Close()
			conn, err := connOf(other)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sent := make(chan error, 1)
			go func() {
				c := newConversation(own, mostToChild, 1)
				sent <- c.send(message{Kind: find}, strings.Repeat("x", size), 0)
			}()
			m, file, err := receive(conn, mostFromChild, 1)
			if err = errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			if text, err := decode[string](m); err != nil || len(text) != size || file == nil {
				t.Errorf("%d bytes, file %v, error %v", len(text), file != nil, err)
			}
			_ = file.Close()
		})
	}
}

// FuzzReceive: whatever a process writes is a message or an error.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00{\"kind\":\"find\",\"call\":1}"), []byte{0})
	f.Add([]byte("\x01{\"kind\":"), []byte("\x00\"add\",\"body\":[[[]]]}"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		own, other, err := socketPair(unix.SOCK_SEQPACKET)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		var conn *net.UnixConn
		if conn, err = connOf(other); err != nil {
			t.Fatal(err)
		}
		for _, packet := range [][]byte{first, second} {
			_, _ = conn.Write(packet[:min(len(packet), 2*packetSize)]) // an empty one is none
		}
		conn.Close()
		_ = newConversation(own, mostFromChild, 0).listen(func(m message, file *os.File) error {
			if m.Kind == add {
				_, err := decode[int](m)
				return err
			}
			return newEcho(slog.New(slog.DiscardHandler)).handle(m, file)
		})
	})
}

// TestTextsOfProcesses: one whose program has a name that is not UTF-8 is told of, with the others.
func TestTextsOfProcesses(t *testing.T) {
	text, err := encoded(&attunev1.Process{Handle: 7, Executable: "caf\xe9"})
	got := new(attunev1.Process)
	if err := errors.Join(err, proto.Unmarshal(text, got)); err != nil || got.GetHandle() != 7 || got.GetExecutable() != "caf?" {
		t.Errorf("%v, %v", got, err)
	}
}
