// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestFullQueue(t *testing.T) {
	tests := []struct {
		name    string
		put     func(*Queue[int], int)
		kept    []int
		dropped uint64
	}{
		{"an offer loses what is new", func(q *Queue[int], n int) { q.Offer(n) }, []int{1, 2, 3}, 2},
		{"a push loses what is oldest", func(q *Queue[int], n int) { q.Push(n) }, []int{3, 4, 5}, 2},
		{"a limit of its own", func(q *Queue[int], n int) { q.OfferWithin(n, 2) }, []int{1, 2}, 3},
		{"what is put back has room", func(q *Queue[int], n int) { q.Return([]int{n}) }, []int{5, 4, 3, 2, 1}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := New[int](3)
			for n := 1; n <= 5; n++ {
				test.put(q, n)
			}
			if q.Len() != len(test.kept) || q.Dropped() != test.dropped {
				t.Errorf("%d wait and %d are dropped, want %d and %d", q.Len(), q.Dropped(), len(test.kept), test.dropped)
			}
			for _, want := range test.kept {
				if got, err := q.Take(t.Context()); got != want || err != nil {
					t.Errorf("took %d, %v, want %d", got, err, want)
				}
			}
		})
	}
}

func TestWeight(t *testing.T) {
	q := NewWeighted(10, func(s string) int64 { return int64(len(s)) })
	for _, item := range []string{"1234", "5678"} {
		if !q.Offer(item) {
			t.Errorf("%s has no room", item)
		}
	}
	if q.Offer("901") {
		t.Error("11 bytes fit 10")
	}
	if dropped := q.Push("901"); !slices.Equal(dropped, []string{"1234"}) {
		t.Errorf("dropped %q for what is new", dropped)
	}
	if items := q.Drain(); !slices.Equal(items, []string{"5678", "901"}) || !q.Offer("1234567890") {
		t.Errorf("took %q, and there is no room then", items)
	}
}

// TestPutWaits: for room, or for the end of the queue.
func TestPutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](1)
		var work sync.WaitGroup
		results := make(chan error, 3)
		for n := range 4 {
			work.Go(func() { results <- q.Put(t.Context(), n) })
		}
		synctest.Wait()
		if len(results) != 1 {
			t.Fatalf("%d have put something in, want 1", len(results))
		}
		for want := 2; want <= 3; want++ {
			if _, err := q.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(results) != want {
				t.Fatalf("%d have put something in, want %d", len(results), want)
			}
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Errorf("put: %v", err)
			}
		}
		q.Close()
		work.Wait()
		if err := <-results; !errors.Is(err, ErrClosed) {
			t.Errorf("put into a closed queue: %v", err)
		}
		if err := q.Put(t.Context(), 1); !errors.Is(err, ErrClosed) || q.Offer(1) || len(q.Push(1)) != 1 {
			t.Errorf("a closed queue takes something: %v", err)
		}
	})
}

// TestTakeWaits: for an item, for the end of the queue, or for that of ctx.
func TestTakeWaits(t *testing.T) {
	takes := map[string]func(context.Context, *Queue[int]) ([]int, error){
		"one": func(ctx context.Context, q *Queue[int]) ([]int, error) {
			n, err := q.Take(ctx)
			return []int{n}, err
		},
		"all": func(ctx context.Context, q *Queue[int]) ([]int, error) { return q.TakeAll(ctx) },
	}
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New[int](4)
				go q.Offer(7)
				if got, err := take(t.Context(), q); !slices.Equal(got, []int{7}) || err != nil {
					t.Errorf("took %v, %v", got, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if _, err := take(ctx, q); !errors.Is(err, context.Canceled) {
					t.Errorf("take until ctx is done: %v", err)
				}
				q.Offer(8)
				q.Close()
				if got, err := take(t.Context(), q); !slices.Equal(got, []int{8}) || err != nil {
					t.Errorf("took %v, %v out of a closed queue", got, err)
				}
				if _, err := take(t.Context(), q); !errors.Is(err, ErrClosed) {
					t.Errorf("take out of an empty, closed queue: %v", err)
				}
			})
		})
	}
}

// TestNothingIsLost: whatever many put in, few take out.
func TestNothingIsLost(t *testing.T) {
	const putters, each = 8, 1000
	q := New[int](3)
	var putting, taking sync.WaitGroup
	for range putters {
		putting.Go(func() {
			for range each {
				if err := q.Put(context.Background(), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	taken := make(chan int, 2)
	for range 2 {
		taking.Go(func() {
			sum := 0
			for n, err := q.Take(context.Background()); err == nil; n, err = q.Take(context.Background()) {
				sum += n
			}
			taken <- sum
		})
	}
	putting.Wait()
	q.Close()
	taking.Wait()
	if sum := <-taken + <-taken; sum != putters*each {
		t.Errorf("%d items came out of %d", sum, putters*each)
	}
}

// TestBell: it wakes once, however often it was rung.
func TestBell(t *testing.T) {
	b := NewBell()
	b.Ring()
	b.Ring()
	<-b
	select {
	case <-b:
		t.Error("it rings once more")
	default:
	}
}
