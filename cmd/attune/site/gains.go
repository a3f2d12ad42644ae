// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// month is the time that gains are told of unless it is said.
const month = 30 * 24 * time.Hour

// gains is what sessions with kept changes gained, those of one user or application.
type gains struct {
	// Of is the user or the application: the base name of what the session executed.
	Of string `json:"of"`
	// Sessions in which changes were kept, and those changes.
	Sessions int `json:"sessions"`
	Changes  int `json:"changes"`
	// Median and Best of the sessions' gains, factors, each that of the best change; 0:
	// none was measured.
	Median float64 `json:"median_gain,omitempty"`
	Best   float64 `json:"best_gain,omitempty"`
	// Hours that the sessions took.
	Hours float64 `json:"hours"`

	all []float64
}

// Gains returns `attune report gains`.
func Gains(p *cli.Env) *cobra.Command {
	var at Flags
	of := pick{since: cli.Span(month)}
	var by string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gains [flags]",
		Short: "Sum up what sessions at a site gained",
		Long: `Gains sums up the sessions in which a change was proven good and kept, by user or by
application. GAIN is the median of their gains, each that of the session's best change;
HOURS are the sessions' own. Users see their own sessions, admins all. A session counts
for as long as the Analyzer that is asked keeps its report, which is named by reports in
its configuration.`,
		Example: "  attune report gains\n  attune report gains --since 90d --by application\n  attune report gains --user alice --json | jq '.[].median_gain'",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, known := namesOf[by]
			if !known {
				return exitcode.UsageError(fmt.Errorf("--by %s: user and application are known", by), "see `attune report gains --help`")
			}
			now := time.Now()
			rows, err := gained(cmd.Context(), at, of, name, now)
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.WriteJSON(rows)
			}
			return writeGains(p, rows, by, now.Add(-time.Duration(of.since)))
		},
	}
	flags := cmd.Flags()
	at.Add(flags)
	of.addWhose(flags)
	flags.StringVar(&by, "by", "user", "sum up by user or by application")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	cli.MustComplete(cmd, "by", func() []string { return slices.Sorted(maps.Keys(namesOf)) })
	return cmd
}

// gained asks the site for the sessions that are meant, and sums them up by name.
func gained(ctx context.Context, at Flags, of pick, name func(*attunev1.SessionRecord) string, now time.Time) ([]*gains, error) {
	list, err := Ask(ctx, at, func(ctx context.Context, c *Client) (*attunev1.ListSessionsResponse, error) {
		return c.ListSessions(ctx, &attunev1.ListSessionsRequest{Ended: true})
	})
	if err != nil {
		return nil, err
	}
	of.narrow(list, now)
	return sumUp(list.GetSessions(), name, now), nil
}

// namesOf are what gains are summed up by.
var namesOf = map[string]func(*attunev1.SessionRecord) string{"user": userOf, "application": applicationOf}

func userOf(s *attunev1.SessionRecord) string { return cmp.Or(s.GetUser().GetName(), "-") }

func applicationOf(s *attunev1.SessionRecord) string {
	if len(s.GetCommandLine()) == 0 {
		return "-"
	}
	return path.Base(s.GetCommandLine()[0])
}

// sumUp returns a row for each name that sessions with kept changes have, those with the
// most sessions first.
func sumUp(sessions []*attunev1.SessionRecord, name func(*attunev1.SessionRecord) string, now time.Time) []*gains {
	rows := []*gains{}
	for _, s := range sessions {
		if s.GetKept() == 0 {
			continue
		}
		i := slices.IndexFunc(rows, func(g *gains) bool { return g.Of == name(s) })
		if i < 0 {
			i, rows = len(rows), append(rows, &gains{Of: name(s)})
		}
		g := rows[i]
		g.Sessions++
		g.Changes += int(s.GetKept())
		g.Hours += lasted(s, now).Hours()
		if s.GetGain() > 0 {
			g.all = append(g.all, s.GetGain())
		}
	}
	for _, g := range rows {
		if n := len(g.all); n > 0 {
			slices.Sort(g.all)
			g.Median, g.Best = (g.all[(n-1)/2]+g.all[n/2])/2, g.all[n-1]
		}
	}
	slices.SortFunc(rows, func(a, b *gains) int { return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(a.Of, b.Of)) })
	return rows
}

func writeGains(p *cli.Env, rows []*gains, by string, since time.Time) error {
	if len(rows) == 0 {
		return p.Nothing("was kept in a session since " + since.Format(time.DateOnly))
	}
	w := cli.Table(p.Stdout)
	fmt.Fprintf(w, "%s\tSESSIONS\tCHANGES\tGAIN\tBEST\tHOURS\n", strings.ToUpper(by))
	for _, g := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%.1f\n", dash(g.Of), g.Sessions, g.Changes, gainText(g.Median), gainText(g.Best), g.Hours)
	}
	return w.Flush()
}
