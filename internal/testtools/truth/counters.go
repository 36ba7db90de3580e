package truth

import (
	"maps"
	"slices"
)

// mount compares the sums over the transactions of one mount with mountstats.
func (c *comparison) mount(m *Mount) {
	if len(m.Clients) == 0 {
		if len(c.t.Calls) > 0 {
			c.differ(subject{kind: KindMountstats, what: "calls of " + m.Device}, "counts that no set of RPC clients gives", "not compared")
		}
		return
	}
	c.xprt(m)
	sums := make(map[string]*OpStats)
	partial := make(map[string]bool)
	for _, call := range c.t.Calls {
		if call.Sends[0].Seq > m.Cut || call.Sends[0].Seq == 0 || !slices.Contains(m.Clients, call.Client) ||
			call.Program != m.Program || call.Version != m.Version {
			continue
		}
		s := sums[call.Procedure]
		if s == nil {
			s = new(OpStats)
			sums[call.Procedure] = s
		}
		var recv uint64
		var status string
		seen := false
		for _, send := range call.Sends {
			if !send.Decoded() && !send.Answered() {
				continue
			}
			tx := c.matched[send]
			if tx == nil {
				partial[call.Procedure] = true
				continue
			}
			seen = true
			s.Trans++
			s.Sent += tx.CallBytes
			recv, status = tx.ReplyBytes, tx.Status
		}
		if call.Outside != "" {
			partial[call.Procedure] = true
		}
		if seen {
			s.Ops++
			s.Recv += recv
			if failed(status) {
				s.Errors++
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.Ops)) {
		want, got := m.Ops[p], sums[p]
		if got == nil {
			got = new(OpStats)
		}
		if partial[p] {
			c.differ(subject{kind: KindMountstats, what: p + " calls"}, text1(want.Ops), notAll)
			continue
		}
		sub := subject{}
		check(c, sub, KindMountstats, p+" calls", want.Ops, got.Ops)
		check(c, sub, KindMountstats, p+" transmissions", want.Trans, got.Trans)
		check(c, sub, KindMountstats, p+" bytes sent", want.Sent, got.Sent)
		check(c, sub, KindMountstats, p+" bytes received", want.Recv, got.Recv)
		check(c, sub, KindMountstats, p+" errors", want.Errors, got.Errors)
	}
}

// notAll is the decoder's value of a sum that lacks a transaction.
const notAll = "not all of them"

// failed reports whether a status is an error.
func failed(status string) bool {
	switch status {
	case "", "NFS3_OK", "NFS4_OK", "NFS_OK", "SUCCESS":
		return false
	}
	return true
}

// xprt compares the transport's counters. What the client marshalled but never
// sent is in them, as are attempts that it gave up, and the trace has to stand
// in for the wire there.
func (c *comparison) xprt(m *Mount) {
	var got Xprt
	complete := true
	add := func(reads, writes, replies int, offered uint64) {
		got.ReadSegments += uint64(reads)
		got.WriteSegments += uint64(writes)
		got.ReplySegments += uint64(replies)
		got.RDMARequest += offered
	}
	for _, call := range c.t.Calls {
		for _, s := range call.Sends {
			if s.Seq == 0 || s.Seq > m.Cut {
				continue
			}
			if a := s.Aborted; a != nil {
				add(a.Read, a.Write, a.Reply, a.Offered)
				if s.NoMsg {
					got.NoMsg += uint64(a.Attempts)
				}
			}
			if !s.Decoded() && !s.Answered() {
				var n uint64
				for _, seg := range slices.Concat(s.Write, s.Reply) {
					n += uint64(seg.Length)
				}
				add(len(s.Read), len(s.Write), len(s.Reply), n)
				if s.NoMsg {
					got.NoMsg++
				}
				continue
			}
			tx := c.matched[s]
			if tx == nil || call.Outside != "" {
				complete = false
				continue
			}
			reads, writes := 0, 0
			offered := length(tx.ReplyChunk)
			for _, ch := range tx.ReadChunks {
				reads += len(ch.Segments)
			}
			for _, ch := range tx.WriteChunks {
				writes += len(ch)
				offered += length(ch)
			}
			add(reads, writes, len(tx.ReplyChunk), offered)
			if tx.CallType == "RDMA_NOMSG" {
				got.NoMsg++
			}
			got.Sends++
			if tx.ReplyFrame != nil {
				got.Recvs++
				got.RDMAReply += written(tx)
			}
		}
	}
	for _, cb := range c.t.Callbacks {
		if cb.Replied && cb.After <= m.Cut {
			got.Sends++
		}
	}
	if !complete {
		c.differ(subject{kind: KindMountstats, what: "xprt line"}, text1(m.Xprt.Sends), notAll)
		return
	}
	sub := subject{}
	check(c, sub, KindMountstats, "xprt sends", m.Xprt.Sends, got.Sends)
	check(c, sub, KindMountstats, "xprt receives", m.Xprt.Recvs, got.Recvs)
	check(c, sub, KindMountstats, "xprt read segments", m.Xprt.ReadSegments, got.ReadSegments)
	check(c, sub, KindMountstats, "xprt write segments", m.Xprt.WriteSegments, got.WriteSegments)
	check(c, sub, KindMountstats, "xprt reply segments", m.Xprt.ReplySegments, got.ReplySegments)
	check(c, sub, KindMountstats, "xprt RDMA request bytes", m.Xprt.RDMARequest, got.RDMARequest)
	check(c, sub, KindMountstats, "xprt RDMA reply bytes", m.Xprt.RDMAReply, got.RDMAReply)
	check(c, sub, KindMountstats, "xprt RDMA_NOMSG calls", m.Xprt.NoMsg, got.NoMsg)
}

// nfsd compares the server's counters with the procedures and operations of
// all transactions.
func (c *comparison) nfsd() {
	n := c.t.Nfsd
	if n == nil || len(c.t.Calls) == 0 {
		return
	}
	v3, v4, ops := make(map[string]uint64), make(map[string]uint64), make(map[string]uint64)
	for _, call := range c.t.Calls {
		for _, s := range call.Sends {
			if !s.Decoded() {
				continue
			}
			tx := c.matched[s]
			if tx == nil || call.Outside != "" {
				c.differ(subject{kind: KindNfsd, what: "counters of the server"}, text1(n.RPCs), notAll)
				return
			}
			switch {
			case call.Unserved && tx.Procedure == "NULL":
			case tx.Program == "nfs" && tx.Version == 3:
				v3[tx.Procedure]++
			case tx.Program == "nfs" && tx.Version == 4:
				v4[tx.Procedure]++
			}
			for _, op := range tx.Operations {
				// Without a status it was asked for but not evaluated.
				if op.Status != "" {
					ops[op.Op]++
				}
			}
		}
	}
	for _, p := range []struct {
		name      string
		want, got map[string]uint64
	}{{"NFSv3", n.V3, v3}, {"NFSv4", n.V4, v4}, {"NFSv4 operation", n.V4Ops, ops}} {
		keys := make(map[string]bool)
		for k := range p.want {
			keys[k] = true
		}
		for k := range p.got {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			check(c, subject{}, KindNfsd, p.name+" "+k, p.want[k], p.got[k])
		}
	}
}
