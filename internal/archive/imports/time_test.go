// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"slices"
	"strings"
	"testing"
)

// TestTimeOfScript: the command may be a script of several lines.
func TestTimeOfScript(t *testing.T) {
	f := mustFile(t, "time.txt")
	f.Text = []byte(strings.Replace(string(f.Text), "./solver -n 100 mesh.dat", "sh -c cd /work\n\nsolve: mesh\n\tsort out", 1))
	got, err := Read("", f)
	if err != nil || len(got.Tasks) != 2 {
		t.Fatalf("%d tasks, %v", len(got.Tasks), err)
	}
	if want := strings.Fields("sh -c cd /work solve: mesh sort out"); !slices.Equal(got.Tasks[0].Account.Command, want) || *got.Tasks[0].Account.UserSeconds != 10.5 {
		t.Errorf("%+v", got.Tasks[0].Account)
	}
}
