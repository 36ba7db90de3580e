package decode

// EvictAll gives up one thing of each part.
func (d *Decoder) EvictAll() bool {
	m := &d.memory
	a, b, c := m.transactions.Evict(), m.connections.Evict(), m.fragments.Evict()
	return a || b || c
}
