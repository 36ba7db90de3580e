package truth

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// Words of the line after "xprt: rdma", counted from the port.
const (
	xprtConnects = 2
	xprtSends    = 5
	xprtRecvs    = 6
	xprtBadXIDs  = 7
	xprtReads    = 10
	xprtWrites   = 11
	xprtReplies  = 12
	xprtRequest  = 13
	xprtReply    = 14
	xprtNoMsg    = 20
)

func parseMountstats(r io.Reader) ([]*Mount, error) {
	var mounts []*Mount
	var m *Mount
	ops := false // within the per-operation statistics
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		f := strings.Fields(s.Text())
		switch {
		case len(f) >= 2 && f[0] == "device":
			m, ops = nil, false
			if len(f) >= 8 && strings.HasPrefix(f[7], "nfs") {
				m = &Mount{Device: f[1], Ops: make(map[string]OpStats)}
			}
		case m == nil || len(f) == 0:
		case f[0] == "per-op":
			ops = true
		case f[0] == "RPC":
			// RPC iostats version: 1.1  p/v: 100003/3 (nfs)
			for i := range f {
				if f[i] == "p/v:" && i+2 < len(f) {
					_, v, _ := strings.Cut(f[i+1], "/")
					n, _ := strconv.ParseUint(v, 10, 32)
					m.Version, m.Program = uint32(n), strings.Trim(f[i+2], "()")
				}
			}
		case f[0] == "xprt:" && len(f) > 2+xprtNoMsg && f[1] == "rdma":
			w := numbers(f[2:])
			m.Xprt = Xprt{
				Connects: w[xprtConnects], Sends: w[xprtSends], Recvs: w[xprtRecvs], BadXIDs: w[xprtBadXIDs],
				ReadSegments: w[xprtReads], WriteSegments: w[xprtWrites], ReplySegments: w[xprtReplies],
				RDMARequest: w[xprtRequest], RDMAReply: w[xprtReply], NoMsg: w[xprtNoMsg],
			}
			mounts = append(mounts, m)
		case ops && len(f) >= 10 && strings.HasSuffix(f[0], ":") && isDigits(f[1]):
			w := numbers(f[1:])
			if w[0] != 0 {
				m.Ops[strings.TrimSuffix(f[0], ":")] = OpStats{
					Ops: w[0], Trans: w[1], Timeouts: w[2], Sent: w[3], Recv: w[4], Errors: w[8],
				}
			}
		}
	}
	return mounts, s.Err()
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
