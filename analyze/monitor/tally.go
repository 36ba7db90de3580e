package monitor

// Tally counts transactions that have ended.
type Tally struct {
	Count  uint64
	Errors uint64
	Bytes  uint64 // of RPC messages
	Data   uint64 // moved by RDMA Reads and Writes
	Time   int64  // sum of latencies in ns
	Max    int64  // the greatest latency
}

// one counts a transaction, whose latency is -1 if it is not known.
func (t *Tally) one(failed bool, bytes, data uint64, ns int64) {
	t.Count++
	if failed {
		t.Errors++
	}
	t.Bytes += bytes
	t.Data += data
	t.Time += max(ns, 0)
	t.Max = max(t.Max, ns)
}

// merge adds what another one has counted.
func (t *Tally) merge(o *Tally) {
	t.Count += o.Count
	t.Errors += o.Errors
	t.Bytes += o.Bytes
	t.Data += o.Data
	t.Time += o.Time
	t.Max = max(t.Max, o.Max)
}
