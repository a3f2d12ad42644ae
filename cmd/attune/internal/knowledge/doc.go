// SPDX-License-Identifier: Apache-2.0

// Package knowledge opens what this user's earlier runs have learnt.
package knowledge
