// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// FuzzDecode: whatever stands in the file, what is read of it can be written, and
// is the same when it is read again, for no process in particular.
func FuzzDecode(f *testing.F) {
	knob := &attunev1.Change{Id: "c1", Process: 7, LeaseNanos: 1}
	written, err := encode([]*attunev1.Change{knob, {}})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{written, "null", "[]", "[null]", `[{"knob":1}]`, `[{"unknown":{}}]`, "[", `[{"process":"7"}]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := decode(text)
		if err != nil {
			return
		}
		again, err := encode(changes)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		read, err := decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		for _, c := range changes {
			c.Id, c.Process, c.LeaseNanos = "", 0, 0
		}
		if diff := cmp.Diff(changes, read, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
			t.Error(diff)
		}
	})
}
