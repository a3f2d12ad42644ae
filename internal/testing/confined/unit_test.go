// SPDX-License-Identifier: Apache-2.0

package confined

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/packaging/systemd"
)

// TestDropIns: what a drop-in of the site allows stays allowed beside narrow.conf, which is
// read after it, and what that takes away does not come back, whichever is read first.
func TestDropIns(t *testing.T) {
	const metrics, exporter = "ReadWritePaths=/var/lib/prometheus/node-exporter\n", "/var/lib/prometheus/node-exporter"
	for name, text := range map[string]string{
		"before": systemd.Attuned + metrics + systemd.Narrow, "after": systemd.Attuned + systemd.Narrow + metrics,
	} {
		u, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(u.writable)
		if want := []string{"/dev/shm", exporter}; !slices.Equal(u.writable, want) {
			t.Errorf("%s: writes to %q, want %q", name, u.writable, want)
		}
	}
}
