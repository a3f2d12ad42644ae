// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// simulatedJob is ranks that call a collective operation over and over.
type simulatedJob struct {
	mu      sync.Mutex
	changed *sync.Cond
	entered []int // by call: ranks that have entered it
	size    int
}

func newSimulatedJob(size, calls int) *simulatedJob {
	j := &simulatedJob{size: size, entered: make([]int, calls)}
	j.changed = sync.NewCond(&j.mu)
	return j
}

// enter returns when all have entered the call.
func (j *simulatedJob) enter(call int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entered[call]++
	j.changed.Broadcast()
	for j.entered[call] < j.size {
		j.changed.Wait()
	}
}

// sleeper stands; it has ended when it says so.
type sleeper struct{ ended error }

func (s sleeper) Wait(ready func() bool) error {
	for !ready() {
		if s.ended != nil {
			return s.ended
		}
		time.Sleep(time.Millisecond / 2)
	}
	return nil
}

// comeInTime comes to a meeting, and does not stand there for longer than it may.
func comeInTime(t *testing.T, gathering *meeting) error {
	t.Helper()
	gathering.mu.Lock()
	may := min(gathering.hold, mostHold)
	gathering.mu.Unlock()
	begun := time.Now()
	err := gathering.come(sleeper{})
	if stood := time.Since(begun); errors.Is(err, errGoOn) && stood > may+time.Millisecond {
		t.Errorf("stood for %v, want %v", stood, may)
	}
	return err
}

// Whatever ranks do when somebody begins to watch them, and however long each takes
// from call to call, they meet before the same call; and until they do nobody stands
// for longer than it may.
func TestMeeting(t *testing.T) {
	const calls = 400
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			size := 2 + random.IntN(7)
			job, gathering := newSimulatedJob(size, calls), newMeeting(size)
			met := make([]int, size)
			var all sync.WaitGroup
			for rank := range size {
				slowest := time.Duration(1 + random.IntN(int(80*time.Millisecond)))
				watched := time.Now().Add(time.Duration(random.IntN(int(100 * time.Millisecond))))
				pace := rand.New(rand.NewPCG(seed, uint64(rank)))
				all.Go(func() {
					for call := range calls {
						time.Sleep(time.Duration(pace.Int64N(int64(slowest))))
						if time.Now().After(watched) {
							if err := comeInTime(t, gathering); err == nil {
								met[rank] = call
								return
							} else if !errors.Is(err, errGoOn) {
								t.Error(err)
							}
						}
						job.enter(call)
					}
					met[rank] = -1
				})
			}
			all.Wait()
			for _, call := range met {
				if call < 0 || call != met[0] {
					t.Fatalf("seed %d: the ranks met at %v", seed, met)
				}
			}
		})
	}
}

// Who comes first stands for ten milliseconds, the next time for twice as long.
func TestMeetingHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gathering := newMeeting(2)
		for _, want := range []time.Duration{firstHold, 2 * firstHold, 4 * firstHold} {
			begun := time.Now()
			err := gathering.come(sleeper{})
			if stood := time.Since(begun); !errors.Is(err, errGoOn) || stood < want || stood > want+2*time.Millisecond {
				t.Errorf("%v after %v, want %v", err, stood, want)
			}
		}
	})
}

// A rank that ends while it stands ends the meeting for all.
func TestMeetingWithoutARank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gathering := newMeeting(3)
		var all sync.WaitGroup
		all.Go(func() {
			if err := gathering.come(sleeper{}); !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := gathering.come(sleeper{os.ErrProcessDone}); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		all.Wait()
	})
}

// What goes wrong in one rank, or between two steps, is the end of all of them.
func TestMeetingSteps(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tt := range []struct {
		name             string
		problem, between error
		want             error
	}{{"all well", nil, nil, nil}, {"in a rank", wrong, nil, wrong}, {"between", nil, wrong, wrong}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gathering, calls := newMeeting(3), 0
				var all sync.WaitGroup
				for rank := range 3 {
					all.Go(func() {
						time.Sleep(time.Duration(rank) * time.Second)
						var problem error
						if rank == 1 {
							problem = tt.problem
						}
						err := gathering.step(sleeper{}, 0, problem, func() error { calls++; return tt.between })
						if !errors.Is(err, tt.want) || err == nil != (tt.want == nil) {
							t.Errorf("rank %d: %v", rank, err)
						}
					})
				}
				all.Wait()
				if want := map[bool]int{true: 0, false: 1}[tt.problem != nil]; calls != want {
					t.Errorf("done %d times between the steps, want %d", calls, want)
				}
			})
		})
	}
}

// MPICH says the names of values in its descriptions only; 4.0 leaves out the ends
// of the lines.
func TestDescribedWords(t *testing.T) {
	const joined = "Variable to select alltoall algorithmauto - Internal algorithm selection (can be overridden with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)" +
		"brucks                    - Force brucks algorithmnb                        - Force nonblocking algorithm" +
		"pairwise                  - Force pairwise algorithmscattered                 - Force scattered algorithm"
	lines := strings.NewReplacer("algorithmauto", "algorithm\nauto", ")brucks", ")\nbrucks", "algorithmnb", "algorithm\nnb",
		"algorithmpairwise", "algorithm\npairwise", "algorithmscattered", "algorithm\nscattered").Replace(joined)
	const scheduled = "Variable to select ialltoall algorithmauto - Internal algorithm selection (can be overridden with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)" +
		"sched_auto - Internal algorithm selection for sched-based algorithmssched_brucks            - Force brucks algorithmtsp_ring            - Force generic transport based ring algorithm"
	for _, tt := range []struct{ name, variable, description, want string }{
		{"joined", "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM", joined, "auto (0), brucks (1), nb (2), pairwise (3), scattered (4)"},
		{"lines", "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM", lines, "auto (0), brucks (1), nb (2), pairwise (3), scattered (4)"},
		{"scheduled", "MPIR_CVAR_IALLTOALL_INTRA_ALGORITHM", scheduled, "auto (0), sched_auto (1), sched_brucks (2), tsp_ring (3)"},
		{"a limit", "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE", "below - and above", ""},
		{"of Open MPI", "coll_tuned_alltoall_algorithm", joined, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := mpiFacts{words: describedWords(tt.variable, tt.description), size: 4}
			_, err := f.parse("it", "99")
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "it takes "+tt.want+", not") {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestParseControl(t *testing.T) {
	words := mpiFacts{size: 4, words: map[string]int64{"none": -1, "linear": 1}}
	for _, tt := range []struct {
		name, text string
		facts      mpiFacts
		want       int64
		err        string
	}{
		{"number", "4096", mpiFacts{size: 4}, 4096, ""},
		{"unit", "64K", mpiFacts{size: 4}, 65536, ""},
		{"too great", "8G", mpiFacts{size: 4}, 0, "does not fit into it, which has 4 bytes"},
		{"great", "8G", mpiFacts{size: 8}, 8 << 30, ""},
		{"text", "many", mpiFacts{size: 4}, 0, "whole number"},
		{"word", "linear", words, 1, ""},
		{"number of a word", "1", words, 1, ""},
		{"negative word", "none", words, -1, ""},
		{"another word", "tree", words, 0, "it takes none (-1), linear (1), not \"tree\""},
		{"another number", "7", words, 0, "it takes none (-1), linear (1), not \"7\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.facts.parse("it", tt.text)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}
