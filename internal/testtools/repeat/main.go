// Command repeat makes a large capture out of a small one: it writes the
// packets of a RoCEv2 connection again and again, as if the workload had gone
// on. PSNs, MSNs and XIDs go on counting, times move on, and the ICRCs are
// right. Benchmarks use it, since large captures do not belong in a
// repository.
//
//	repeat -n 400 small.pcap large.pcap
//	repeat -n 40 -pairs 10 small.pcap hosts.pcap
//
// With -pairs, as many pairs of hosts do the same at the same time, packet by packet in turn.
//
// The input must hold one connection. What comes before its first RC packet is
// written once; connection management and other packets after that are left
// out of the repetitions.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

func main() {
	n := flag.Int("n", 10, "how often to write the packets")
	pairs := flag.Int("pairs", 1, "how many pairs of hosts do the same")
	flag.Parse()
	if flag.NArg() != 2 || *n < 1 || *pairs < 1 || *pairs > 256 {
		fmt.Fprintln(os.Stderr, "usage: repeat [-n COUNT] [-pairs 1 to 256] INPUT OUTPUT")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *n, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "repeat:", err)
		os.Exit(1)
	}
}

// packet is one packet of the input.
type packet struct {
	capture.Packet
	flow  int  // index of its direction; -1 if it is not RC
	reply bool // a response: its PSN is one of the other direction
	q     roce.Packet
	at    int   // offset of the BTH in Data
	xids  []int // offsets of XIDs in Data
}

type flow struct {
	first, next uint32
	seen        bool
}

func run(in, out string, n, pairs int) error {
	packets, flows, err := load(in)
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap})
	r := repeater{flows: flows, w: w, pairs: pairs}
	if len(packets) == 0 {
		return errors.New("no packets")
	}
	span := packets[len(packets)-1].Time - packets[0].Time + 1e6
	for k := range n {
		for i := range packets {
			p := &packets[i]
			if p.flow < 0 && k > 0 {
				continue
			}
			if err := r.write(p, k, span); err != nil {
				return err
			}
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

func load(name string) ([]packet, *[2]flow, error) {
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	l := loader{long: map[uint64]bool{}, reads: map[readKey]bool{}}
	var b capture.Batch
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return l.list, &l.flows, nil
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range b.Packets {
			if err := l.add(&b.Packets[i]); err != nil {
				return nil, nil, err
			}
		}
	}
}

// loader reads the packets that will be repeated.
type loader struct {
	list  []packet
	flows [2]flow
	keys  []ends // of the flows
	begun bool
	frame link.Frame
	head  rpcrdma.Header
	long  map[uint64]bool // where a whole RPC message starts in memory
	reads map[readKey]bool
}

type ends struct{ src, dst netip.Addr }

// readKey is the Read Request of one flow that asks for a whole RPC message.
type readKey struct {
	flow int
	psn  uint32
}

func (l *loader) add(in *capture.Packet) error {
	p := packet{Packet: *in, flow: -1}
	p.Data = append([]byte(nil), p.Data...)
	if !l.decode(&p) {
		if !l.begun {
			l.list = append(l.list, p)
		}
		return nil
	}
	l.begun = true
	key := ends{l.frame.Src, l.frame.Dst}
	p.flow = slices.Index(l.keys, key)
	if p.flow < 0 {
		if len(l.keys) == len(l.flows) {
			return errors.New("more than one connection")
		}
		p.flow = len(l.keys)
		l.keys = append(l.keys, key)
	}
	p.reply = p.q.Opcode.IsResponse()
	if !p.reply {
		l.flows[p.flow].add(&p.q)
	}
	l.find(&p)
	l.list = append(l.list, p)
	return nil
}

// decode reports whether a packet is one of an RC connection.
func (l *loader) decode(p *packet) bool {
	f := &l.frame
	link.Decode(p.Link, p.Data, p.Length, f)
	if f.Proto != link.UDP || f.DstPort != roce.Port || f.PayloadLen != len(f.Payload) {
		return false
	}
	roce.Decode(f.Payload, f.PayloadLen, &p.q)
	for o := range p.Data {
		if &p.Data[o] == &f.Payload[0] {
			p.at = o
			break
		}
	}
	return p.q.Opcode.Service() == roce.ServiceRC
}

// add counts the PSNs of a request.
func (fl *flow) add(q *roce.Packet) {
	if !fl.seen {
		fl.seen, fl.first = true, q.PSN
	}
	count := uint32(1)
	if q.Opcode.IsReadRequest() {
		count = max(1, (q.RETH.DMALen+4095)/4096*4) // upper bound for an MTU of 1024
	}
	fl.next = q.PSN + count
}

// find notes where XIDs are in a packet: in the transport header and the message of a Send, and at the
// beginning of a message that an operation moves.
func (l *loader) find(p *packet) {
	op := p.q.Opcode
	payload := p.at + op.HeaderSize()
	switch {
	case op.IsSend() && op.Starts() && rpcrdma.Plausible(p.q.Payload, p.q.PayloadLen):
		_ = l.head.Decode(p.q.Payload, p.q.PayloadLen)
		p.xids = append(p.xids, payload)
		if l.head.Inline() {
			p.xids = append(p.xids, payload+l.head.Length)
		}
		if call := l.head.PositionZero().Segments; len(call) > 0 {
			l.long[call[0].Offset] = true
		}
		if len(l.head.Reply) > 0 {
			l.long[l.head.Reply[0].Offset] = true
		}
	case op.IsWrite() && op.Starts() && l.long[p.q.RETH.VA]:
		p.xids = append(p.xids, payload)
	case op.IsReadRequest() && l.long[p.q.RETH.VA]:
		l.reads[readKey{p.flow, p.q.PSN}] = true
	case op.IsReadResponse() && op.Starts() && l.reads[readKey{1 - p.flow, p.q.PSN}]:
		p.xids = append(p.xids, payload)
	}
}

type repeater struct {
	flows *[2]flow
	w     *capture.Writer
	pairs int
	frame link.Frame
	check roce.Checker
	other []byte // the packet of another pair
}

// xidStep lies between the XIDs of two repetitions. Linux counts XIDs up in the
// first byte on the wire (host order); the last one keeps repetitions apart.
const xidStep = 1

func (r *repeater) write(p *packet, k int, span int64) error {
	if k > 0 && p.flow >= 0 {
		space := p.flow
		if p.reply {
			space = 1 - space
		}
		fl := &r.flows[space]
		b := p.Data[p.at:]
		step := (fl.next - fl.first) & 0xffffff
		psn := (binary.BigEndian.Uint32(b[8:]) & 0xffffff) + step
		binary.BigEndian.PutUint32(b[8:], binary.BigEndian.Uint32(b[8:])&0xff000000|psn&0xffffff)
		for _, at := range p.xids {
			binary.BigEndian.PutUint32(p.Data[at:], binary.BigEndian.Uint32(p.Data[at:])+xidStep)
		}
		link.Decode(p.Link, p.Data, p.Length, &r.frame)
		r.sum()
		p.Time += span
	}
	if err := r.w.Write(&p.Packet); err != nil {
		return err
	}
	for pair := 1; pair < r.pairs; pair++ {
		q := p.Packet
		r.other = append(r.other[:0], p.Data...)
		q.Data = r.other
		r.move(&q, pair)
		if err := r.w.Write(&q); err != nil {
			return err
		}
	}
	return nil
}

// sum corrects the ICRC of the packet in frame.
func (r *repeater) sum() {
	n := len(r.frame.Payload) - roce.ICRCSize
	if sum, ok := r.check.Sum(r.frame.Proto, r.frame.Net, r.frame.Transport, r.frame.Payload[:n]); ok {
		binary.LittleEndian.PutUint32(r.frame.Payload[n:], sum)
	}
}

// move gives a packet the addresses of another pair of hosts: it adds pair to the third byte of IPv4
// addresses, and to the last but one of IPv6.
func (r *repeater) move(p *capture.Packet, pair int) {
	link.Decode(p.Link, p.Data, p.Length, &r.frame)
	net := r.frame.Net
	switch {
	case len(net) >= 40 && net[0]>>4 == 6:
		net[22] += byte(pair)
		net[38] += byte(pair)
	case len(net) >= 20 && net[0]>>4 == 4:
		net[14] += byte(pair)
		net[18] += byte(pair)
		header := net[:4*int(net[0]&15)]
		binary.BigEndian.PutUint16(header[10:], 0)
		sum := uint32(0)
		for i := 0; i < len(header); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(header[i:]))
		}
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
	default:
		return
	}
	if r.frame.Proto == link.UDP && r.frame.DstPort == roce.Port && len(r.frame.Payload) >= roce.ICRCSize {
		r.sum()
	}
}
