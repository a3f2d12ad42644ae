// SPDX-License-Identifier: Apache-2.0

package member

// Keep is what one keeper knows of each member. A value lives exactly as long as its
// member. The zero value is ready, and must not be copied.
type Keep[T any] struct {
	// Make makes the value of a member; nil: it begins as a zero value.
	Make func() *T
}

// Of returns the value for a member. The keeper sees to its lock.
func (k *Keep[T]) Of(m *Member) *T {
	m.kept.mu.Lock()
	defer m.kept.mu.Unlock()
	if value, ok := m.kept.values[k]; ok {
		return value.(*T)
	}
	if m.kept.values == nil {
		m.kept.values = make(map[any]any)
	}
	value := new(T)
	if k.Make != nil {
		value = k.Make()
	}
	m.kept.values[k] = value
	return value
}
