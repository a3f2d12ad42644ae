// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the reference page")

const settingsPage = "../../docs/reference/settings.md"

// The reference page is made from the table that the code goes by.
func TestSettingsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Named settings\n\n" +
		"Settings that tunlets may change by name (`NamedSetting`). Made from `controller/actuate/settings.go`\n" +
		"by `go test ./controller/actuate -update`.\n\n" +
		"| Name | Values | Default | What it does | Way in |\n|---|---|---|---|---|\n")
	for _, s := range Settings() {
		fmt.Fprintf(&page, "| `%s` | %d to %d | %d | %s | %s |\n", s.Name, s.Min, s.Max, s.Default, s.Description, s.WayIn)
	}
	page.WriteString("\nUndoing one puts the very words back that it replaced, glibc's dynamic threshold included. Where libc's\n" +
		"parameters cannot be found (another libc than the node's own, in a container), it sets the default instead.\n")
	if *update {
		if err := os.WriteFile(settingsPage, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.String()); diff != "" {
		t.Errorf("docs/reference/settings.md is out of date; run go test ./controller/actuate -update\n%s", diff)
	}
}
