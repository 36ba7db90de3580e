package kernel

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/kernel/mountstats"
	"github.com/rpcrdma/toolkit/analyze/kernel/nfsproc"
)

// MountResult compares what the client counted of a mount with the
// transactions of the capture. Mounts of the same server and version look the
// same on the wire, so they are compared together.
type MountResult struct {
	Devices []string `json:"devices"`
	Points  []string `json:"mount_points"`
	Version string   `json:"nfs_version"` // 3, 4.1
	// Server is the address whose transactions are compared; empty if unknown which one is the mount's, and
	// Reason says why.
	Server string `json:"server"`
	Reason string `json:"reason,omitempty"`
	// Basis says which transactions are compared: "calls", those that a trace
	// shows to be the mount's, up to the moment when mountstats was read; or
	// "server", all with that server and version in the capture.
	Basis string `json:"basis"`
	// RPCClients are the numbers of the mount's rpc_clnts, if the basis is
	// calls.
	RPCClients []uint32   `json:"rpc_clients,omitempty"`
	Ops        []*MountOp `json:"operations"`
	// Unnamed are transactions with that server whose program the capture does not show. If the basis is
	// "server", they are not counted, though some may be the mount's.
	Unnamed uint64 `json:"transactions_without_program,omitempty"`
}

// MountOp is one line: one procedure of the client, or several that are the same COMPOUND and so cannot be
// distinguished.
type MountOp struct {
	Names  []string    `json:"names"`
	Kernel KernelCount `json:"kernel"`
	Wire   WireCount   `json:"wire"`
	// RTT is the kernel's mean, exact to RTTExact: it counts milliseconds.
	RTT      int64 `json:"rtt_mean_ns"`
	RTTExact int64 `json:"rtt_exact_ns"`
	// Distance is RTT less the mean total on the wire.
	Distance int64 `json:"distance_mean_ns"`
	// Outside is RTT less the total on the wire, call by call, if the basis is
	// calls.
	Outside Spread `json:"outside_ns"`
	// Unlisted are the Names that the file has no line for, so that Kernel lacks them. The kernel lists every
	// procedure that it knows: the file may be cut, or the procedure is one that this program does not recognise.
	Unlisted []string `json:"names_not_listed,omitempty"`

	outside []int64
}

// KernelCount is of mountstats, in its units.
type KernelCount struct {
	Calls     uint64  `json:"calls"`
	Sent      uint64  `json:"transmissions"`
	Timeouts  uint64  `json:"timeouts"`
	SentBytes uint64  `json:"sent_bytes"`
	RecvBytes uint64  `json:"received_bytes"`
	Queue     uint64  `json:"queue_ms"`
	RTT       uint64  `json:"rtt_ms"`
	Execute   uint64  `json:"execute_ms"`
	Errors    *uint64 `json:"errors"` // null if the version of the file does not have them
}

// WireCount is of the capture.
type WireCount struct {
	Calls     uint64 `json:"calls"`
	Sent      uint64 `json:"transmissions"`
	SentBytes uint64 `json:"sent_bytes"` // over TCP with record marks, as the kernel counts
	RecvBytes uint64 `json:"received_bytes"`
	Errors    uint64 `json:"errors"`
	// Unread are transactions whose reply does not tell whether the call has failed, since it is encrypted or cut. Errors has none of them.
	Unread uint64 `json:"outcome_unknown,omitempty"`
	// Incomplete are transactions of which the capture lacks something. Their bytes and
	// errors count as far as it has them.
	Incomplete uint64 `json:"incomplete,omitempty"`
	// Whole are transactions with call and reply, of which the rest is.
	Whole uint64 `json:"whole"`
	Mean  int64  `json:"mean_ns"`
	Min   int64  `json:"min_ns"`
	Max   int64  `json:"max_ns"`

	total int64
}

type mountGroup struct {
	out     *MountResult
	list    []*mountstats.Mount
	version uint32
	minor   int // -1: any
	server  uint16
	client  uint16 // 0: any
	rdma    bool
}

func (p *pairing) compareMounts() []*MountResult {
	var groups []*mountGroup
	for _, m := range p.mounts {
		if m.Program != "nfs" && m.ProgramNumber != nfsProgram {
			continue
		}
		g := p.group(m)
		i := slices.IndexFunc(groups, func(x *mountGroup) bool {
			return g.server != 0 && x.server == g.server && x.version == g.version && x.minor == g.minor && x.client == g.client && x.rdma == g.rdma
		})
		if i < 0 {
			groups = append(groups, g)
			continue
		}
		x := groups[i]
		x.list = append(x.list, m)
		x.out.Devices, x.out.Points = append(x.out.Devices, m.Device), append(x.out.Points, m.Point)
	}
	out := []*MountResult{}
	for _, g := range groups {
		p.compare(g)
		out = append(out, g.out)
	}
	return out
}

// group finds out what on the wire is a mount's.
func (p *pairing) group(m *mountstats.Mount) *mountGroup {
	g := &mountGroup{list: []*mountstats.Mount{m}, version: m.ProgramVersion, minor: -1}
	g.rdma = len(m.Transports) > 0 && m.Transports[0].Protocol == "rdma"
	g.out = &MountResult{Devices: []string{m.Device}, Points: []string{m.Point}, Version: strconv.Itoa(int(m.ProgramVersion)), Ops: []*MountOp{}}
	if _, minor, ok := strings.Cut(m.Option("vers"), "."); ok && m.ProgramVersion == 4 {
		if n, err := strconv.ParseUint(minor, 10, 8); err == nil {
			g.minor = int(n)
			g.out.Version += "." + strconv.Itoa(g.minor)
		}
	}
	for _, text := range []string{m.Server(), m.Option("addr")} {
		if a, err := netip.ParseAddr(text); err == nil {
			a = a.Unmap()
			g.out.Server = a.String()
			g.server = p.addrs.at[a]
			if g.server == 0 {
				g.out.Reason = "the capture has no transactions of NFS with this server"
			}
			break
		}
	}
	if g.out.Server == "" {
		// The name of a server; the address is not in the file.
		servers := make(map[uint16]bool)
		for k := range p.sums.by {
			if k.version == m.ProgramVersion {
				servers[k.server] = true
			}
		}
		if len(servers) == 1 {
			for s := range servers {
				g.server = s
			}
			g.out.Server = p.addrs.value(g.server).String()
		} else {
			g.out.Reason = "the file does not say the server's address, and the capture has " + strconv.Itoa(len(servers)) + " servers of this version"
		}
	}
	if a, err := netip.ParseAddr(m.Option("clientaddr")); err == nil {
		for k := range p.sums.by {
			if p.addrs.value(k.client) == a.Unmap() {
				g.client = k.client
			}
		}
	}
	return g
}

// compare fills the lines of a group.
func (p *pairing) compare(g *mountGroup) {
	rows := newRows(g)
	g.out.Basis = "server"
	if a := p.attribute(g); a != nil {
		g.out.Basis, g.out.Reason, g.out.RPCClients = "calls", "", a.clients
		p.attributed(a, rows)
	} else if g.server != 0 {
		for k, s := range p.sums.by {
			if k.server == g.server && k.version == g.version && k.rdma == g.rdma && (g.client == 0 || k.client == g.client) &&
				// A COMPOUND that could not be read has minor version 0.
				(g.minor < 0 || k.named || int(k.minor) == g.minor) {
				rows.wire(k, p.sums.words.value(k.procedure), s)
			}
		}
	}
	if g.out.Basis == "server" {
		if a, err := netip.ParseAddr(g.out.Server); err == nil {
			g.out.Unnamed = p.sums.unnamed[unnamedKey{a, g.rdma}]
		}
		if g.server == 0 && g.out.Unnamed > 0 {
			g.out.Reason = "the capture does not show the program of any of its " + strconv.FormatUint(g.out.Unnamed, 10) + " transactions with this server"
		}
	}
	g.out.Ops = rows.list()
}

// rows collects lines: kernel counts by name, wire sums by a set of names.
type rows struct {
	group  map[string]string // name: the first one of those that stand together
	kernel map[string]*KernelCount
	listed map[string]bool // names that the file has a line for
	order  []string
	wires  []wireRow
	calls  []callRow
}

type wireRow struct {
	names []string
	sum   *sum
}

func newRows(g *mountGroup) *rows {
	r := &rows{group: make(map[string]string), kernel: make(map[string]*KernelCount), listed: make(map[string]bool)}
	for _, m := range g.list {
		for i := range m.Ops {
			o := &m.Ops[i]
			r.listed[o.Name] = true
			if o.Calls == 0 && o.Sent == 0 {
				continue
			}
			k := r.kernel[o.Name]
			if k != nil && shared(g.list, m, o) {
				continue
			}
			if k == nil {
				k = &KernelCount{}
				r.kernel[o.Name] = k
				r.order = append(r.order, o.Name)
			}
			k.add(o)
		}
	}
	return r
}

// sharedOps are procedures of NFSv4 that a client calls for all mounts that share it: of its leases and sessions and, with Kerberos, those whose
// state only the client itself may change (RFC 8881, section 2.10.8.3).
var sharedOps = map[string]bool{
	"EXCHANGE_ID": true, "CREATE_SESSION": true, "DESTROY_SESSION": true, "DESTROY_CLIENTID": true, "SEQUENCE": true, "RECLAIM_COMPLETE": true,
	"SETCLIENTID": true, "SETCLIENTID_CONFIRM": true, "RENEW": true, "BIND_CONN_TO_SESSION": true, "GET_LEASE_TIME": true,
	"CLOSE": true, "DELEGRETURN": true, "LOCKU": true, "OPEN_DOWNGRADE": true, "TEST_STATEID": true, "FREE_STATEID": true,
}

// shared reports whether a mount before m has the same line for a procedure that mounts share: each lists what the shared RPC client has called.
func shared(list []*mountstats.Mount, m *mountstats.Mount, o *mountstats.Op) bool {
	if !sharedOps[o.Name] {
		return false
	}
	for _, other := range list {
		if other == m {
			return false
		}
		if slices.Contains(other.Ops, *o) {
			return true
		}
	}
	return false
}

func (k *KernelCount) add(o *mountstats.Op) {
	k.Calls += o.Calls
	k.Sent += o.Sent
	k.Timeouts += o.Timeouts
	k.SentBytes += o.SentBytes
	k.RecvBytes += o.RecvBytes
	k.Queue += o.Queue
	k.RTT += o.RTT
	k.Execute += o.Execute
	if o.HasErrors {
		n := o.Errors
		if k.Errors != nil {
			n += *k.Errors
		}
		k.Errors = &n
	}
}

func (r *rows) wire(k sumKey, text string, s *sum) {
	names := []string{text}
	if !k.named {
		names = nfsproc.Candidates(k.minor, strings.Fields(text))
		// Of several, those that the mount has used.
		if used := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return r.kernel[n] == nil }); len(used) > 0 {
			names = used
		}
		if len(names) == 0 {
			names = []string{strings.TrimSpace(text)}
		}
	}
	for _, n := range names {
		if r.kernel[n] == nil {
			r.kernel[n] = &KernelCount{}
			r.order = append(r.order, n)
		}
		r.join(names[0], n)
	}
	r.wires = append(r.wires, wireRow{names, s})
}

func (r *rows) find(n string) string {
	for {
		up, ok := r.group[n]
		if !ok || up == n {
			return n
		}
		n = up
	}
}

func (r *rows) join(a, b string) {
	if x, y := r.find(a), r.find(b); x != y {
		r.group[y] = x
	}
}

func (r *rows) list() []*MountOp {
	by := make(map[string]*MountOp)
	var list []*MountOp
	at := func(n string) *MountOp {
		n = r.find(n)
		o := by[n]
		if o == nil {
			o = &MountOp{}
			by[n] = o
			list = append(list, o)
		}
		return o
	}
	for _, n := range r.order {
		o, k := at(n), r.kernel[n]
		o.Names = append(o.Names, n)
		o.Kernel.merge(k)
	}
	for _, w := range r.wires {
		at(w.names[0]).Wire.add(w.sum)
	}
	for _, c := range r.calls {
		o := at(c.name)
		o.Wire.add(&c.sum)
		if c.known {
			o.outside = append(o.outside, c.outside)
		}
	}
	for _, o := range list {
		o.Outside = spread(o.outside)
		slices.Sort(o.Names)
		for _, n := range o.Names {
			if !r.listed[n] {
				o.Unlisted = append(o.Unlisted, n)
			}
		}
		if o.Kernel.Calls > 0 {
			o.RTT = int64(float64(o.Kernel.RTT) * 1e6 / float64(o.Kernel.Calls))
			o.RTTExact = int64(1e6 / float64(o.Kernel.Calls))
		}
		if o.Wire.Whole > 0 {
			o.Wire.Mean = int64(float64(o.Wire.total) / float64(o.Wire.Whole))
			if o.Kernel.Calls > 0 {
				o.Distance = o.RTT - o.Wire.Mean
			}
		}
	}
	slices.SortFunc(list, func(a, b *MountOp) int {
		return cmp.Or(cmp.Compare(b.Kernel.Calls, a.Kernel.Calls), cmp.Compare(b.Wire.Calls, a.Wire.Calls), slices.Compare(a.Names, b.Names))
	})
	return list
}

func (k *KernelCount) merge(o *KernelCount) {
	k.Calls += o.Calls
	k.Sent += o.Sent
	k.Timeouts += o.Timeouts
	k.SentBytes += o.SentBytes
	k.RecvBytes += o.RecvBytes
	k.Queue += o.Queue
	k.RTT += o.RTT
	k.Execute += o.Execute
	if o.Errors != nil {
		n := *o.Errors
		if k.Errors != nil {
			n += *k.Errors
		}
		k.Errors = &n
	}
}

func (w *WireCount) add(s *sum) {
	w.Calls += s.calls
	w.Sent += s.sent
	w.SentBytes += s.sentBytes
	w.RecvBytes += s.recvBytes
	w.Errors += s.failed
	w.Unread += s.unread
	w.Incomplete += s.partial
	if s.whole > 0 {
		if w.Whole == 0 || s.min < w.Min {
			w.Min = s.min
		}
		w.Max = max(w.Max, s.max)
	}
	w.Whole += s.whole
	w.total += s.total
}
