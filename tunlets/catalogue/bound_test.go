// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"strings"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// TestProcessesBeyondTheBound: a tunlet that follows no further process says so once, and wants no
// samples of it.
func TestProcessesBeyondTheBound(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			remarks, interests := startMany(t, name, 5000)
			if len(remarks) != 1 || !strings.HasPrefix(remarks[0], "more than ") {
				t.Errorf("remarks %q, want one", remarks)
			}
			for _, i := range interests {
				if i.GetAll() || len(i.GetLevels()) > 0 || i.GetAfterNanos() > 0 {
					t.Errorf("wants %v of a process that it does not follow", i)
				}
			}
			if len(interests) == 0 {
				t.Error("wants all samples of a process that it does not follow")
			}
		})
	}
}

// startMany starts so many processes that concern a tunlet, and returns all its remarks and the
// interests in the last process.
func startMany(t *testing.T, name string, processes uint64) (remarks []string, interests []*attunev1.SampleInterest) {
	t.Helper()
	options := sessions[name].options
	server := sdk.NewServer(New(name), sdk.ServerOptions{})
	if _, err := server.Configure(t.Context(), &attunev1.ConfigureRequest{Options: options}); err != nil {
		t.Fatal(err)
	}
	// Most tunlets do not want to hear of it, which is an error.
	_, _ = server.ApplicationStarted(t.Context(), &attunev1.ApplicationStartedRequest{Application: &attunev1.Application{Mode: "tune"}})
	for p := range processes {
		started, err := server.ProcessStarted(t.Context(), &attunev1.ProcessStartedRequest{Process: &attunev1.Process{
			Handle: 1 + p, Host: fmt.Sprint("node", p/64), Executable: "/usr/bin/program",
			Objects: []string{"/usr/lib/libc.so.6", "/usr/lib/libgomp.so.1", "/usr/lib/libmpi.so.40", "/usr/lib/libopen-pal.so.40", options["object"]},
		}})
		if err != nil {
			t.Fatal(err)
		}
		interests = started.GetReaction().GetInterests()
		for _, r := range started.GetReaction().GetRemarks() {
			remarks = append(remarks, r.GetText())
		}
	}
	return remarks, interests
}
