package truth

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/kernel/mountstats"
)

// Mount is one mount of /proc/self/mountstats that uses RDMA.
type Mount struct {
	Device  string             `json:"device"`
	Program string             `json:"program"`
	Version uint32             `json:"version"`
	Xprt    Xprt               `json:"xprt"`
	Ops     map[string]OpStats `json:"ops"` // those that were used
	// Clients are the rpc_clnt numbers whose calls these are, and Cut the
	// Send.Seq of the last marshalling before mountstats was read. Clients
	// is empty if no set of clients gives these counts.
	Clients []string `json:"clients,omitempty"`
	Cut     int      `json:"cut"`
}

// OpStats is one line of the per-operation statistics.
type OpStats struct {
	Ops      uint64 `json:"ops"`
	Trans    uint64 `json:"trans"`
	Timeouts uint64 `json:"timeouts,omitempty"`
	Sent     uint64 `json:"sent"` // bytes
	Recv     uint64 `json:"recv"`
	Errors   uint64 `json:"errors,omitempty"`
}

// Xprt is the line "xprt: rdma". Sizes are in bytes, counts of chunks are
// counts of segments.
type Xprt struct {
	Connects      uint64 `json:"connects"`
	Sends         uint64 `json:"sends"`
	Recvs         uint64 `json:"recvs"`
	BadXIDs       uint64 `json:"bad_xids,omitempty"`
	ReadSegments  uint64 `json:"read_segments"`
	WriteSegments uint64 `json:"write_segments"`
	ReplySegments uint64 `json:"reply_segments"`
	RDMARequest   uint64 `json:"rdma_request"`
	RDMAReply     uint64 `json:"rdma_reply"`
	NoMsg         uint64 `json:"nomsg"`
}

// parseMountstats reads the mounts that use RDMA. Of several transports the
// first one counts.
func parseMountstats(r io.Reader) ([]*Mount, error) {
	list, _, err := mountstats.Parse(r)
	var mounts []*Mount
	for _, x := range list {
		i := slices.IndexFunc(x.Transports, func(t mountstats.Transport) bool { return t.Protocol == "rdma" && len(t.Numbers) > 20 })
		if i < 0 {
			continue
		}
		n := x.Transports[i].Numbers // counted from the port
		m := &Mount{Device: x.Device, Program: x.Program, Version: x.ProgramVersion, Ops: make(map[string]OpStats)}
		m.Xprt = Xprt{
			Connects: n[2], Sends: n[5], Recvs: n[6], BadXIDs: n[7], ReadSegments: n[10], WriteSegments: n[11], ReplySegments: n[12],
			RDMARequest: n[13], RDMAReply: n[14], NoMsg: n[20],
		}
		for _, o := range x.Ops {
			if o.Calls != 0 {
				m.Ops[o.Name] = OpStats{Ops: o.Calls, Trans: o.Sent, Timeouts: o.Timeouts, Sent: o.SentBytes, Recv: o.RecvBytes, Errors: o.Errors}
			}
		}
		mounts = append(mounts, m)
	}
	return mounts, err
}

func numbers(f []string) []uint64 {
	n := make([]uint64, len(f))
	for i := range f {
		n[i], _ = strconv.ParseUint(f[i], 10, 64)
	}
	return n
}

// maxClients bounds the search for the clients of a mount: 2^n sets are tried.
const maxClients = 14

// attribute finds which calls the counts of m are about. The transport's count
// of sends says when the file was read; then the sets of clients are tried
// until the numbers of calls of each operation agree. The file does not name
// the clients, but few sets, and mostly one, give these numbers.
func (m *Mount) attribute(t *Truth) {
	m.Cut = t.cut(m.Xprt.Sends)
	counts := make(map[string]map[string]uint64)
	for _, c := range t.Calls {
		if c.Program != m.Program || c.Version != m.Version || !c.finished() || c.Sends[0].Seq == 0 || c.Sends[0].Seq > m.Cut {
			continue
		}
		if counts[c.Client] == nil {
			counts[c.Client] = make(map[string]uint64)
		}
		counts[c.Client][c.Procedure]++
	}
	ids := slices.Sorted(maps.Keys(counts))
	if len(ids) > maxClients {
		return
	}
	best := -1
	for set := 0; set < 1<<len(ids); set++ {
		sum := make(map[string]uint64)
		var list []string
		for i, id := range ids {
			if set>>i&1 != 0 {
				list = append(list, id)
				for p, n := range counts[id] {
					sum[p] += n
				}
			}
		}
		if len(sum) != len(m.Ops) || (best >= 0 && len(list) >= best) {
			continue
		}
		same := true
		for p, n := range sum {
			same = same && m.Ops[p].Ops == n
		}
		if same {
			best, m.Clients = len(list), list
		}
	}
}

// cut returns the Seq of the last marshalling among the first messages that the
// transport sent. Calls that were never sent do not count, replies to
// backchannel calls do.
func (t *Truth) cut(messages uint64) int {
	var order []*Send
	for _, c := range t.Calls {
		for _, s := range c.Sends {
			if s.Seq > 0 {
				order = append(order, s)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *Send) int { return a.Seq - b.Seq })
	var n uint64
	cut, back := 0, t.Callbacks
	for _, s := range order {
		for len(back) > 0 && (!back[0].Replied || back[0].After < s.Seq) {
			if back[0].Replied {
				n++
			}
			back = back[1:]
		}
		if s.Decoded() || s.Answered() {
			if n >= messages {
				break
			}
			n++
		}
		cut = s.Seq
	}
	return cut
}
