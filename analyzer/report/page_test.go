// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/safepage"
)

const attack = "<script>alert(1)</script>'\"&"

// TestPage: the page shows changes on its time line, in the account's time, and what others
// chose as text.
func TestPage(t *testing.T) {
	r := took()
	changed := example()
	r.Changes, r.Advice, r.Remarks = changed.Changes, changed.Advice, []Remark{{From: "x", Text: attack}}
	r.Command, r.Changes[0].Reason, r.Advice[0].Why, r.Account.Tree[1].Name = []string{attack}, attack, attack, attack
	r.StartedAt = time.Unix(1e9, 0)
	r.Account.Start = r.StartedAt.Add(20 * time.Millisecond)
	r.Account.Missing = map[string]string{"tree": attack}
	r.Changes[0].AppliedSeconds = ptr(50.02) // half way
	r.Account.History = []account.Moment{{Seconds: 50, Span: 50, Cores: 1, Resident: 1e9}, {Seconds: 100, Span: 50, Cores: 0.2, Resident: 2e9}}
	page := mustPage(t, r)
	for _, text := range []string{
		"&lt;script&gt;alert(1)", `class="mark" x1="480.000000"`, ">1</text>", "until 50.0 s: 1.00 cores", "up to 2 GB", "#SBATCH --mem=2385M", "asked of Slurm",
		"io.read_bytes", "host.cpus", "host.memory_bytes", "cpu_seconds", "What was changed", "What is advised", "waiting for storage",
	} {
		unmeasured := text == "io.read_bytes" || text == "host.cpus" || text == "host.memory_bytes"
		if unmeasured == strings.Contains(page, text) {
			t.Errorf("%q in the page: %t", text, strings.Contains(page, text))
		}
	}
}

// TestTimesOfTheCommand: text and page tell times since the command's start, which is after
// the session's.
func TestTimesOfTheCommand(t *testing.T) {
	r := took()
	r.Changes = example().Changes[:1]
	r.StartedAt = time.Unix(1e9, 0)
	r.Account.Start = r.StartedAt.Add(20 * time.Second)
	r.Account.History = []account.Moment{{Seconds: 50, Span: 50, Cores: 1}, {Seconds: 100, Span: 50, Cores: 1}}
	r.Changes[0].AppliedSeconds = ptr(70.0)
	r.Points = []Point{{Tunlet: OwnerName, ID: "p", State: "placed", Steps: []Step{{Seconds: 80, Process: 7, Text: "too dear"}}}}
	var text strings.Builder
	if err := r.WriteText(&text, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	page := mustPage(t, r)
	if !strings.Contains(text.String(), "in process 4711 after 50.0 s,") || !strings.Contains(text.String(), "after 60.0 s in process 7: too dear") {
		t.Error(text.String())
	}
	if !strings.Contains(page, "<td>50.0 s<td>malloc") || !strings.Contains(page, `x1="480.000000"`) {
		t.Error(page)
	}
}

// TestPageOfNothing: without an account there is a page all the same.
func TestPageOfNothing(t *testing.T) {
	r := example()
	r.Objective = &OwnObjective{Name: "score", Unit: "1/s", Values: 9, Mean: ptr(2.5), Description: attack}
	for _, text := range []string{
		"What was changed", "Attune itself took 0.2 s CPU", "1200 events, 28 lost (ring 1,", "Your objective score: 2.5 1/s on average, 9 values: &lt;script&gt;",
		"set b=1<br><td>the knob rests<td class=\"number\">12", "tunlet broken quarantined: exited 4 times",
	} {
		if page := mustPage(t, r); !strings.Contains(page, text) || strings.Contains(page, "How it went") {
			t.Errorf("%q is not in the page, or a time line is", text)
		}
	}
}

func mustPage(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.EncodeHTML(&out); err != nil {
		t.Fatal(err)
	}
	safepage.Check(t, out.Bytes())
	return out.String()
}
