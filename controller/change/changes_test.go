// SPDX-License-Identifier: Apache-2.0

package change

import (
	"os"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What may be changed is asked once for each program, however many changes there are, and a
// program that is to be left alone is found among others.
func TestAsksOnceForEachProgram(t *testing.T) {
	members := member.NewSet()
	for handle, executable := range []string{"/bin/one", "/bin/one", "/bin/other"} {
		members.Add(member.New(&attunev1.Process{
			Handle: uint64(handle), Executable: executable, Identity: &attunev1.ProcessIdentity{Pid: int32(os.Getpid() + handle)},
		}, member.Options{}))
	}
	var asked []string
	c := &Changes{options: Options{
		Members: members,
		Foreign: func(int) error { return nil },
		Untouched: func(executable string) string {
			if asked = append(asked, executable); executable == "/bin/other" {
				return "it is left alone"
			}
			return ""
		},
	}}
	for range 2 { // in one call, not for ever
		asked = nil
		if err := c.whyNot([]*attunev1.Change{{Process: 0}, {Process: 1}, {Process: 0}, {Process: 2}}); err == nil || err.Error() != "it is left alone" {
			t.Errorf("%v", err)
		}
		if want := []string{"/bin/one", "/bin/other"}; !slices.Equal(asked, want) {
			t.Errorf("asked about %q, want %q", asked, want)
		}
	}
}
