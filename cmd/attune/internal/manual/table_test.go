// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestTablesBecomeLists(t *testing.T) {
	const text = "Before.\n\n| Key | Meaning | Default |\n|---|---|---|\n| `find` | `watch` \\| `poll`. | watch |\n| `name` | Of it. | |\n\nAfter.\n"
	const want = "Before.\n\n\n`find`\n: `watch` | `poll`. Default: watch.\n\n`name`\n: Of it.\n\nAfter.\n"
	if got := listed(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBody(t *testing.T) {
	const text = "<!-- SPDX -->\n# Title\n\nFirst, [here](other.md#x).\n\n## Settings\n\nSecond, [there](https://x.org).\n\n## More\n"
	for _, tt := range []struct{ heading, want string }{
		{"", "First, here.\n\n## Settings\n\nSecond, [there](https://x.org).\n\n## More\n"},
		{"Settings", "\nSecond, [there](https://x.org).\n"},
	} {
		if got, err := (page{heading: tt.heading}).body(text); err != nil || got != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.heading, got, err, tt.want)
		}
	}
	if _, err := (page{heading: "None"}).body(text); err == nil {
		t.Error("a heading that is not there is taken")
	}
}
