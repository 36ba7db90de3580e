// Command repeat makes a large capture out of a small one: it writes the
// packets of a RoCEv2 connection again and again, as if the workload had gone
// on. PSNs, MSNs and XIDs go on counting, times move on, and the ICRCs are
// right. Benchmarks use it, since large captures do not belong in a
// repository.
//
//	repeat -n 400 small.pcap large.pcap
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
	"os"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

func main() {
	n := flag.Int("n", 10, "how often to write the packets")
	flag.Parse()
	if flag.NArg() != 2 || *n < 1 {
		fmt.Fprintln(os.Stderr, "usage: repeat [-n COUNT] INPUT OUTPUT")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *n); err != nil {
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

func run(in, out string, n int) error {
	packets, flows, err := load(in)
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := capture.NewWriter(f, capture.WriterOptions{Format: capture.Pcap})
	r := repeater{flows: flows, w: w}
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
	var (
		list  []packet
		b     capture.Batch
		flows [2]flow
		keys  []string
		frame link.Frame
		begun bool
		head  rpcrdma.Header
		long  = map[uint64]bool{}   // where a whole RPC message starts in memory
		reads = map[uint64]uint32{} // PSN of the response to a Read there
	)
	for {
		err := r.Read(&b)
		if errors.Is(err, io.EOF) {
			return list, &flows, nil
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range b.Packets {
			p := packet{Packet: b.Packets[i], flow: -1}
			p.Data = append([]byte(nil), p.Data...)
			link.Decode(p.Link, p.Data, p.Length, &frame)
			if frame.Proto != link.UDP || frame.DstPort != 4791 || frame.PayloadLen != len(frame.Payload) {
				if !begun {
					list = append(list, p)
				}
				continue
			}
			roce.Decode(frame.Payload, frame.PayloadLen, &p.q)
			for o := range p.Data {
				if &p.Data[o] == &frame.Payload[0] {
					p.at = o
					break
				}
			}
			if p.q.Opcode.Service() != roce.ServiceRC {
				if !begun {
					list = append(list, p)
				}
				continue
			}
			begun = true
			key := frame.Src.String() + frame.Dst.String()
			for j, k := range keys {
				if k == key {
					p.flow = j
				}
			}
			if p.flow < 0 {
				if len(keys) == 2 {
					return nil, nil, errors.New("more than one connection")
				}
				p.flow = len(keys)
				keys = append(keys, key)
			}
			op := p.q.Opcode
			p.reply = op.IsResponse()
			if !p.reply {
				fl := &flows[p.flow]
				if !fl.seen {
					fl.seen, fl.first = true, p.q.PSN
				}
				count := uint32(1)
				if op.IsReadRequest() {
					count = max(1, (p.q.RETH.DMALen+4095)/4096*4) // upper bound for an MTU of 1024
				}
				fl.next = p.q.PSN + count
			}
			payload := p.at + op.HeaderSize()
			switch {
			case op.IsSend() && op.Starts() && rpcrdma.Plausible(p.q.Payload, p.q.PayloadLen):
				_ = head.Decode(p.q.Payload, p.q.PayloadLen)
				p.xids = append(p.xids, payload)
				if head.Inline() {
					p.xids = append(p.xids, payload+head.Length)
				}
				for _, s := range head.PositionZero().Segments {
					long[s.Offset] = true
					break
				}
				if len(head.Reply) > 0 {
					long[head.Reply[0].Offset] = true
				}
			case op.IsWrite() && op.Starts() && long[p.q.RETH.VA]:
				p.xids = append(p.xids, payload)
			case op.IsReadRequest() && long[p.q.RETH.VA]:
				reads[uint64(p.flow)<<32|uint64(p.q.PSN)] = p.q.PSN
			case op.IsReadResponse() && op.Starts():
				if _, ok := reads[uint64(1-p.flow)<<32|uint64(p.q.PSN)]; ok {
					p.xids = append(p.xids, payload)
				}
			}
			list = append(list, p)
		}
	}
}

type repeater struct {
	flows *[2]flow
	w     *capture.Writer
	frame link.Frame
	check roce.Checker
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
		n := len(r.frame.Payload) - roce.ICRCSize
		if sum, ok := r.check.Sum(r.frame.Proto, r.frame.Net, r.frame.Transport, r.frame.Payload[:n]); ok {
			binary.LittleEndian.PutUint32(r.frame.Payload[n:], sum)
		}
		p.Time += span
	}
	return r.w.Write(&p.Packet)
}
