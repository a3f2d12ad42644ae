// SPDX-License-Identifier: Apache-2.0

package gate

// gateMilliseconds is ATTUNE_GATE_MILLISECONDS of dmlib_gate.h. It stands alone
// here: commands that are built for tests have another (internal/testing/longgate).
const gateMilliseconds = 250
