// SPDX-License-Identifier: Apache-2.0

// Package local joins an Analyzer and an Application Controller in one process,
// by gRPC over a Unix socket as they would be joined apart. It is the only place
// that knows both: attune run, attach and probe, packed programs and the
// benchmarks use it.
//
// Each part may be missing: what could be made works on without the other.
package local
