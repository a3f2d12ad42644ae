// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrUnknownAdvice means that the store has no advice of that id.
var ErrUnknownAdvice = errors.New("no such advice")

// Result is what became of a proposal.
type Result int

// The results.
const (
	// Given: it was recommended, not tried.
	Given Result = iota
	// Kept: it was tried, and its gain was proven.
	Kept
	// Undone: it was tried and taken back, since it did not gain.
	Undone
)

// Trial is one proposal of one session, and what became of it.
type Trial struct {
	// Advice is the stable id of what was proposed.
	Advice string
	// Application is the SHA-256 of the executable, hex, and Executable its path.
	Application, Executable string
	// Tunlet is whose proposal it was, and Why its reason.
	Tunlet, Why string
	// Changes are what it asked for, each kind once; processes are left out.
	Changes []*attunev1.Change
	// Predicted gain as a ratio, 0: none; Confidence from 0 to 1.
	Predicted, Confidence float64
	// Result is what became of it, and Gain what was measured; 0: nothing.
	Result Result
	Gain   float64
	// At is when.
	At time.Time
}

// Advice is what the store knows about one recommendation for one application.
type Advice struct {
	// ID is the advice's, the same in each run.
	ID string `json:"id"`
	// Application is the SHA-256 of the executable, and Executable its last path.
	Application string `json:"application"`
	Executable  string `json:"executable"`
	// Tunlet is who gave it, and Why its latest reason.
	Tunlet string `json:"tunlet"`
	Why    string `json:"why"`
	// Predicted gain as a ratio, 0: none; Confidence from 0 to 1.
	Predicted  float64 `json:"predicted_gain,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
	// Gain is the one that was measured last; 0: none.
	Gain float64 `json:"measured_gain,omitempty"`
	// Given counts the sessions that recommended it, Kept those that tried it and
	// kept it, Undone those that took it back.
	Given  int `json:"given"`
	Kept   int `json:"kept"`
	Undone int `json:"undone"`
	// First and Last are when it was met.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Changes are what it asks for.
	Changes []*attunev1.Change `json:"-"`
}

// forget deletes what is too much: what users know most of that they met least recently.
// A service names applications APPLICATION@USER; elsewhere there is one user.
const forget = `
DELETE FROM advice WHERE rowid IN (
	SELECT rowid FROM (
		SELECT rowid, last, row_number() OVER (
			PARTITION BY CASE instr(application, '@') WHEN 0 THEN '' ELSE substr(application, instr(application, '@')) END ORDER BY last DESC
		) AS place FROM advice
	) ORDER BY place, last DESC LIMIT -1 OFFSET ?
)`

// Record adds what a session tried or recommended.
func (s *Store) Record(ctx context.Context, trials []Trial) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		for _, t := range trials {
			if err := record(ctx, tx, t); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, forget, s.most)
		return err
	})
	if err != nil {
		return fmt.Errorf("write to the knowledge store: %w", err)
	}
	return nil
}

func record(ctx context.Context, tx *sql.Tx, t Trial) error {
	changes, err := encode(t.Changes)
	if err != nil {
		return err
	}
	count := [3]int{}
	count[t.Result] = 1
	_, err = tx.ExecContext(ctx, `
INSERT INTO advice VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13)
ON CONFLICT (id, application) DO UPDATE SET executable = ?3, why = ?5, changes = ?6, predicted = ?7, confidence = ?8,
	gain = CASE WHEN ?9 > 0 THEN ?9 ELSE gain END, given = given + ?10, kept = kept + ?11, undone = undone + ?12, last = ?13`,
		t.Advice, t.Application, t.Executable, t.Tunlet, t.Why, changes, t.Predicted, t.Confidence,
		t.Gain, count[Given], count[Kept], count[Undone], t.At.UnixNano())
	return err
}

// encode writes changes as JSON, without what holds for one process only.
func encode(changes []*attunev1.Change) (string, error) {
	var list []json.RawMessage
	for _, ch := range changes {
		ch = proto.CloneOf(ch)
		ch.Id, ch.Process, ch.LeaseNanos = "", 0, 0
		data, err := protojson.Marshal(ch)
		if err != nil {
			return "", err
		}
		list = append(list, data)
	}
	data, err := json.Marshal(list)
	return string(data), err
}

// decode reads what encode wrote.
func decode(text string) (changes []*attunev1.Change, err error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	for _, data := range list {
		ch := &attunev1.Change{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, ch); err != nil {
			return nil, err
		}
		changes = append(changes, ch)
	}
	return changes, nil
}

// Known returns what is known about an application, by the SHA-256 of its
// executable, what gained most first.
func (s *Store) Known(ctx context.Context, application string) ([]Advice, error) {
	return s.query(ctx, "WHERE application = ? ORDER BY kept > 0 DESC, gain DESC, id", application)
}

// List returns all that is known, the latest first.
func (s *Store) List(ctx context.Context) ([]Advice, error) {
	return s.query(ctx, "ORDER BY last DESC, id")
}

// Find returns the advice whose id begins like that, for each application that it
// was given for, the latest first. An error that wraps ErrUnknownAdvice if there
// is none, or if several ids begin so.
func (s *Store) Find(ctx context.Context, id string) ([]Advice, error) {
	if id == "" || strings.Trim(id, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%w: %q is no id", ErrUnknownAdvice, id)
	}
	found, err := s.query(ctx, "WHERE id GLOB ? ORDER BY last DESC, id", id+"*")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknownAdvice, id)
	}
	for _, a := range found {
		if a.ID != found[0].ID {
			return nil, fmt.Errorf("%w: several ids begin with %s, e.g. %s and %s", ErrUnknownAdvice, id, found[0].ID, a.ID)
		}
	}
	return found, nil
}

func (s *Store) query(ctx context.Context, where string, arguments ...any) (out []Advice, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, application, executable, tunlet, why, changes, predicted, confidence,
		gain, given, kept, undone, first, last FROM advice `+where, arguments...)
	if err != nil {
		return nil, fmt.Errorf("read the knowledge store: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var a Advice
		var changes string
		var first, last int64
		if err := rows.Scan(&a.ID, &a.Application, &a.Executable, &a.Tunlet, &a.Why, &changes, &a.Predicted, &a.Confidence,
			&a.Gain, &a.Given, &a.Kept, &a.Undone, &first, &last); err != nil {
			return nil, fmt.Errorf("read the knowledge store: %w", err)
		}
		if a.Changes, err = decode(changes); err != nil {
			return nil, fmt.Errorf("read the knowledge store: advice %s: %w", a.ID, err)
		}
		a.First, a.Last = time.Unix(0, first), time.Unix(0, last)
		out = append(out, a)
	}
	return out, rows.Err()
}

// Forget removes what is known about an advice, for all applications.
func (s *Store) Forget(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM advice WHERE id = ?", id)
	return err
}

// Applied notes the changes, by their ids in the journal of a node, that were
// made by hand for an advice.
func (s *Store) Applied(ctx context.Context, advice, node string, changes []string) error {
	return s.db.Write(ctx, func(tx *sql.Tx) error {
		for _, id := range changes {
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO by_hand VALUES (?, ?, ?)", advice, node, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// ByHand returns the changes that were made by hand for an advice on a node.
func (s *Store) ByHand(ctx context.Context, advice, node string) (changes []string, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT change FROM by_hand WHERE advice = ? AND node = ? ORDER BY rowid", advice, node)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		changes = append(changes, id)
	}
	return changes, rows.Err()
}

// Settled forgets changes that are not in force any more.
func (s *Store) Settled(ctx context.Context, node string, changes []string) error {
	return s.db.Write(ctx, func(tx *sql.Tx) error {
		for _, id := range changes {
			if _, err := tx.ExecContext(ctx, "DELETE FROM by_hand WHERE node = ? AND change = ?", node, id); err != nil {
				return err
			}
		}
		return nil
	})
}
