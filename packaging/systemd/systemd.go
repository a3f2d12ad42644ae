// SPDX-License-Identifier: Apache-2.0

// Package systemd has what systemd is told of Attune's services: their units, users
// and directories. Its tests hold the units to what they may expose at most, and run
// attuned with the rights of its unit.
package systemd

import _ "embed" // for the files below

// Users is the file for systemd-sysusers: the users of the site's services.
//
//go:embed attune-analyzer.sysusers
var Users string

// Attuned is the unit of the node's service, which runs as root.
//
//go:embed attuned.service
var Attuned string

// Narrow is the drop-in for nodes whose attuned needs less.
//
//go:embed attuned-narrow.conf
var Narrow string

// Analyzer is the unit of the Analyzer.
//
//go:embed attune-analyzer.service
var Analyzer string

// Issuer is the unit of the issuing service.
//
//go:embed attune-ca.service
var Issuer string

// AttunedDirectories is the file for systemd-tmpfiles where attuned is.
//
//go:embed attuned.tmpfiles
var AttunedDirectories string

// AnalyzerDirectories is the file for systemd-tmpfiles where the site's services are,
// which may be beside attuned.
//
//go:embed attune-analyzer.tmpfiles
var AnalyzerDirectories string
