// SPDX-License-Identifier: Apache-2.0

package unixmsg

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzControl: what comes beside a message. Numbers that name no descriptor stand for
// those that do: a fuzzer must not close its own.
func FuzzControl(f *testing.F) {
	const none = 1 << 30
	f.Add(unix.UnixRights(none, none+1))
	f.Add(unix.UnixRights(none)[:18])
	f.Fuzz(func(t *testing.T, control []byte) {
		messages, err := unix.ParseSocketControlMessage(control)
		if err != nil {
			return
		}
		for i := range messages {
			data := messages[i].Data
			for at := 3; at < len(data); at += descriptorSize {
				data[at] |= 0x40
				data[at] &= 0x7f
			}
		}
		files, _ := parse(control)
		if len(files) > len(control)/descriptorSize {
			t.Errorf("%d descriptors in %d bytes", len(files), len(control))
		}
	})
}
