// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"strings"
	"testing"
	"time"
)

// Costs of a mechanism whose levels differ, and of one whose do not.
var (
	stub   = Costs{Each: 10, Sampled: 5, Aggregated: 4}
	uprobe = Costs{Each: 500, Sampled: 500, Aggregated: 500}
)

// process is a process that calls its functions so many times a second.
type process struct {
	ledger *Ledger
	loads  []Load
	rates  []uint64
}

const second = time.Second

// round plays one second of a process that uses a whole CPU.
func (p *process) round() []Step {
	for i := range p.loads {
		p.loads[i].Hits = p.rates[i]
		if p.loads[i].Now == Off {
			p.loads[i].Hits = 0
		}
	}
	steps := p.ledger.Round(second, second, p.loads)
	for _, s := range steps {
		for i := range p.loads {
			if p.loads[i].Point == s.Point {
				p.loads[i].Now = s.To
			}
		}
	}
	return steps
}

func (p *process) levels() string {
	names := []string{"each", "sampled", "aggregated", "off"}
	var out []string
	for _, load := range p.loads {
		out = append(out, names[load.Now])
	}
	return strings.Join(out, " ")
}

func start(loads ...Load) *process {
	for i := range loads {
		loads[i].Point = uint16(i + 1)
		loads[i].Now = loads[i].Asked
	}
	return &process{New(0.02), loads, make([]uint64, len(loads))}
}

// 2 % of a second are 20 ms.
func TestLess(t *testing.T) {
	tests := []struct {
		name  string
		loads []Load
		rates []uint64
		want  string
	}{
		{"affordable", []Load{{Costs: stub}}, []uint64{1_900_000}, "each"},
		{"one step", []Load{{Costs: stub}}, []uint64{2_100_000}, "sampled"},
		{"two steps", []Load{{Costs: stub}}, []uint64{4_500_000}, "aggregated"},
		{"nothing is cheap enough", []Load{{Costs: stub}}, []uint64{6_000_000}, "off"},
		{"levels that save nothing", []Load{{Costs: uprobe}}, []uint64{41_000}, "off"},
		{"what asks for little already", []Load{{Asked: Aggregated, Costs: stub}}, []uint64{6_000_000}, "off"},
		{"the most expensive only", []Load{{Costs: stub}, {Costs: uprobe}}, []uint64{1_000_000, 30_000}, "each off"},
		{"then the next", []Load{{Costs: stub}, {Costs: uprobe}}, []uint64{2_500_000, 60_000}, "sampled off"},
		{"hit by nobody", []Load{{Costs: uprobe}, {Costs: uprobe}}, []uint64{0, 50_000}, "each off"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := start(test.loads...)
			p.rates = test.rates
			for _, s := range p.round() {
				if !strings.Contains(s.Reason, "where the budget is 2 %") {
					t.Errorf("reason %q", s.Reason)
				}
			}
			if got := p.levels(); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if steps := p.round(); len(steps) != 0 {
				t.Errorf("and then %+v", steps)
			}
		})
	}
}

// A process that hardly runs may still be watched a little.
func TestIdleProcess(t *testing.T) {
	ledger := New(0.02)
	load := Load{Costs: uprobe, Hits: 1900}
	if steps := ledger.Round(second, 0, []Load{load}); len(steps) != 0 {
		t.Errorf("%+v", steps)
	}
	load.Hits = 2100
	if steps := ledger.Round(second, 0, []Load{load}); len(steps) != 1 || steps[0].To != Off {
		t.Errorf("%+v", steps)
	}
}

// What became cheap comes back, level by level, after its pause.
func TestMore(t *testing.T) {
	p := start(Load{Costs: stub})
	p.rates[0] = 6_000_000
	p.round()
	p.rates[0] = 500_000
	var seen []string
	for range 30 {
		if len(p.round()) > 0 {
			seen = append(seen, p.levels())
		}
	}
	if got := strings.Join(seen, ", "); got != "aggregated, sampled, each" {
		t.Errorf("came back as %s", got)
	}
}

// A step that comes into force some rounds later counts once.
func TestSlowStep(t *testing.T) {
	p := start(Load{Costs: stub})
	p.rates[0] = 2_100_000
	for range 4 {
		if steps := p.round(); len(steps) != 1 || steps[0].To != Sampled {
			t.Fatalf("%+v, want one to be sampled", steps)
		}
		p.loads[0].Now = Each
	}
	p.loads[0].Now = Sampled
	p.rates[0] = 500_000
	for range 4 {
		if steps := p.round(); len(steps) > 0 {
			t.Fatalf("%+v before its pause is over", steps)
		}
	}
	if p.round(); p.levels() != "each" {
		t.Errorf("%s after 5 s", p.levels())
	}
	p.rates[0] = 2_100_000
	p.round() // cut again
	p.rates[0] = 500_000
	for range 9 {
		p.round()
	}
	if p.levels() != "sampled" {
		t.Errorf("%s before 10 s are over", p.levels())
	}
	if p.round(); p.levels() != "each" {
		t.Errorf("%s after 10 s", p.levels())
	}
}

// Between half of the budget and the whole nothing changes.
func TestNoMoreAtTheEdge(t *testing.T) {
	p := start(Load{Costs: stub})
	p.rates[0] = 2_100_000
	p.round()
	p.rates[0] = 1_500_000 // 15 ms as each, 7.5 ms as it is
	for range 1000 {
		if steps := p.round(); len(steps) != 0 {
			t.Fatalf("%+v", steps)
		}
	}
}

// One that stays too expensive is tried less and less.
func TestTriesBecomeRare(t *testing.T) {
	p := start(Load{Asked: Aggregated, Costs: uprobe})
	p.rates[0] = 1_000_000
	const hour = 3600
	on := 0
	for range hour {
		p.round()
		if p.loads[0].Now != Off {
			on++
		}
	}
	if on == 0 || on > 14 { // 5 s, 10 s, ... 10 min
		t.Errorf("it was on for %d s of an hour", on)
	}
}
