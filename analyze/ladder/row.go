package ladder

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// row is one line of the ladder: a packet, or several similar ones.
type row struct {
	first, last int // indexes in the list of packets
	phase       transaction.Phase
	ack         int // 1 + the index of the same packet as an acknowledgement
	packets     int
	bytes       uint64
	segment     *segment // that the RDMA payload belongs to; nil if none
	done        uint64   // bytes of segment moved by the end of this row
	// fold means that the row stands for hidden rows between two that are shown.
	fold         bool
	writes       int // RDMA Writes among these
	acks         int
	requests     int // Read Requests
	responses    int
	writePackets int
}

// minRun is the minimum number of packets of an operation that share a row.
const minRun = 2

// makeRows builds the rows of a transaction.
func (d *Drawer) makeRows(tx *transaction.Transaction) {
	d.rows = d.rows[:0]
	ps := tx.Packets
	ack := 0
	for i := 0; i < len(ps); {
		if i+1 < len(ps) && ps[i].Role == transaction.Ack && sameData(&ps[i], &ps[i+1]) {
			ack = i + 1
			i++
		}
		j := i + 1
		if !d.Verbose {
			for j < len(ps) && alike(&ps[i], &ps[j]) && d.time.Of(ps[i].Ref) == d.time.Of(ps[j].Ref) {
				j++
			}
			if least := leastRun(&ps[i]); j-i < least {
				j = i + 1
			}
		}
		d.rows = append(d.rows, d.row(tx, i, j))
		d.rows[len(d.rows)-1].ack, ack = ack, 0
		i = j
	}
	if !d.Verbose {
		d.foldRows(tx)
	}
}

// sameData reports whether b is the data that packet a carries in addition to its acknowledgement.
func sameData(a, b *transaction.Packet) bool {
	return a.Ref.Number == b.Ref.Number && a.From == b.From && b.Role != transaction.Ack && b.Role != transaction.Nak
}

// leastRun is the minimum number of packets like p that share a row.
func leastRun(p *transaction.Packet) int {
	if p.Role == transaction.CallPart || p.Role == transaction.ReplyPart {
		return 3 // the first and the last packet are phases by themselves
	}
	return minRun
}

// alike reports whether two consecutive packets may share a row.
func alike(a, b *transaction.Packet) bool {
	if a.Role != b.Role || a.From != b.From || a.Again != b.Again || a.Operation != b.Operation {
		return false
	}
	switch a.Role {
	case transaction.WriteData, transaction.ReadResponse, transaction.CallPart, transaction.ReplyPart:
		return true
	case transaction.Ack:
		return a.AcksCall == b.AcksCall && a.AcksReply == b.AcksReply && a.Header.Kind == rdma.HeaderTCP
	}
	return false
}

func (d *Drawer) row(tx *transaction.Transaction, i, j int) row {
	p := &tx.Packets[i]
	r := row{first: i, last: j - 1, packets: j - i, phase: d.time.Of(p.Ref)}
	for k := i; k < j; k++ {
		r.bytes += uint64(tx.Packets[k].Bytes)
	}
	if o := d.operation(tx, p); o != nil {
		for k := i; k < j; k++ {
			q := &tx.Packets[k]
			if q.Role != transaction.WriteData && q.Role != transaction.ReadResponse {
				continue
			}
			r.segment = d.segments.find(o.Kind, o.Handle, q.Offset)
			if r.segment != nil && !q.Again {
				r.segment.done = min(r.segment.done+uint64(q.Bytes), uint64(r.segment.Length))
			}
		}
		if p.Role == transaction.ReadRequest {
			r.segment = d.segments.find(o.Kind, o.Handle, o.Offset)
		}
		if r.segment != nil {
			r.done = r.segment.done
		}
	}
	return r
}

// operation is the operation of a packet, nil if it has none.
func (d *Drawer) operation(tx *transaction.Transaction, p *transaction.Packet) *transaction.Operation {
	if p.Operation < 1 || p.Operation > len(tx.Operations) {
		return nil
	}
	return &tx.Operations[p.Operation-1]
}

// The maximum length of a run of rows without anomalies, and how much of a longer run is shown at each end.
const (
	maxRun   = 10
	headRows = 4
	tailRows = 3
)

// foldRows replaces the middle of long runs.
func (d *Drawer) foldRows(tx *transaction.Transaction) {
	rows := d.rows
	out := d.spare[:0]
	for i := 0; i < len(rows); {
		j := i
		for j < len(rows) && rows[j].phase == rows[i].phase && routine(&tx.Packets[rows[j].first]) {
			j++
		}
		if j-i <= maxRun {
			j = max(j, i+1)
			out = append(out, rows[i:j]...)
			i = j
			continue
		}
		out = append(out, rows[i:i+headRows]...)
		middle := rows[i+headRows : j-tailRows]
		f := row{fold: true, first: middle[0].first, last: middle[len(middle)-1].last, phase: rows[i].phase}
		seen := 0
		for k := range middle {
			m := &middle[k]
			p := &tx.Packets[m.first]
			f.packets += m.packets
			switch p.Role {
			case transaction.WriteData:
				f.writePackets += m.packets
				if p.Operation > seen {
					f.writes++
					seen = p.Operation
				}
				f.bytes += m.bytes
			case transaction.ReadResponse:
				f.responses += m.packets
				f.bytes += m.bytes
			case transaction.ReadRequest:
				f.requests++
			case transaction.Ack:
				f.acks += m.packets
			}
		}
		out = append(append(out, f), rows[j-tailRows:j]...)
		i = j
	}
	d.rows, d.spare = out, rows
}

// routine reports whether a packet shows no anomaly.
func routine(p *transaction.Packet) bool {
	if p.Again {
		return false
	}
	switch p.Role {
	case transaction.WriteData, transaction.ReadResponse, transaction.ReadRequest:
		return true
	case transaction.Ack:
		return !p.AcksReply && p.Header.Kind != rdma.HeaderNone
	}
	return false
}
