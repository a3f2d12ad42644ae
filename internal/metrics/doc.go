// SPDX-License-Identifier: Apache-2.0

// Package metrics gives what Prometheus reads of a service. A [Metric] is described
// once, in table.go or by the catalogue of series; from there come what a [Registry]
// has, docs/reference/metrics.md, and what the tests of the board and of the alert rules
// in packaging/prometheus compare with.
//
// A service counts with [Registry.Add] and [Registry.Observe], and gives values of the
// moment to [Registry.Read]. They are read at the service's own socket, over TCP
// ([Registry.Serve]) and in a file ([Registry.WriteFile]).
//
// Nothing here names a user, a job, a program or a registration, for everybody who
// reaches the port may read it: labels have the values of the table, or are of what an
// administrator has installed, and each has at most [MaxValues].
//
// All of it may be called from any goroutine. A nil *Registry takes everything and
// gives nothing: it is for those whom nobody asks.
package metrics
