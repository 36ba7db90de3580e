package connections

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Header values that people are asked for.
const (
	headerPort = iota
	headerDSCP
	headerECN
	headerVLAN
	headerPriority
	headerTTL
	headerFrom // MAC address
	headerTo
	headerPKey
	headerFields
)

var headerKeys = [headerFields]string{
	"source_port", "dscp", "ecn", "vlan", "priority", "ttl", "source_mac", "destination_mac", "p_key",
}

// maxValues is how many different values of a field are listed.
const maxValues = 4

// Values are the different values of a header field, in the order in which they came.
type Values struct {
	List []uint64
	More bool // there were others
}

func (v *Values) add(x uint64) {
	if slices.Contains(v.List, x) {
		return
	}
	if len(v.List) >= maxValues {
		v.More = true
		return
	}
	v.List = append(v.List, x)
}

// Headers are the header values of what one side sent.
type Headers [headerFields]Values

// seen reports whether a packet was seen.
func (h *Headers) seen() bool { return len(h[headerTTL].List)+len(h[headerPKey].List) > 0 }

// ECN codes of the IP header (RFC 3168, section 5).
var ecnNames = [4]string{"not ECN-capable", "ECT(1)", "ECT(0)", "CE"}

// values are what one packet has in its headers.
type values [headerFields]uint64

// absent stands for a value that a packet does not have.
const absent = 1 << 63

func valuesOf(v *decode.PacketView) (x values) {
	f := v.Frame
	x = values{
		headerPort: uint64(f.SrcPort), headerDSCP: uint64(f.DSCP()), headerECN: uint64(f.ECN), headerVLAN: absent, headerPriority: absent,
		headerTTL: uint64(f.TTL), headerFrom: absent, headerTo: absent, headerPKey: absent,
	}
	if v.Fabric != rdma.RoCEv2 {
		x[headerPort] = absent // it is the endpoint, or there is none
	}
	if f.Proto == link.InfiniBand || !f.Src.IsValid() {
		x[headerDSCP], x[headerECN], x[headerTTL] = absent, absent, absent
	}
	if f.VLAN|uint16(f.Priority) != 0 {
		x[headerVLAN], x[headerPriority] = uint64(f.VLAN), uint64(f.Priority)
	}
	if to, from := v.MACs(); to != nil {
		x[headerTo], x[headerFrom] = mac(to), mac(from)
	}
	if len(v.RoCE) > 0 {
		x[headerPKey] = uint64(v.RoCE[0].PKey)
	}
	return x
}

func mac(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// PacketSchema is the value of the key "schema" of a packet.
const PacketSchema = "rpcrdma.packet/1"

// PacketEncoder converts packets to JSON.
type PacketEncoder struct{ time ndjson.Encoder }

// Append appends a packet as a JSON object, without a newline. The summary is what a listing says about it.
func (e *PacketEncoder) Append(b []byte, v *decode.PacketView, summary string) []byte {
	b = fmt.Appendf(b, `{"schema":"%s","frame":%d,"time":"`, PacketSchema, v.Packet.Number)
	b = e.time.Time(b, v.Packet.Time)
	b = fmt.Appendf(b, `","length":%d,"captured":%d,"fabric":"%s"`, v.Packet.Length, len(v.Packet.Data), v.Fabric)
	if v.Frame.Src.IsValid() {
		b = fmt.Appendf(b, `,"source":"%s","destination":"%s"`, link.AddrString(v.Frame.Src), link.AddrString(v.Frame.Dst))
	}
	if c := v.Connection; c != nil {
		b = fmt.Appendf(b, `,"connection":%d`, c.Resolve().ID)
	}
	b = append(b, `,"headers":{`...)
	first := true
	for i, x := range valuesOf(v) {
		if x == absent {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = fmt.Appendf(b, `"%s":`, headerKeys[i])
		b = appendHeader(b, i, x)
	}
	b = append(b, `},"summary":`...)
	return append(ndjson.Quote(b, summary), '}')
}

// HeaderRecorder collects the header values of connections, until they are closed.
type HeaderRecorder struct {
	conns map[*rdma.Connection]*recorded
	last  *recorded
	of    *rdma.Connection
}

type recorded struct {
	sides [2]Headers
	last  [2]values
	any   [2]bool
}

// Packet is meant for decode.Observer.Packet.
func (r *HeaderRecorder) Packet(v *decode.PacketView) {
	k := v.Connection
	if k == nil || len(v.RoCE) > 0 && v.RoCE[0].Opcode.Service() == roce.ServiceUD { // messages of the setup go another way
		return
	}
	k = k.Resolve()
	var from rdma.Side
	switch {
	case k.Ends[0].Addr == k.Ends[1].Addr: // on one host: the two sides look the same
		return
	case v.Frame.Src == k.Ends[0].Addr:
	case v.Frame.Src == k.Ends[1].Addr:
		from = 1
	default:
		return
	}
	x := r.last
	if r.of != k {
		if x = r.conns[k]; x == nil {
			if r.conns == nil {
				r.conns = make(map[*rdma.Connection]*recorded)
			}
			x = new(recorded)
			r.conns[k] = x
		}
		r.last, r.of = x, k
	}
	now := valuesOf(v)
	if x.any[from] && x.last[from] == now {
		return
	}
	x.any[from], x.last[from] = true, now
	for i, n := range now {
		if n != absent {
			x.sides[from][i].add(n)
		}
	}
}

// Merge adds what was collected of a connection to that which it turned out to be part of.
func (r *HeaderRecorder) Merge(from *rdma.Connection) {
	was, into := r.Take(from), from.Resolve()
	for side := range was {
		to := 0
		if into.Ends[1].Addr == from.Ends[side].Addr {
			to = 1
		}
		x := r.conns[into]
		if x == nil && was[side].seen() {
			x = new(recorded)
			r.conns[into] = x
		}
		for field := range was[side] {
			v := &was[side][field]
			for _, n := range v.List {
				x.sides[to][field].add(n)
			}
			if v.More {
				x.sides[to][field].More = true
			}
		}
	}
}

// Take returns what was collected of a connection that is closed, and forgets it.
func (r *HeaderRecorder) Take(k *rdma.Connection) (h [2]Headers) {
	if x := r.conns[k]; x != nil {
		h = x.sides
		delete(r.conns, k)
	}
	if r.of == k {
		r.of, r.last = nil, nil
	}
	return h
}

func (h *Headers) code(k *state.Coder) {
	has := h.seen()
	if k.Flag(&has); !has {
		return
	}
	for i := range h {
		state.List(k, &h[i].List, maxValues, func(x *uint64) { state.Number(k, x) })
		k.Flag(&h[i].More)
	}
}

// name is a value of a field as people write it.
func headerValue(field int, x uint64) string {
	switch field {
	case headerECN:
		return ecnNames[x&3]
	case headerFrom, headerTo:
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(x>>40), byte(x>>32), byte(x>>24), byte(x>>16), byte(x>>8), byte(x))
	case headerPKey:
		return fmt.Sprintf("0x%04x", x)
	}
	return fmt.Sprint(x)
}

// join lists the values of a field; empty if there are none.
func (h *Headers) join(field int) string {
	v := &h[field]
	var out []string
	for _, x := range v.List {
		out = append(out, headerValue(field, x))
	}
	if v.More {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

// detail is the line of all values.
func (h *Headers) detail() string {
	var out []string
	add := func(name string, field int) {
		if s := h.join(field); s != "" {
			out = append(out, name+" "+s)
		}
	}
	add("source port", headerPort)
	add("DSCP", headerDSCP)
	if s := h.join(headerECN); s == ecnNames[0] {
		out = append(out, s+": switches drop these packets instead of marking them")
	} else {
		add("ECN", headerECN)
	}
	add("VLAN", headerVLAN)
	add("priority", headerPriority)
	add("TTL", headerTTL)
	if from, to := h.join(headerFrom), h.join(headerTo); from != "" {
		out = append(out, "MAC "+from+" > "+to)
	}
	add("P_Key", headerPKey)
	return strings.Join(out, "; ")
}

// append appends the values as a JSON object.
func (h *Headers) append(b []byte) []byte {
	b = append(b, '{')
	for i := range h {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%s":[`, headerKeys[i])
		for j, x := range h[i].List {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendHeader(b, i, x)
		}
		b = append(b, ']')
	}
	b = append(b, `,"more":[`...)
	first := true
	for i := range h {
		if h[i].More {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = fmt.Appendf(b, `"%s"`, headerKeys[i])
		}
	}
	return append(b, "]}"...)
}

// appendHeader appends a value of a field in JSON.
func appendHeader(b []byte, field int, x uint64) []byte {
	switch field {
	case headerECN:
		return fmt.Appendf(b, `"%s"`, [4]string{"not_ect", "ect1", "ect0", "ce"}[x&3])
	case headerFrom, headerTo:
		return fmt.Appendf(b, `"%s"`, headerValue(field, x))
	}
	return fmt.Appendf(b, "%d", x)
}

// way is one direction between two hosts.
type way struct{ from, to netip.Addr }

// spread is how the connections of one direction are distinguished by what networks hash.
type spread struct {
	connections int
	port        uint64
	differ      bool
}

// maxWays is how many directions are compared.
const maxWays = 4096

// ports finds directions whose connections all have the same UDP source port.
type ports struct {
	ways  map[way]*spread
	order []way
}

func (p *ports) add(c *Connection) {
	if c.Fabric != rdma.RoCEv2 {
		return
	}
	for side := range c.Headers {
		v := &c.Headers[side][headerPort]
		if len(v.List) == 0 {
			continue
		}
		w := way{c.Ends[side].Addr, c.Ends[side^1].Addr}
		s := p.ways[w]
		if s == nil {
			if len(p.order) >= maxWays {
				continue
			}
			if p.ways == nil {
				p.ways = make(map[way]*spread)
			}
			s = &spread{port: v.List[0]}
			p.ways[w] = s
			p.order = append(p.order, w)
		}
		s.connections++
		s.differ = s.differ || len(v.List) > 1 || v.List[0] != s.port
	}
}

// print says which connections are one flow to a network that spreads by addresses and ports.
func (p *ports) print(w io.Writer) {
	first := true
	for _, x := range p.order {
		s := p.ways[x]
		if s.differ || s.connections < 2 {
			continue
		}
		if first {
			fmt.Fprintln(w)
			first = false
		}
		fmt.Fprintf(w, "note: %s from %s to %s share UDP source port %d: a network that spreads by ports (ECMP, LAG) sends all on one path\n",
			units.Plural(s.connections, "connection"), link.AddrString(x.from), link.AddrString(x.to), s.port)
	}
}
