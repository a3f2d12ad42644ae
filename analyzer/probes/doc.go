// SPDX-License-Identifier: Apache-2.0

// Package probes lets people put measure points into the processes of a session from
// another command, and watch them: the ProbeService. It asks the session for points
// as anybody does, and sees in its frames what becomes of them.
//
// What [wishes] hold belongs to the session's loop, but for what says otherwise.
package probes
